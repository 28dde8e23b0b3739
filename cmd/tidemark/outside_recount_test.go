package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// recounted is what recount --json prints.
type recounted struct {
	Records, Counts, Minutes, Differ int64
	Moving                           int64 `json:"minutes_moving"`
	LeftOut                          int64 `json:"minutes_left_out"`
	Differences                      []struct {
		Minute                      time.Time
		Type, Item, Outcome, Reason string
		Recounted, Served           uint64
	}
}

// recount runs the command, which must find differences or none.
func (f folder) recount(t *testing.T, differ bool, args ...string) (got recounted) {
	t.Helper()
	r := call{args: f.args(append([]string{"recount", "--json"}, args...)...)}.run(t)
	if want := map[bool]int{false: 0, true: 1}[differ]; r.status != want {
		t.Fatalf("exit status %d, want %d\n%.2000s%s", r.status, want, r.stdout, r.stderr)
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
	}
	if differ != (got.Differ > 0) {
		t.Fatalf("exit status %d, and %d differences", r.status, got.Differ)
	}
	return got
}

// messyEvents are of the last half hour, out of order, with duplicates, events of the
// future and too old ones, odd names and a few types.
func messyEvents(seed uint64, n int) []windowstest.Event {
	const span = 30 * time.Minute
	events := windowstest.Shape{
		Seed: seed, Events: n, Items: 200, Users: 1000, Start: time.Now().Add(-span), Span: span,
		NoUser: 0.1, IDs: true, Types: []string{"view", "like", "click"}, OddNames: true, Late: 0.2, LateBy: 20 * time.Minute, Duplicates: 0.2,
	}.Stream()
	for i := range events {
		events[i].ID = fmt.Sprintf("%d-%s", seed, events[i].ID)
		switch i % 97 {
		case 3:
			events[i].Time = time.Now().Add(time.Hour).UnixMilli()
		case 5:
			events[i].Time = time.Now().Add(-90 * time.Hour).UnixMilli()
		}
	}
	return events
}

// A server that takes duplicates, late events and faults, is killed, and gets other
// settings, answers what its journal counts to: while events stream in, and at rest.
func TestRecountFindsNothing(t *testing.T) {
	data := newFolder(t)
	sent := 0
	for round, flags := range [][]string{{}, {}, {"--dedup-events=64", "--lateness=10m"}, {"--max-skew=2h", "--max-lateness=forever"}} {
		p := data.start(t, flags...)
		stop, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					ended <- nil
					return
				default:
				}
				status, body, err := send(p.url, messyEvents(uint64(10_000*round+n), 100))
				if err == nil {
					_, err = http.Post(p.url+"/v1/events", "application/x-ndjson", strings.NewReader("{\"item\":\"a\",\"time\":\"never\"}\n{\"item\":\"b\"}\n"))
				}
				if err != nil || status != http.StatusOK {
					ended <- fmt.Errorf("%d %s %w", status, body, err)
					return
				}
				sent += 102
				time.Sleep(10 * time.Millisecond) // else all waits for the sender
			}
		}()
		got := data.recount(t, false, "--server", p.url)
		close(stop)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: %+v", round, got)
		got = data.recount(t, false, "--server", p.url)
		if got.Records != int64(sent) || got.Counts == 0 || got.Minutes < 20 || got.Moving != 0 || got.LeftOut != 0 {
			t.Errorf("round %d, %d records sent: %+v", round, sent, got)
		}
		signal := syscall.SIGKILL
		if round%2 == 1 {
			signal = syscall.SIGTERM
		}
		p.end(t, signal)
		if got := data.recount(t, false); round%2 == 1 && got.Records != int64(sent) {
			t.Errorf("at rest after round %d, %d records sent: %+v", round, sent, got)
		}
	}
}

// What is not in the journal, or is there otherwise, is named.
func TestRecountNamesDifferences(t *testing.T) {
	data := newFolder(t)
	one := func(event string) {
		t.Helper()
		p := data.start(t)
		if resp, err := http.Post(p.url+"/v1/events", "application/x-ndjson", strings.NewReader(event)); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		if s := p.end(t, syscall.SIGTERM); s != 0 {
			t.Fatalf("exit status %d\n%s", s, p.log)
		}
	}
	one(`{"item":"known","user":"u"}`)
	if got := data.recount(t, false); got.Records != 1 || got.Counts != 1 {
		t.Errorf("%+v", got)
	}
	journal, before := filepath.Join(data.dir, "journal"), filepath.Join(data.dir, "before")
	if err := os.CopyFS(before, os.DirFS(journal)); err != nil {
		t.Fatal(err)
	}
	one(`{"item":"known","user":"v"}
{"item":"stranger","user":"w","type":"like"}
{"user":"x"}`)
	if got := data.recount(t, false); got.Records != 4 {
		t.Errorf("%+v", got)
	}
	if err := os.RemoveAll(journal); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(before, journal); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, d := range data.recount(t, true).Differences {
		found[fmt.Sprint(d.Type, "|", d.Item, "|", d.Outcome, "|", d.Reason)] = d.Served > d.Recounted
	}
	for _, want := range []string{"view||", "view|known|", "like||", "like|stranger|", "||counted|", "||malformed|item: missing"} {
		ok := false
		for have, more := range found {
			ok = ok || strings.HasPrefix(have, want) && more
		}
		if !ok {
			t.Errorf("%s is not named: %v", want, found)
		}
	}
}

// Where there is nothing to count, recount says what to do.
func TestRecountWithoutAJournal(t *testing.T) {
	data := newFolder(t)
	data.replay(t, writeEvents(t, "history.csv", []windowstest.Event{{Time: manyStart, Item: "a", Type: "view"}}))
	r := call{args: data.args("recount")}.run(t)
	if r.status != 1 || !strings.Contains(r.stderr, "no journal") {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
}
