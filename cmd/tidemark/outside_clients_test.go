package main_test

import (
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/windows/windowstest"
)

// TestClientsComeBackToAKilledServer kills a server under many clients. All come back
// to the next one, and none is told what it knew, or less than it knew.
func TestClientsComeBackToAKilledServer(t *testing.T) {
	t.Parallel()
	n := 200
	if soak() {
		n = 5000
	}
	f := newFolder(t)
	p := f.start(t, liveLimits...)
	events := liveEvents(31, 1100)
	if status, body, err := send(p.url, events[:1000]); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	settled(t, p.server, 1000)
	const question = "/v1/counts?type=*"
	type state struct {
		id    string
		value uint64
	}
	var mu sync.Mutex
	last := make([]state, n)
	var told atomic.Int64
	listen := func(i int, c *websocket.Conn, done *sync.WaitGroup, want uint64) {
		defer done.Done()
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
		for {
			_, text, err := c.ReadMessage()
			if err != nil {
				t.Errorf("client %d: %v", i, err)
				return
			}
			var m struct {
				ID     string
				Answer *struct{ Counts map[string]number }
			}
			if err := json.Unmarshal(text, &m); err != nil {
				t.Error(err)
				return
			}
			if m.Answer == nil {
				continue // a ping
			}
			told.Add(1)
			mu.Lock()
			was := last[i]
			last[i] = state{m.ID, m.Answer.Counts["*"].Value}
			now := last[i]
			mu.Unlock()
			if was.id == now.id || now.value < was.value {
				t.Errorf("client %d knew %+v, and was told %+v", i, was, now)
			}
			if now.value >= want {
				return
			}
		}
	}
	var done sync.WaitGroup
	for i, c := range p.dialAll(t, n, question) {
		done.Add(1)
		go listen(i, c, &done, 1000)
	}
	done.Wait()
	p.end(t, syscall.SIGKILL)

	p = f.start(t, liveLimits...)
	told.Store(0)
	var dialling sync.WaitGroup
	for i := range n {
		done.Add(1)
		dialling.Go(func() {
			c, err := p.dial(question, last[i].id)
			if err != nil {
				t.Error(err)
				done.Done()
				return
			}
			go listen(i, c, &done, 1100)
		})
	}
	dialling.Wait()
	if status, body, err := send(p.url, events[1000:]); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	done.Wait()
	if most := int64(3 * n); told.Load() > most {
		t.Errorf("told %d answers, want %d at most", told.Load(), most)
	}
}

// TestStalledClientsAreLeftBehind has clients that never read beside others: these are
// told every second, and those are gone within a minute or so.
func TestStalledClientsAreLeftBehind(t *testing.T) {
	if !soak() {
		t.Skip("takes a minute, since that is how long a client may be silent: make soak")
	}
	t.Parallel()
	const stalled, others = 1000, 1000
	p := newFolder(t).start(t, liveLimits...)
	p.dialAll(t, stalled, "/v1/top?last=5m&limit=1000")
	clients := p.dialAll(t, others, "/v1/counts?last=5m")
	var told atomic.Int64
	for _, c := range clients {
		go func() {
			for {
				if _, _, err := c.ReadMessage(); err != nil {
					return
				}
				told.Add(1)
			}
		}()
	}
	if live := p.metric(t, "tidemark_live_clients"); live != stalled+others {
		t.Fatalf("%v clients", live)
	}
	for end, i := time.Now().Add(2*time.Minute), 0; p.metric(t, "tidemark_live_clients") > others; i++ {
		if time.Now().After(end) {
			t.Fatalf("%v clients after two minutes", p.metric(t, "tidemark_live_clients"))
		}
		before := told.Load()
		if status, body, err := send(p.url, []windowstest.Event{{Item: "a", User: strconv.Itoa(i), Type: "view"}}); err != nil || status != 200 {
			t.Fatal(status, body, err)
		}
		for wait := time.Now().Add(time.Minute); told.Load() < before+others; {
			if time.Now().After(wait) {
				t.Fatal("the others are not told any more")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if lost := p.metric(t, "tidemark_live_too_slow_total"); lost != stalled {
		t.Errorf("%v were too slow, want %d", lost, stalled)
	}
}
