package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"tidemark/queries"
	"tidemark/web"
)

// patience bounds a test that hangs.
const patience = 30 * time.Second

// changing answers every question with a number that a test moves on.
type changing struct {
	n      atomic.Int64
	asked  atomic.Int64
	filler string
}

type number struct {
	To        time.Time `json:"to"`
	N         int64     `json:"n"`
	Watermark time.Time `json:"watermark"`
	Filler    string    `json:"filler"`
}

func (number) Table() queries.Table { return queries.Table{Columns: []string{"n"}} }

func (c *changing) Ask(_ context.Context, path string, _ url.Values, now time.Time) (queries.Reply, error) {
	c.asked.Add(1)
	if path == "status" {
		return nil, &queries.Fault{Parameter: "x", Detail: "wrong"}
	}
	return number{now, c.n.Load(), now, c.filler}, nil
}

func (*changing) Watermark() *time.Time { return &start }

// live is a server of a test.
type live struct {
	url, socket string
	registry    *prometheus.Registry
	stop        func() error
}

func serveLive(t *testing.T, q web.Questions, limits web.LiveLimits) *live {
	t.Helper()
	return serveLiveAs(t, web.Config{Questions: q, Live: limits})
}

// serveLiveAs serves what is left out of cfg too.
func serveLiveAs(t *testing.T, cfg web.Config) *live {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	logger := slog.New(slog.DiscardHandler)
	cfg.Ready, cfg.Requests, cfg.Logger = func(context.Context) error { return nil }, web.NewMetrics(reg), logger
	h := web.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ctx, l, h, logger) }()
	s := &live{url: "http://" + l.Addr().String(), socket: "ws://" + l.Addr().String() + "/v1/live", registry: reg}
	s.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

var plenty = web.LiveLimits{Questions: 50, Clients: 10_000, MessageBytes: 16 << 10}

// told is a message of a socket.
type told struct {
	Watch     string
	ID        string
	Answer    json.RawMessage
	Error     *struct{ Status int }
	Ping      *time.Time
	Watermark *time.Time
}

type socket struct {
	*websocket.Conn
	t *testing.T
}

func (l *live) dial(t *testing.T, header http.Header) socket {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"tidemark.v1"}}
	c, resp, err := d.DialContext(t.Context(), l.socket, header)
	if err != nil {
		t.Fatalf("%v: %+v", err, resp)
	}
	t.Cleanup(func() { _ = c.Close() })
	if c.Subprotocol() != "tidemark.v1" {
		t.Errorf("sub-protocol %q", c.Subprotocol())
	}
	return socket{c, t}
}

func (s socket) say(format string, args ...any) {
	s.t.Helper()
	if err := s.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...)); err != nil {
		s.t.Fatal(err)
	}
}

// hear returns the next message that is no ping.
func (s socket) hear() (m told) {
	s.t.Helper()
	_ = s.SetReadDeadline(time.Now().Add(patience))
	for {
		m = told{}
		if err := s.ReadJSON(&m); err != nil {
			s.t.Fatal(err)
		}
		if m.Ping == nil {
			return m
		}
	}
}

// end returns the close code that the server ends with.
func (s socket) end() (code int, reason string) {
	s.t.Helper()
	_ = s.SetReadDeadline(time.Now().Add(patience))
	for {
		_, _, err := s.ReadMessage()
		if e, ok := errors.AsType[*websocket.CloseError](err); ok {
			return e.Code, e.Text
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func numberOf(t *testing.T, text []byte) int64 {
	t.Helper()
	var n number
	if err := json.Unmarshal(text, &n); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return n.N
}

// TestSocketTellsWhatChanges watches two questions, and goes on from what it has seen.
func TestSocketTellsWhatChanges(t *testing.T) {
	q := new(changing)
	l := serveLive(t, q, plenty)
	s := l.dial(t, nil)
	s.say(`{"watch": "a", "url": "/v1/top?last=5m"}`)
	first := s.hear()
	if first.Watch != "a" || first.ID == "" || numberOf(t, first.Answer) != 0 {
		t.Fatalf("%+v", first)
	}
	q.n.Store(1)
	second := s.hear()
	if second.Watch != "a" || second.ID == first.ID || numberOf(t, second.Answer) != 1 {
		t.Fatalf("%+v", second)
	}
	// Time alone is no change; and what was seen before is not told again.
	other := l.dial(t, nil)
	other.say(`{"watch": "x", "url": "/v1/top?last=5m", "after": %q}`, second.ID)
	other.say(`{"watch": "y", "url": "/v1/viewers", "after": "unknown"}`)
	if m := other.hear(); m.Watch != "y" {
		t.Errorf("told again what was seen: %+v", m)
	}
	// The same name again is another question.
	s.say(`{"watch": "a", "url": "/v1/counts"}`)
	if m := s.hear(); m.Watch != "a" || numberOf(t, m.Answer) != 1 {
		t.Fatalf("%+v", m)
	}
	s.say(`{"unwatch": "a"}`)
	s.say(`{"unwatch": "never was"}`)
	s.say(`{"watch": "b", "url": "/v1/nothing"}`)
	if m := s.hear(); m.Watch != "b" || m.Error == nil || m.Error.Status != 404 {
		t.Fatalf("%+v", m)
	}
	s.say(`{"watch": "b", "url": "/v1/status"}`)
	if m := s.hear(); m.Watch != "b" || m.Error == nil || m.Error.Status != 400 {
		t.Fatalf("%+v", m)
	}
	q.n.Store(2)
	if m := other.hear(); numberOf(t, m.Answer) != 2 {
		t.Errorf("%+v", m)
	}
	if m := other.hear(); numberOf(t, m.Answer) != 2 {
		t.Errorf("%+v", m)
	}
	s.say(`{"watch": "end", "url": "/v1/counts"}`) // all between was not told to s
	if m := s.hear(); m.Watch != "end" || numberOf(t, m.Answer) != 2 {
		t.Errorf("%+v", m)
	}
}

// sseEvent is a server-sent one.
type sseEvent struct{ kind, id, data string }

// events returns a function that returns the next event but pings; what is no event is in before.
func events(t *testing.T, body io.Reader) func() (e sseEvent, before []string) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	return func() (e sseEvent, before []string) {
		t.Helper()
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.kind = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				if e.kind != "" && e.kind != "ping" {
					return e, before
				}
				e = sseEvent{}
			default:
				before = append(before, lines.Text())
			}
		}
		return e, before
	}
}

func (l *live) listen(t *testing.T, path, after string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// TestEventsAreTheSocketsMessages has one question by both ways.
func TestEventsAreTheSocketsMessages(t *testing.T) {
	q := new(changing)
	l := serveLive(t, q, plenty)
	s := l.dial(t, nil)
	s.say(`{"watch": "a", "url": "/v1/viewers?item=b&item=a"}`)
	resp := l.listen(t, "/v1/viewers?item=b&item=a", "")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	next := events(t, resp.Body)
	for n := range int64(2) {
		q.n.Store(n)
		m := s.hear()
		e, before := next()
		if n == 0 && (len(before) != 1 || !strings.HasPrefix(before[0], "retry: ")) {
			t.Errorf("no hint when to come again: %q", before)
		}
		if e.kind != "answer" || e.id != m.ID || e.data != string(m.Answer) || numberOf(t, m.Answer) != n {
			t.Errorf("event %+v, message %s %s", e, m.ID, m.Answer)
		}
		if n == 1 { // a resumed stream is told nothing until it changes
			resumed := events(t, l.listen(t, "/v1/viewers?item=b&item=a", e.id).Body)
			q.n.Store(2)
			if e, _ := resumed(); numberOf(t, []byte(e.data)) != 2 {
				t.Errorf("%+v", e)
			}
		}
	}
	wrong := l.listen(t, "/v1/status", "")
	if wrong.StatusCode != http.StatusBadRequest || wrong.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("a wrong question: %d %v", wrong.StatusCode, wrong.Header)
	}
}

// TestManyClientsOneAnswer has a question asked once a second for all.
func TestManyClientsOneAnswer(t *testing.T) {
	q := new(changing)
	l := serveLive(t, q, plenty)
	begin := time.Now()
	clients := make([]socket, 100)
	for i := range clients {
		clients[i] = l.dial(t, nil)
		clients[i].say(`{"watch": "w%d", "url": "/v1/top?limit=3&by=%s"}`, i%40, "views")
	}
	for n := range int64(3) {
		q.n.Store(n)
		for i, c := range clients {
			if m := c.hear(); numberOf(t, m.Answer) != n || m.Watch != fmt.Sprintf("w%d", i%40) {
				t.Fatalf("client %d heard %+v, want %d", i, m, n)
			}
		}
	}
	if asked, most := q.asked.Load(), int64(time.Since(begin)/time.Second)+2; asked > most {
		t.Errorf("asked %d times, want %d at most", asked, most)
	}
}

// TestSlowClientGetsTheNewest stops reading while answers change, and others go on.
func TestSlowClientGetsTheNewest(t *testing.T) {
	q := &changing{filler: strings.Repeat("x", 1<<20)}
	l := serveLive(t, q, plenty)
	slow, quick := l.dial(t, nil), l.dial(t, nil)
	// With it no socket holds a message, however much memory the kernel would give it.
	if err := slow.NetConn().(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	slow.say(`{"watch": "a", "url": "/v1/top"}`)
	quick.say(`{"watch": "a", "url": "/v1/top"}`)
	const last = 3
	for n := range int64(last + 1) {
		q.n.Store(n)
		if got := numberOf(t, quick.hear().Answer); got != n {
			t.Fatalf("heard %d, want %d", got, n)
		}
	}
	var heard []int64
	for len(heard) == 0 || heard[len(heard)-1] != last {
		heard = append(heard, numberOf(t, slow.hear().Answer))
	}
	if len(heard) > 2 {
		t.Errorf("a slow client heard %v: more than what was under way and the newest", heard)
	}
}

// TestLimits breaks each, and sees how the server ends it.
func TestLimits(t *testing.T) {
	l := serveLive(t, new(changing), web.LiveLimits{Questions: 2, Clients: 3, MessageBytes: 300})
	for _, c := range []struct {
		says []string
		code int
	}{
		{[]string{"no JSON"}, 4500},
		{[]string{`{}`}, 4500},
		{[]string{`{"watch": "a", "unwatch": "a"}`}, 4500},
		{[]string{`{"watch": "` + strings.Repeat("x", 65) + `", "url": "/v1/top"}`}, 4500},
		{[]string{`{"watch": "a", "url": "/v1/top"}`, `{"watch": "b", "url": "/v1/top"}`, `{"watch": "c", "url": "/v1/top"}`}, 4502},
		{[]string{`{"watch": "` + strings.Repeat("x", 1<<20) + `"}`}, websocket.CloseMessageTooBig},
	} {
		s := l.dial(t, nil)
		for _, text := range c.says {
			_ = s.WriteMessage(websocket.TextMessage, []byte(text)) // the end may come before it
		}
		if code, reason := s.end(); code != c.code {
			t.Errorf("%.60q: closed by %d %q, want %d", c.says, code, reason, c.code)
		}
		_ = s.Close()
	}
	l.waitFor(t, "tidemark_live_clients", 0)
	for range 3 {
		l.dial(t, nil)
	}
	if _, resp, err := websocket.DefaultDialer.Dial(l.socket, nil); err == nil || resp == nil || resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a fourth client of one address: %v, %+v", err, resp)
	}
	if resp := l.listen(t, "/v1/top", ""); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a fourth client of one address: %d %v", resp.StatusCode, resp.Header)
	}
}

// TestHandshake refuses who is no socket, speaks another protocol, or is a page of
// somebody else.
func TestHandshake(t *testing.T) {
	l := serveLive(t, new(changing), plenty)
	resp, err := http.Get(l.url + "/v1/live")
	if err != nil {
		t.Fatal(err)
	}
	problem(t, resp, http.StatusUpgradeRequired)
	for origin, status := range map[string]int{"https://evil.example": 403, "null": 403, l.url: 101, "": 101} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		c, resp, err := websocket.DefaultDialer.Dial(l.socket, header)
		if resp == nil || resp.StatusCode != status {
			t.Errorf("origin %q: %v, %+v", origin, err, resp)
		}
		if c != nil {
			_ = c.Close()
		}
	}
	d := websocket.Dialer{Subprotocols: []string{"graphql-ws"}}
	if _, resp, _ := d.Dial(l.socket, nil); resp == nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("another protocol: %+v", resp)
	}
}

// TestEndSpreadsWhoComesBack ends a server with clients of both kinds.
func TestEndSpreadsWhoComesBack(t *testing.T) {
	l := serveLive(t, new(changing), plenty)
	sockets := make([]socket, 30)
	for i := range sockets {
		sockets[i] = l.dial(t, nil)
		sockets[i].say(`{"watch": "a", "url": "/v1/top"}`)
		sockets[i].hear()
	}
	next := events(t, l.listen(t, "/v1/top", "").Body)
	next()
	stopped := make(chan error, 1)
	go func() { stopped <- l.stop() }()
	hints := make(map[string]bool)
	for _, s := range sockets {
		code, reason := s.end()
		if code != websocket.CloseGoingAway || !strings.HasPrefix(reason, "retry: ") {
			t.Errorf("closed by %d %q", code, reason)
		}
		hints[reason] = true
	}
	if len(hints) < len(sockets)/2 {
		t.Errorf("all come back together: %v", hints)
	}
	if e, before := next(); e.kind != "" || len(before) != 1 || !strings.HasPrefix(before[0], "retry: ") {
		t.Errorf("the stream ended with %+v %q", e, before)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestComingAndGoing leaves nothing behind: not of who says goodbye, nor of who just
// goes, in the middle of whatever.
func TestComingAndGoing(t *testing.T) {
	q := new(changing)
	l := serveLive(t, q, plenty)
	stop := make(chan struct{})
	var moving sync.WaitGroup
	moving.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				q.n.Add(1)
			}
		}
	})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for j := range 150 {
				c, _, err := websocket.DefaultDialer.Dial(l.socket, nil)
				if err != nil {
					t.Error(err)
					return
				}
				for k := range j % 4 {
					_ = c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"watch": "%d", "url": "/v1/top?limit=%d"}`, k, 1+(i+j+k)%20))
				}
				if j%3 == 0 && j%4 != 0 {
					_, _, _ = c.ReadMessage()
				}
				if j%2 == 0 {
					_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
				}
				_ = c.Close()
			}
		})
		clients.Go(func() {
			for range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/v1/counts?item="+fmt.Sprint(i), http.NoBody)
				if err != nil {
					t.Error(err)
				}
				r.Header.Set("Accept", "text/event-stream")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					cancel()
					return
				}
				_, _ = resp.Body.Read(make([]byte, 10))
				cancel()
				_ = resp.Body.Close()
			}
		})
	}
	clients.Wait()
	close(stop)
	moving.Wait()
	l.waitFor(t, "tidemark_live_clients", 0)
	l.waitFor(t, "tidemark_live_questions", 0)
}

// waitFor waits until a metric has a value.
func (l *live) waitFor(t *testing.T, name string, want float64) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		families, err := l.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			got := f.GetMetric()[0].GetGauge().GetValue()
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s is %v, want %v", name, got, want)
			}
		}
	}
}
