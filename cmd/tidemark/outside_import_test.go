package main_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// imported is what replay --server --json prints, as far as the tests ask.
type imported struct {
	Records, Before, Accepted, Malformed int64
	Reasons                              map[string]int64
}

// History goes into a running server while it and the import are killed again and
// again. The events have no IDs of their own, and the server's sets of IDs are tiny: it
// is the server's knowledge of how far the import is that counts each once.
func TestImportIntoAServerGoesOn(t *testing.T) {
	kills := 8
	if soak() {
		kills = 100
	}
	data := newFolder(t)
	events := windowstest.Shape{
		Seed: 8, Events: 1500 * kills, Items: 300, Users: 500, Start: time.Now().Add(-90 * 24 * time.Hour), Span: 5 * time.Hour, NoUser: 0.2, OddNames: true,
		Late: 0.1, LateBy: 48 * time.Hour,
	}.Stream()
	path := writeEvents(t, "history.csv", events)
	p := data.start(t, "--dedup-events=8")
	address := strings.TrimPrefix(p.url, "http://")

	r := rand.New(rand.NewPCG(2, 9))
	var out, errs bytes.Buffer
	begin := func() *exec.Cmd {
		cmd := call{args: []string{"replay", "--server", p.url, "--json", "--batch", []string{"20", "33", "50"}[r.IntN(3)], path}}.command(t)
		out.Reset()
		errs.Reset()
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	cmd := begin()
	for n := range kills {
		time.Sleep(time.Duration(50+r.IntN(150)) * time.Millisecond)
		if n%2 == 0 {
			p.end(t, syscall.SIGKILL)
			p = data.start(t, "--dedup-events=8", "--listen="+address)
			continue
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		cmd = begin()
	}
	if err := cmd.Wait(); err != nil && !strings.Contains(errs.String(), "imported these files already") {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	t.Logf("the last call: %s", out.String())
	settled(t, p.server, len(events))
	e := newExaminer(p.server, windowstest.NewOracle(events), 1)
	e.live = true
	e.examine(t, 20)
	e.verdict(t)

	again := call{args: []string{"replay", "--server", p.url, path}}.run(t)
	if again.status != 1 || !strings.Contains(again.stderr, "already") {
		t.Errorf("once more: exit status %d\n%s", again.status, again.stderr)
	}
	settled(t, p.server, len(events))
}

// What is no event is not sent, and told with its reason; several files are several
// imports; and a batch that does not follow is refused, with what is taken.
func TestImportIntoAServerReports(t *testing.T) {
	data := newFolder(t)
	p := data.start(t)
	one := `{"item":"a","time":1}` + "\n" + `{"item":"","time":1}` + "\nnothing\n" + `{"item":"b","time":1,"id":"x"}` + "\n"
	two := `{"item":"c","time":2}` + "\n" + `{"item":"b","time":1,"id":"x"}` + "\n"
	r := call{args: []string{"replay", "--server", p.url, "--json", writeText(t, "one.ndjson", one), writeText(t, "two.ndjson", two)}}.run(t)
	var got imported
	decode(t, r.stdout, &got)
	if r.status != 0 || got.Records != 6 || got.Accepted != 4 || got.Malformed != 2 || got.Before != 0 || len(got.Reasons) != 2 {
		t.Errorf("exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	settled(t, p.server, 3) // x is there twice
	for query, want := range map[string]struct {
		status int
		says   string
	}{
		"history=true&import=i&after=0&through=5":  {200, `"accepted":1`},
		"history=true&import=i&after=5&through=5":  {400, "through"},
		"import=i&after=5&through=6":               {400, "history=true"},
		"history=true&import=&after=5&through=6":   {400, "import"},
		"history=true&after=5&through=6":           {400, "import"},
		"history=true&import=i&after=x&through=6":  {400, "after"},
		"history=true&history=true&import=i":       {400, "twice"},
		"history=true&import=other&after=1":        {400, "through"},
		"history=true&import=other&through=999999": {200, `"accepted":1`},
	} {
		if status, body := post(t, p, query); status != want.status || !strings.Contains(body, want.says) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	for _, query := range []string{"history=true&import=i&after=0&through=4", "history=true&import=i&after=6&through=7"} {
		if status, body := post(t, p, query); status != http.StatusConflict || !strings.Contains(body, `"taken":5`) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	if r := (call{args: []string{"replay", "--server", p.url, "--again", writeText(t, "one.ndjson", one)}}).run(t); r.status != 2 {
		t.Errorf("--again: exit status %d\n%s", r.status, r.stderr)
	}
}

func post(t *testing.T, p *process, query string) (status int, body string) {
	t.Helper()
	resp, err := http.Post(p.url+"/v1/events?"+query, "application/json", strings.NewReader(`{"item":"d"}`))
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

func writeText(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
