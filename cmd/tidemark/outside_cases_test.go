package main_test

import (
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// deliver sends events, which must be taken.
func deliver(t *testing.T, p *process, events []windowstest.Event) {
	t.Helper()
	if status, body, err := send(p.url, events); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
}

// again kills a server and starts it again.
func (f folder) again(t *testing.T, p *process, args ...string) *process {
	t.Helper()
	if s := p.end(t, syscall.SIGKILL); s != -int(syscall.SIGKILL) {
		t.Fatalf("exit status %d\n%s", s, p.log)
	}
	return f.start(t, args...)
}

// outcomesOf returns how many records had which outcome.
func outcomesOf(t *testing.T, s *server) map[string]uint64 {
	t.Helper()
	var o struct {
		Outcomes []struct {
			Outcome string
			Records number
		}
	}
	s.ask(t, "/v1/outcomes", url.Values{"last": {"all"}}, &o)
	out := make(map[string]uint64)
	for _, of := range o.Outcomes {
		out[of.Outcome] += of.Records.Value
	}
	return out
}

// Two minutes, then silence: both are sealed, at one offset of the log, by time alone. A
// seal that was known by its offset would take the second for the first.
func TestTwoMinutesThenSilence(t *testing.T) {
	data := newFolder(t)
	flags := []string{"--lateness=0s", "--idle=100ms", "--partitions=1"}
	p := data.start(t, flags...)
	end := time.Now().Truncate(time.Minute)
	deliver(t, p, []windowstest.Event{
		{Time: end.Add(-time.Minute - time.Millisecond).UnixMilli(), Item: "a", Type: "view"},
		{Time: end.Add(-time.Millisecond).UnixMilli(), Item: "a", Type: "view"},
	})
	until(t, p, "both minutes are sealed", func() bool {
		var status struct {
			Logs []struct {
				Partitions []struct {
					Position, Sealed int64
					OpenWindows      int `json:"open_windows"`
				}
			}
		}
		p.ask(t, "/v1/status", nil, &status)
		of := status.Logs[0].Partitions[0]
		return of.Sealed == 2 && of.OpenWindows == 0
	})
	if s := p.end(t, syscall.SIGKILL); s != -int(syscall.SIGKILL) {
		t.Fatalf("exit status %d", s)
	}
	if got := data.recount(t, false); got.Counts != 2 || got.Minutes != 2 { // in the store alone
		t.Errorf("%+v", got)
	}
}

// A server is killed with records in its windows that have no usable minute, and others
// that do; it is killed again before and after they are sealed. Each has the outcome that
// it had, however long after its arrival it is judged again, and they sum to what was sent.
func TestOutcomesOutliveAKill(t *testing.T) {
	data := newFolder(t)
	flags := []string{"--lateness=1s", "--idle=200ms"}
	p := data.start(t, flags...)
	sent, want := 0, make(map[string]uint64)
	for round := range 4 {
		now := time.Now()
		var events []windowstest.Event
		for i := range 20 {
			events = append(events,
				windowstest.Event{Time: now.UnixMilli(), Item: "good", Type: "view", ID: fmt.Sprint(round, "-", i)},
				windowstest.Event{Time: now.Add(2 * time.Minute).UnixMilli(), Item: "ahead", Type: "view", ID: fmt.Sprint("a", round, "-", i)},
				windowstest.Event{Time: now.Add(-25 * time.Hour).UnixMilli(), Item: "old", Type: "view", ID: fmt.Sprint("o", round, "-", i)},
				windowstest.Event{Time: now.Add(-2 * time.Hour).UnixMilli(), Item: "late", Type: "view", ID: fmt.Sprint("l", round, "-", i)},
				windowstest.Event{Time: now.UnixMilli(), Item: "good", Type: "view", ID: fmt.Sprint(round, "-", i)}, // again
				windowstest.Event{Time: 1, Item: "", Type: "view"},                                                  // malformed
			)
		}
		deliver(t, p, events)
		sent += len(events)
		for _, o := range []string{"future", "too_old", "duplicate", "malformed"} {
			want[o] += 20
		}
		p = data.again(t, p, flags...)
		got := outcomesOf(t, p.server)
		sum := uint64(0)
		for o, n := range got {
			sum += n
			if w, fixed := want[o]; fixed && n != w {
				t.Errorf("round %d: %d records are %s, want %d", round, n, o, w)
			}
		}
		if sum != uint64(sent) || got["counted"]+got["late"] != uint64(40*(round+1)) {
			t.Errorf("round %d: %d records sent: %v", round, sent, got)
		}
	}
	data.recount(t, false, "--server", p.url)
}

// A retry is found by its ID: of events that happened hours ago, of those without a time in
// another minute, at minutes 0, 6 and 12 with a kill between each.
func TestRetriesCountOnce(t *testing.T) {
	data := newFolder(t)
	p := data.start(t)
	old, chain := time.Now().Add(-3*time.Hour), time.Now().Add(-20*time.Minute)
	var batch []windowstest.Event
	for i := range 100 {
		batch = append(batch,
			windowstest.Event{Time: old.UnixMilli(), Item: "old", Type: "view", User: fmt.Sprint(i), ID: fmt.Sprint("old-", i)},
			windowstest.Event{Item: "no time", Type: "view", User: fmt.Sprint(i), ID: fmt.Sprint("none-", i)},
		)
	}
	for round := range 3 {
		deliver(t, p, batch)
		deliver(t, p, []windowstest.Event{{Time: chain.Add(time.Duration(6*round) * time.Minute).UnixMilli(), Item: "chain", Type: "view", User: "u", ID: "chain"}})
		p = data.again(t, p)
		settled(t, p.server, len(batch)+1)
		if got := outcomesOf(t, p.server)["duplicate"]; got != uint64(round*(len(batch)+1)) {
			t.Errorf("round %d: %d duplicates", round, got)
		}
	}
}

// While minutes are sealed under a question, and events come in, a total never falls, and
// is never more than was sent.
func TestTotalsNeverFall(t *testing.T) {
	data := newFolder(t)
	p := data.start(t, "--lateness=0s", "--idle=50ms", "--max-skew=2h")
	var sent atomic.Int64
	done := make(chan error, 1)
	go func() {
		at := time.Now()
		for i := range 150 {
			var events []windowstest.Event
			for k := range 40 { // each batch in the next minute, so each seals one
				events = append(events, windowstest.Event{Time: at.Add(time.Duration(i) * 30 * time.Second).UnixMilli(), Item: "a", Type: "view", User: fmt.Sprint(k)})
			}
			sent.Add(int64(len(events)))
			if status, body, err := send(p.url, events); err != nil || status != http.StatusOK {
				done <- fmt.Errorf("%d %s %w", status, body, err)
				return
			}
		}
		done <- nil
	}()
	last, asked := uint64(0), 0
	for ended := false; !ended; asked++ {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			ended = true
		default:
		}
		var a answer
		p.ask(t, "/v1/counts", url.Values{"item": {"a"}}, &a)
		most := uint64(sent.Load())
		if got := a.Counts["view"].Value; got < last || got > most {
			t.Fatalf("%d after %d, of at most %d that were sent", got, last, most)
		} else {
			last = got
		}
	}
	settled(t, p.server, int(sent.Load()))
	t.Logf("asked %d times", asked)
}
