package traffic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/cmd/traffic"
)

// numbered is a source of events that say their number.
type numbered struct {
	n, end int
	every  time.Duration // between two
	start  time.Time
	err    error // at the end
}

func (s *numbered) Next(b []byte) (line []byte, due time.Time, ok bool, err error) {
	if s.n == s.end {
		return b, due, false, s.err
	}
	s.n++
	if s.every > 0 {
		due = s.start.Add(time.Duration(s.n) * s.every)
	}
	return fmt.Appendf(b, `{"id":"%d","item":"a"}`+"\n", s.n), due, true, nil
}

// fickle is a server that takes events only now and then, and does not always say so.
type fickle struct {
	mu     sync.Mutex
	random *rand.Rand
	calm   bool // it takes all
	seen   map[string]int
	sizes  []int
	order  []string
}

func (f *fickle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	luck := f.random.IntN(12)
	if f.calm {
		luck = 11
	}
	problem := func(status int) {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(status)
		fmt.Fprint(w, `{"detail":"not now"}`)
	}
	switch luck {
	case 0:
		problem(http.StatusTooManyRequests)
		return
	case 1:
		problem(http.StatusServiceUnavailable)
		return
	case 2:
		problem(http.StatusInternalServerError)
		return
	case 3:
		panic(http.ErrAbortHandler)
	default:
	}
	n := 0
	for line := range bytes.Lines(body) {
		var e struct{ ID string }
		if err := json.Unmarshal(line, &e); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		n++
		f.seen[e.ID]++
		f.order = append(f.order, e.ID)
	}
	f.sizes = append(f.sizes, n)
	if luck == 4 { // taken, and nobody is told
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, `{"accepted":%d,"rejected":1,"errors":[{"line":1,"reason":"a reason"}]}`, n-1)
}

func newFickle(t *testing.T) (*fickle, string) {
	t.Helper()
	f := &fickle{random: rand.New(rand.NewPCG(1, 2)), seen: make(map[string]int)}
	s := httptest.NewUnstartedServer(f)
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.Close)
	return f, s.URL
}

// Whatever a server refuses, and whatever answer is lost, each event arrives, with
// the same ID; and the report says what was taken.
func TestEachEventArrives(t *testing.T) {
	f, url := newFickle(t)
	const n = 2003
	s := traffic.NewSender(traffic.SenderConfig{URL: url, Connections: 4, Batch: 50})
	if err := s.Run(t.Context(), &numbered{end: n}); err != nil {
		t.Fatal(err)
	}
	if len(f.seen) != n {
		t.Errorf("%d different events have arrived, %d were there", len(f.seen), n)
	}
	batches := int64(n+49) / 50
	r := s.Report()
	if r.Sent != n || r.Rejected != batches || r.Accepted+r.Rejected != n || r.Requests != batches+r.Retried || r.Retried == 0 || fmt.Sprint(r.Reasons) != "[a reason]" {
		t.Errorf("%+v", r)
	}
	if r.Latency.P50 <= 0 || r.Latency.P50 > r.Latency.P90 || r.Latency.P90 > r.Latency.P99 || r.Latency.P99 > r.Latency.Max {
		t.Errorf("latencies %+v", r.Latency)
	}
}

// Over one connection events arrive in their order, in batches of what is due.
func TestOneConnectionKeepsTheOrder(t *testing.T) {
	f, url := newFickle(t)
	f.calm = true
	s := traffic.NewSender(traffic.SenderConfig{URL: url, Connections: 1, Batch: 1000})
	begun := time.Now()
	if err := s.Run(t.Context(), &numbered{end: 40, every: 10 * time.Millisecond, start: begun}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 400*time.Millisecond {
		t.Errorf("the last event was due after 400 ms, and all was sent within %v", took)
	}
	for i, id := range f.order {
		if id != fmt.Sprint(i+1) {
			t.Fatalf("in the order %v", f.order)
		}
	}
	if len(f.order) != 40 || len(f.sizes) < 2 {
		t.Errorf("%d events arrived in batches of %v", len(f.order), f.sizes)
	}
}

// What can't be mended ends it, and says why; so does the source's own error.
func TestWhatEndsASender(t *testing.T) {
	refuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("the key was not sent: %v", r.Header)
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"detail":"this key may not send events"}`)
	}))
	defer refuse.Close()
	s := traffic.NewSender(traffic.SenderConfig{URL: refuse.URL, Key: "secret", Connections: 2, Batch: 10})
	if err := s.Run(t.Context(), &numbered{end: 1000}); err == nil || !strings.Contains(err.Error(), "this key may not send events") {
		t.Errorf("the error is %v", err)
	}
	f, url := newFickle(t)
	f.calm = true
	broken := errors.New("the source is broken")
	s = traffic.NewSender(traffic.SenderConfig{URL: url, Connections: 2, Batch: 10})
	if err := s.Run(t.Context(), &numbered{end: 100, err: broken}); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	// Whoever has enough of it gets no error, and what was sent is taken.
	ctx, cancel := context.WithCancel(t.Context())
	s = traffic.NewSender(traffic.SenderConfig{URL: url, Connections: 2, Batch: 10})
	time.AfterFunc(100*time.Millisecond, cancel)
	err := s.Run(ctx, &numbered{end: 1 << 30, every: time.Millisecond, start: time.Now()})
	if r := s.Report(); err != nil || r.Sent != r.Accepted+r.Rejected || r.Sent == 0 {
		t.Errorf("%v, %+v", err, r)
	}
}
