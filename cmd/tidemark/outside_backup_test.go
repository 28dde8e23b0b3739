package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// sendAll sends events in order, in batches, counting those acknowledged, until one
// gets no answer.
func sendAll(base string, events []windowstest.Event, batch int, acknowledged *atomic.Int64) error {
	for from := 0; from < len(events); from += batch {
		part := events[from:min(from+batch, len(events))]
		status, body, err := send(base, part)
		if err != nil {
			return nil //nolint:nilerr // it was killed
		}
		if status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		acknowledged.Add(int64(len(part)))
	}
	return nil
}

// restored starts a server on a copy of a folder of which it is known that it has the
// first of the events, from least to most of them; it must have exactly so many, and
// once all are sent again, all.
func (f folder) restored(t *testing.T, events []windowstest.Event, least, most int64) {
	t.Helper()
	p := f.start(t, "--lateness=1s")
	var o struct{ Counts map[string]number }
	p.ask(t, "/v1/counts", url.Values{"type": {"*"}, "last": {"all"}}, &o)
	have := int64(o.Counts["*"].Value)
	if have < least || have > most {
		t.Fatalf("%d events are there; %d were acknowledged before the backup, and %d after it", have, least, most)
	}
	check := func(events []windowstest.Event) {
		t.Helper()
		settled(t, p.server, len(events))
		e := newExaminer(p.server, windowstest.NewOracle(events), 1)
		e.live = true
		e.examine(t, 10)
		e.verdict(t)
	}
	check(events[:have])
	var acknowledged atomic.Int64
	if err := sendAll(p.url, events, 500, &acknowledged); err != nil || acknowledged.Load() != int64(len(events)) {
		t.Fatalf("%d of %d were taken again: %v", acknowledged.Load(), len(events), err)
	}
	check(events)
	if s := p.end(t, syscall.SIGTERM); s != 0 {
		t.Errorf("exit status %d\n%s", s, p.log)
	}
}

// The walk of docs/operating.md: a server under load is backed up and killed; a server
// on the copy has exactly what was acknowledged at the time of the backup, and what is
// sent again with its event IDs brings it up to date. So has one on a copy of the
// folder that the killed one left.
func TestBackupAndRestore(t *testing.T) {
	data := newFolder(t)
	const batch = 25
	events := liveEvents(11, 10_000)
	p := data.start(t, "--lateness=1s")
	var acknowledged atomic.Int64
	sent := make(chan error, 1)
	go func() { sent <- sendAll(p.url, events, batch, &acknowledged) }()
	for acknowledged.Load() < 6000 {
		time.Sleep(time.Millisecond)
	}

	copied := folder{filepath.Join(filepath.Dir(data.dir), "deep", "copy"), data.key}
	least := acknowledged.Load()
	out := tidemark(t, "backup", copied.dir, "--server", p.url)
	most := acknowledged.Load() + batch
	if !strings.Contains(out, copied.dir+" is the data folder as of ") {
		t.Error(out)
	}
	held := call{args: data.args("backup", copied.dir+"-held")}.run(t)
	if held.status != 1 || !strings.Contains(held.stderr, "--server") {
		t.Errorf("a folder that a server holds: exit status %d\n%s", held.status, held.stderr)
	}
	p.end(t, syscall.SIGKILL)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	killed := acknowledged.Load()
	t.Logf("backed up between %d and %d of %d events, killed at %d", least, most, len(events), killed)

	late := folder{copied.dir + "-of-the-killed", data.key}
	tidemark(t, data.args("backup", late.dir)...)
	copied.restored(t, events, least, most)
	late.restored(t, events, killed, min(killed+batch, int64(len(events))))
	data.restored(t, events, killed, min(killed+batch, int64(len(events)))) // the copies share nothing with it
}

// The hash key goes with the folder where it lies there, for the owner alone.
func TestBackupHasTheHashKey(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	file := writeEvents(t, "events.csv", windowstest.Shape{Seed: 1, Events: 2000, Items: 30, Users: 500, Start: time.Unix(1_767_225_600, 0), Span: 48 * time.Hour}.Stream())
	tidemark(t, "replay", "--data", data, file)
	if err := os.WriteFile(filepath.Join(data, "keys.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	copied := data + "-copy"
	if err := os.Mkdir(copied, 0o700); err != nil { // empty: it may be there
		t.Fatal(err)
	}
	tidemark(t, "backup", copied, "--data", data)
	for _, name := range []string{"hash.key", "keys.json"} {
		if info, err := os.Stat(filepath.Join(copied, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for _, question := range [][]string{{"viewers", "item-1", "--last=all"}, {"top", "--limit=100"}} {
		was, is := tidemark(t, append(question, "--data", data)...), tidemark(t, append(question, "--data", copied)...)
		if was != is {
			t.Errorf("%q: %s, and of the copy %s", question, was, is)
		}
	}
	r := call{args: []string{"backup", copied, "--data", data}}.run(t)
	if r.status != 1 || !strings.Contains(r.stderr, "is not empty") {
		t.Errorf("over another backup: exit status %d\n%s", r.status, r.stderr)
	}
	r = call{args: []string{"backup", copied + "2", "--data", data, "--hash-key-file", filepath.Join(data, "hash.key")}}.run(t)
	if _, err := os.Stat(filepath.Join(copied+"2", "hash.key")); r.status != 0 || err == nil || !strings.Contains(r.stderr, "hash key is not in it") {
		t.Errorf("with a hash key elsewhere: %d\n%s", r.status, r.stderr)
	}
	r = call{args: []string{"backup", copied + "3", "--data", data + "-nowhere"}}.run(t)
	if r.status != 1 || !strings.Contains(r.stderr, "there is no store in") {
		t.Errorf("of nothing: exit status %d\n%s", r.status, r.stderr)
	}
}

// A backup that breaks off anywhere, or arrives damaged, makes no folder.
func TestBackupThatBreaksOff(t *testing.T) {
	data := newFolder(t)
	p := data.start(t)
	if status, body, err := send(p.url, liveEvents(3, 500)); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
	status, whole := p.get(t, "/v1/backup")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, whole)
	}
	if left, err := os.Stat(filepath.Join(data.dir, "backup.tmp")); err == nil {
		t.Errorf("%s is left", left.Name())
	}
	var body atomic.Pointer[string]
	// Without a length, so that only what came tells.
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+*body.Load())
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		_ = err // the client may have seen enough
	}))
	defer s.Close()
	dir := t.TempDir()
	get := func(sent, what string) result {
		body.Store(&sent)
		r := call{args: []string{"backup", filepath.Join(dir, "copy"), "--server", s.URL}}.run(t)
		if left, err := os.ReadDir(dir); r.status != 1 || err != nil || len(left) > 0 {
			t.Errorf("%s: exit status %d, %v is left\n%s", what, r.status, left, r.stderr)
		}
		return r
	}
	const end = 1024 // two blocks of zeros, after which nothing is missing
	for cut := 0; cut < len(whole)-end; cut += max(512, (len(whole)-end)/25/512*512) {
		for _, cut := range []int{cut, min(cut+100, len(whole)-end-1)} {
			if r := get(whole[:cut], fmt.Sprintf("%d of %d bytes", cut, len(whole))); !strings.Contains(r.stderr, "broke off") {
				t.Errorf("%d bytes: %s", cut, r.stderr)
			}
		}
	}
	get(strings.ReplaceAll(whole, "marker.manifest", "marker.manifist"), "a file with another name")
	get("<html>", "something else")
	get(strings.Replace(whole, "backup.json", "../../x.json", 1), "a way out")
}
