package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/sketches"
	"tidemark/windows/windowstest"
)

// A wrong call ends with status 2 and says what is wrong, and how it would be right;
// one that fails ends with 1.
func TestExitStatus(t *testing.T) {
	data := newFolder(t)
	data.replay(t, writeEvents(t, "one.csv", []windowstest.Event{{Time: manyStart, Item: "a", Type: "view", User: "u"}}))
	other := filepath.Join(t.TempDir(), "other.key")
	if err := os.WriteFile(other, []byte(sketches.Key{9}.Hex()), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "nothing")
	for _, c := range []struct {
		args   []string
		status int
		says   string // on stderr
	}{
		{[]string{"version"}, 0, ""},
		{[]string{"--help"}, 0, ""},
		{[]string{"frobnicate"}, 2, "frobnicate"},
		{[]string{"replay"}, 2, ""},
		{[]string{"replay", "--rules=nonsense", "x"}, 2, "rules"},
		{[]string{"replay", "--partitions=0", "x"}, 2, "partitions"},
		{[]string{"replay", "--no-such-flag", "x"}, 2, "no-such-flag"},
		{[]string{"replay", "--lateness=soon", "x"}, 2, "lateness"},
		{[]string{"serve", "--listen=nowhere"}, 2, "listen"},
		{[]string{"serve", "--listen=0.0.0.0:0", "--data", data.dir, "--hash-key-file", data.key}, 2, "loopback"},
		{data.args("top", "--by=beauty"), 2, "by"},
		{data.args("top", "--limit=0"), 2, "limit"},
		{data.args("top", "--limit=1001"), 2, "1000"},
		{data.args("viewers", "--from=yesterday"), 2, "from"},
		{data.args("viewers", "--from=2026-01-02", "--to=2026-01-01"), 2, "to"},
		{data.args("counts", "--last=soon"), 2, "last"},
		{data.args("counts", "--tz=Middle/Earth"), 2, "tz"},
		{data.args("replay", "no-such-file.csv"), 1, "no-such-file.csv"},
		{[]string{"viewers", "--data", empty}, 1, empty},
		{[]string{"viewers", "--data", data.dir, "--hash-key-file", other}, 1, "key"},
		{data.args("viewers"), 0, ""},
		{data.args("counts", "a", "b"), 0, ""},
		{data.args("top"), 0, ""},
		{data.args("config", "--json"), 0, ""},
	} {
		r := call{args: c.args}.run(t)
		if r.status != c.status || !strings.Contains(r.stderr, c.says) {
			t.Errorf("tidemark %q: exit status %d, it must be %d and say %q\n%s%s", c.args, r.status, c.status, c.says, r.stdout, r.stderr)
		}
		if c.status != 0 && r.stdout != "" {
			t.Errorf("tidemark %q failed, and printed a result:\n%s", c.args, r.stdout)
		}
	}
	if _, err := os.Stat(empty); err == nil {
		t.Error("a question has made a data folder")
	}
}

// What a store was made with stays: another number of partitions or another key is
// refused, and changes nothing.
func TestAStoreKeepsItsSettings(t *testing.T) {
	data := newFolder(t)
	one := []windowstest.Event{{Time: manyStart, Item: "a", Type: "view", User: "u"}}
	two := []windowstest.Event{{Time: manyStart, Item: "b", Type: "view", User: "u"}}
	data.replay(t, "--partitions=2", writeEvents(t, "one.csv", one))
	file := writeEvents(t, "two.csv", two)
	if r := (call{args: data.args("replay", "--partitions=4", file)}).run(t); r.status == 0 || !strings.Contains(r.stderr, "partitions") {
		t.Errorf("other partitions: exit status %d\n%s", r.status, r.stderr)
	}
	other := folder{dir: data.dir, key: filepath.Join(t.TempDir(), "other.key")}
	if err := os.WriteFile(other.key, []byte(sketches.Key{9}.Hex()), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := (call{args: other.args("replay", file)}).run(t); r.status == 0 || !strings.Contains(r.stderr, "key") {
		t.Errorf("another key: exit status %d\n%s", r.status, r.stderr)
	}
	data.replay(t, file) // the partitions are taken from the folder
	o := windowstest.NewOracle(append(one, two...))
	newExaminer(data, o, 1).examine(t, 2)
}

// A folder that a server holds is asked through the server: the command says so.
func TestAHeldFolderSaysWhoHoldsIt(t *testing.T) {
	data := newFolder(t)
	events := []windowstest.Event{{Time: manyStart, Item: "a", Type: "view", User: "u"}}
	data.replay(t, writeEvents(t, "one.csv", events))
	s := data.serve(t)
	r := call{args: data.args("counts")}.run(t)
	if r.status != 1 || !strings.Contains(r.stderr, "--server") {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{data.args("counts"), s.url},
		{data.args("serve", "--listen=127.0.0.1:0"), s.url},
		{data.args("serve", "--listen", strings.TrimPrefix(s.url, "http://")), "is served there by"},
		{data.args("replay", writeEvents(t, "two.csv", events)), s.url},
		{[]string{"backup", filepath.Join(t.TempDir(), "copy"), "--data", data.dir, "--hash-key-file", data.key}, s.url},
	} {
		r := call{args: c.args}.run(t)
		for _, says := range []string{c.says, "`tidemark serve`", fmt.Sprint("process ", s.cmd.Process.Pid), ", since 20", data.dir} {
			if r.status != 1 || !strings.Contains(r.stderr, says) {
				t.Errorf("tidemark %q: exit status %d, it must be 1 and say %q\n%s", c.args, r.status, says, r.stderr)
			}
		}
	}
	direct := tidemark(t, "counts", "--server", s.url, "--json", "a")
	if _, body := s.get(t, "/v1/counts?item=a"); body != direct {
		t.Errorf("the command prints another answer than the server gives:\n%s\n%s", direct, body)
	}
}

// What is wrong with a request is said in a problem document.
func TestProblemsNameTheParameter(t *testing.T) {
	data := newFolder(t)
	data.replay(t, writeEvents(t, "one.csv", []windowstest.Event{{Time: manyStart, Item: "a", Type: "sale"}}))
	s := data.serve(t)
	for _, c := range []struct {
		target string
		status int
		says   []string
	}{
		{"/v1/viewers?itme=a", 400, []string{"itme", "item"}},
		{"/v1/top?by=beauty", 400, []string{"by", "views", "viewers"}},
		{"/v1/top?limit=1001", 400, []string{"limit", "1000"}},
		{"/v1/counts?from=2026-01-02&to=2026-01-01", 400, []string{"to"}},
		{"/v1/counts?from=1&last=5m", 400, []string{"last"}},
		{"/v1/counts?last=5", 400, []string{"last"}},
		{"/v1/nothing", 404, nil},
		{"/v1/counts?item=" + strings.Repeat("a", 1025), 400, []string{"item", "1024"}},
		{"/v1/counts?" + strings.Repeat("item=a&", 101), 400, []string{"item", "100"}},
	} {
		resp, err := http.Get(s.url + c.target)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		var p struct {
			Title, Detail string
			Status        int
		}
		if err := json.Unmarshal(body, &p); err != nil || resp.StatusCode != c.status || p.Status != c.status || p.Title == "" ||
			!strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
			t.Errorf("GET %.80s: %d %s\n%s", c.target, resp.StatusCode, resp.Header.Get("Content-Type"), body)
		}
		for _, says := range c.says {
			if !strings.Contains(p.Detail, says) {
				t.Errorf("GET %.80s: the detail does not say %q: %s", c.target, says, p.Detail)
			}
		}
	}
	resp, err := http.Post(s.url+"/v1/counts", "text/plain", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") == "" {
		t.Errorf("POST: %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	if resp, err = http.Post(s.url+"/v1/nothing", "text/plain", strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("POST to no path: %d", resp.StatusCode)
	}
	var a answer
	s.ask(t, "/v1/counts", nil, &a)
	if !strings.Contains(a.Hint, "sale (1)") {
		t.Errorf("no event of the view type: the hint is %q", a.Hint)
	}
}
