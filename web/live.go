package web

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"time"
)

// The clock of what is watched.
const (
	tick         = time.Second
	pingInterval = 15 // ticks
)

// LiveLimits bounds what is watched.
type LiveLimits struct {
	Questions    int   // of one socket
	Clients      int   // of one address
	MessageBytes int64 // of what a client sends
}

// hub keeps what is watched up to date: once a second it has each distinct question
// answered, encodes the answer once, and offers it to whoever watches (H5, H6).
//
// Its goroutines are there while a client is.
type hub struct {
	*api

	mu       sync.Mutex
	topics   map[string]*topic // by the question's key
	clients  map[client]*visitor
	from     map[netip.Addr]int // clients by address
	draining bool
	stop     context.CancelFunc // not nil while the clock runs
}

// client is one connection that watches. Its methods do not wait for it.
type client interface {
	// ping offers the time.
	ping(p *pingMessage)
	// leave asks it to go, and to come back after some time.
	leave(retry time.Duration)
	// expel ends it, since its key does not hold any more.
	expel()
	// cut ends it.
	cut()
}

func newHub(a *api) *hub {
	return &hub{api: a, topics: make(map[string]*topic), clients: make(map[client]*visitor), from: make(map[netip.Addr]int)}
}

// admit enters a client, or says why not.
func (h *hub) admit(c client, r *http.Request) error {
	if err := h.Ready(r.Context()); err != nil {
		// Else it would be told what was true before the end of the journal.
		return notReady(err)
	}
	v := visitorOf(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.draining:
		return &problem{Status: http.StatusServiceUnavailable, Detail: "the server is ending", retryAfter: time.Second}
	case h.from[v.address] >= h.Live.Clients:
		return &problem{
			Status:     http.StatusTooManyRequests,
			Detail:     fmt.Sprintf("%d connections of this address are watching, and more are not allowed; a websocket can watch several questions", h.Live.Clients),
			retryAfter: 10 * time.Second,
		}
	}
	h.clients[c] = v
	h.from[v.address]++
	if h.stop == nil {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		go h.compute(ctx)
		go h.sayPing(ctx)
	}
	h.Requests.clients(len(h.clients))
	return nil
}

// dismiss forgets a client that has gone.
func (h *hub) dismiss(c client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, there := h.clients[c]
	if !there {
		return
	}
	delete(h.clients, c)
	if h.from[v.address]--; h.from[v.address] == 0 {
		delete(h.from, v.address)
	}
	if len(h.clients) == 0 {
		h.stop()
		h.stop = nil
	}
	h.Requests.clients(len(h.clients))
}

// compute has all questions answered, each tick.
func (h *hub) compute(ctx context.Context) {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
		for _, t := range h.due() {
			select {
			case <-ctx.Done():
				return
			case free <- struct{}{}:
			}
			go func() {
				defer func() { <-free }()
				t.refresh(ctx)
			}()
		}
	}
}

// due returns the questions that were last asked a tick ago.
func (h *hub) due() []*topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := make([]*topic, 0, len(h.topics))
	for _, t := range h.topics {
		if t.due() {
			due = append(due, t)
		}
	}
	return due
}

// sayPing tells all clients the time, a few of them each tick.
func (h *hub) sayPing(ctx context.Context) {
	clock := time.NewTicker(tick)
	defer clock.Stop()
	var waiting []client // for their turn in this round
	share := 0
	reads := int64(0) // of the keys, when clients were held against them
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
		if h.Keys != nil && h.Keys.Reads() != reads {
			reads = h.Keys.Reads()
			h.expelStrangers()
		}
		if n%pingInterval == 0 {
			waiting = h.everybody()
			share = (len(waiting) + pingInterval - 1) / pingInterval
		}
		if len(waiting) == 0 {
			continue
		}
		p := newPing(time.Now(), h.Questions.Watermark())
		some := waiting[:min(share, len(waiting))]
		waiting = waiting[len(some):]
		for _, c := range some {
			c.ping(p)
		}
	}
}

// expelStrangers ends the clients whose key does not hold any more, or who have none
// where one is needed now.
func (h *hub) expelStrangers() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c, v := range h.clients {
		if !h.holds(v) {
			c.expel()
		}
	}
}

func (h *hub) everybody() []client {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]client, 0, len(h.clients))
	for c := range h.clients {
		all = append(all, c)
	}
	return all
}

// pingMessage tells that the connection lives, and how far the events were read.
type pingMessage struct {
	Ping      time.Time  `json:"ping"`
	Watermark *time.Time `json:"watermark"`
}

func newPing(now time.Time, watermark *time.Time) *pingMessage {
	return &pingMessage{now.UTC().Truncate(time.Millisecond), watermark}
}

func (p *pingMessage) text() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // it is two times
	}
	return text
}

// How a server's end spreads those who come back.
const (
	leastRetry    = time.Second
	backPerSecond = 500
	longestRetry  = 30 * time.Second
	drainTime     = 4 * time.Second
)

// drain asks all clients to leave and to come back spread over some time, waits
// until they have gone, for drainTime, and ends those who have not. No other may come.
func (h *hub) drain() {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	all := h.everybody()
	spread := min(leastRetry+time.Duration(len(all))*time.Second/backPerSecond, longestRetry)
	for _, c := range all {
		c.leave(leastRetry + rand.N(spread)) //nolint:gosec // nobody gains by guessing it
	}
	for end := time.Now().Add(drainTime); len(h.everybody()) > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	for _, c := range h.everybody() {
		c.cut()
	}
}

// retryHint is how both transports say when to come back: milliseconds.
func retryHint(d time.Duration) string { return fmt.Sprintf("retry: %d", d.Milliseconds()) }
