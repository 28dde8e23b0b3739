package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// addKey makes a key and returns it with its id.
func (f folder) addKey(t *testing.T, args ...string) (text, id string) {
	t.Helper()
	var k struct{ Key, ID string }
	out := tidemark(t, append([]string{"keys", "add", "--json", "--data", f.dir}, args...)...)
	if err := json.Unmarshal([]byte(out), &k); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return k.Key, k.ID
}

// with sends a request with a key, and returns status and body.
func (s *server) with(t *testing.T, key, method, target, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// becomes waits until a request has this status: the server follows the file of keys.
func (s *server) becomes(t *testing.T, status int, key, target string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got, body := s.with(t, key, http.MethodGet, target, "")
		if got == status {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("GET %s: %d, want %d: %s", target, got, status, body)
		}
	}
}

// Keys are made and revoked while a server runs, which follows; also where it can be
// reached from outside.
func TestKeysOfARunningServer(t *testing.T) {
	data := newFolder(t)
	events := []windowstest.Event{{Time: manyStart, Item: "a", Type: "view", User: "u"}, {Time: manyStart, Item: "b", Type: "view", User: "v"}}
	data.replay(t, writeEvents(t, "one.csv", events))
	if r := (call{args: data.args("serve", "--listen=0.0.0.0:0")}).run(t); r.status != 2 || !strings.Contains(r.stderr, "tidemark keys add") {
		t.Errorf("an open server at a public address: exit status %d\n%s", r.status, r.stderr)
	}
	p := data.start(t)
	if status, body := p.with(t, "", "GET", "/v1/viewers", ""); status != http.StatusOK {
		t.Fatalf("no key was made, and one is needed: %d %s", status, body)
	}
	reader, readerID := data.addKey(t, "reader")
	p.becomes(t, http.StatusUnauthorized, "", "/v1/viewers")
	p.becomes(t, http.StatusOK, reader, "/v1/viewers")
	sender, _ := data.addKey(t, "shop", "--scope=ingest")
	bound, _ := data.addKey(t, "--item=a")
	p.becomes(t, http.StatusOK, bound, "/v1/viewers?item=a")
	for _, tt := range []struct {
		key, method, target string
		status              int
	}{
		{bound, "GET", "/v1/viewers?item=b", 403},
		{bound, "GET", "/v1/viewers", 403},
		{bound, "GET", "/v1/status", 403},
		{sender, "GET", "/v1/viewers", 403},
		{sender, "POST", "/v1/events", 200},
		{sender, "POST", "/v1/events?history=true", 403},
		{reader, "POST", "/v1/events", 403},
		{reader, "GET", "/metrics", 200},
		{"", "GET", "/metrics", 401},
		{"", "GET", "/healthz", 200},
		{"", "GET", "/v1/viewers?key=" + reader, 200},
		{"", "GET", "/v1/viewers?key=" + sender, 401},
	} {
		if status, body := p.with(t, tt.key, tt.method, tt.target, `{"item":"a","user":"w"}`); status != tt.status {
			t.Errorf("%s %s: %d, want %d: %s", tt.method, tt.target, status, tt.status, body)
		}
	}
	// The commands send a key, by flag or by the environment.
	ask := []string{"viewers", "--server", p.url, "--json", "b"}
	if r := (call{args: ask}).run(t); r.status != 1 || !strings.Contains(r.stderr, "asks for a key") {
		t.Errorf("without a key: exit status %d\n%s", r.status, r.stderr)
	}
	for _, c := range []call{{args: append(ask, "--key", reader)}, {args: ask, env: []string{"TIDEMARK_KEY=" + reader}}} {
		if r := c.run(t); r.status != 0 || !strings.Contains(r.stdout, `"viewers"`) {
			t.Errorf("with a key: exit status %d\n%s", r.status, r.stderr)
		}
	}
	if r := (call{args: []string{"config"}, env: []string{"TIDEMARK_KEY=" + reader}}).run(t); r.status != 0 || strings.Contains(r.stdout, reader) {
		t.Errorf("config shows a key:\n%s%s", r.stdout, r.stderr)
	}
	tidemark(t, "keys", "revoke", readerID, "--data", data.dir)
	p.becomes(t, http.StatusUnauthorized, reader, "/v1/viewers")
	if _, body := p.with(t, reader, "GET", "/v1/viewers", ""); !strings.Contains(body, "was revoked at") {
		t.Error(body)
	}
	list := tidemark(t, "keys", "list", "--data", data.dir)
	for _, says := range []string{readerID, "shop", `read item "a"`} {
		if !strings.Contains(list, says) {
			t.Errorf("the list does not say %s:\n%s", says, list)
		}
	}
	// A file that can't be read closes nothing and opens nothing.
	if err := os.WriteFile(filepath.Join(data.dir, "keys.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	p.becomes(t, http.StatusUnauthorized, "", "/v1/viewers")
	p.becomes(t, http.StatusOK, bound, "/v1/viewers?item=a")
	if r := (call{args: data.args("serve", "--listen=127.0.0.1:0")}).run(t); r.status != 1 || !strings.Contains(r.stderr, "keys.json") {
		t.Errorf("keys that can't be read: exit status %d\n%s", r.status, r.stderr)
	}
}

// With a key a server may be reached from outside; a file that is named has to be there.
func TestServeWithKeys(t *testing.T) {
	data := newFolder(t)
	file := filepath.Join(t.TempDir(), "shared", "keys.json")
	args := []string{"--listen=0.0.0.0:0", "--keys", file}
	if r := (call{args: data.args(append([]string{"serve"}, args...)...)}).run(t); r.status != 1 || !strings.Contains(r.stderr, "tidemark keys add --keys "+file) {
		t.Errorf("no file: exit status %d\n%s", r.status, r.stderr)
	}
	var adding sync.WaitGroup
	for i := range 8 {
		adding.Go(func() { data.addKey(t, "--keys", file, fmt.Sprint("key ", i), "--scope=read,ingest") })
	}
	adding.Wait()
	list := tidemark(t, "keys", "list", "--keys", file, "--json")
	var all []struct{ ID, Name, Hash string }
	if err := json.Unmarshal([]byte(list), &all); err != nil || len(all) != 8 {
		t.Errorf("%v\n%s", err, list)
	}
	p := data.start(t, args...)
	p.url = strings.Replace(p.url, "[::]", "127.0.0.1", 1)
	p.becomes(t, http.StatusUnauthorized, "", "/v1/top")
	if _, err := os.Stat(filepath.Join(data.dir, "keys.json")); err == nil {
		t.Error("a file of keys that nobody asked for")
	}
}

func TestWrongKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if r := (call{args: []string{"keys", "frob"}}).run(t); r.status != 2 || !strings.Contains(r.stderr, "add, list and revoke") {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
	for _, tt := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"keys", "add", "a", "b"}, 2, "NAME"},
		{[]string{"keys", "add", "--scope=write"}, 2, "ingest, read, admin"},
		{[]string{"keys", "add", "--scope=ingest", "--item=a"}, 2, "read"},
		{[]string{"keys", "add", "--item=a", "--dimension=c=v"}, 2, "one of them"},
		{[]string{"keys", "add", "--dimension=channel"}, 2, "NAME=VALUE"},
		{[]string{"keys", "add", "--question=/v1/pot"}, 2, "top"},
		{[]string{"keys", "add", "--question=/v1/top?limt=3"}, 2, "limit"},
		{[]string{"keys", "add", "--question=/metrics"}, 2, "/v1/top"},
		{[]string{"keys", "revoke"}, 2, "ID"},
		{[]string{"keys", "revoke", "k1"}, 1, "no key"},
		{[]string{"keys", "list"}, 0, "No key was made yet"},
		{[]string{"serve", "--allow-origins=example.org"}, 2, "https://example.org"},
		{[]string{"serve", "--allow-origins=https://example.org/"}, 2, "https://example.org"},
		{[]string{"serve", "--trusted-proxies=proxy"}, 2, "10.0.0.0/8"},
		{[]string{"serve", "--limit-requests=-1"}, 2, "0"},
	} {
		r := call{args: append(tt.args, "--data", dir)}.run(t)
		if r.status != tt.status || !strings.Contains(r.stderr, tt.says) {
			t.Errorf("tidemark %q: exit status %d, it must be %d and say %q\n%s%s", tt.args, r.status, tt.status, tt.says, r.stdout, r.stderr)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a wrong call has made a folder")
	}
}
