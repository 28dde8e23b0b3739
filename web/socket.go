package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// protocol is the sub-protocol of the socket.
const protocol = "tidemark.v1"

// Times of a connection that watches.
const (
	// liveWriteTimeout is how long a client may take to accept a message. It is as
	// long as it takes who cannot keep up to be told the newest of several.
	liveWriteTimeout = 10 * time.Second
	// pongTimeout is how long a client may be silent: two pings that were not answered.
	pongTimeout = 40 * time.Second
	// closeTimeout is how long a client may take to answer a farewell.
	closeTimeout = 2 * time.Second
)

// Buffers of a connection. There are tens of thousands of them: what is read is
// short, what is written is framed once for all, and what the kernel takes for a
// client that does not read is old by the time it does.
const (
	readBuffer   = 512
	writeBuffer  = 1024
	kernelBuffer = 64 << 10
)

// Close codes. Clients come back after 1001 and 4000–4499, not after 4500–4999.
const (
	closeTooSlow = 4001
	closeWrong   = 4500
	closeKey     = 4501
	closeLimit   = 4502
)

// maxWatchName is how long the name of a watch may be, bytes.
const maxWatchName = 64

// socket is one client of the websocket. One goroutine reads; one that writes is
// there only while there is something to write.
type socket struct {
	hub     *hub
	visitor *visitor
	conn    *websocket.Conn
	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	watches map[string]*socketWatch // by name; of the reader

	mu      sync.Mutex
	ready   []*socketWatch // that have something to send, each once
	time    *pingMessage
	bye     *farewell // what it ends with
	writing bool
}

// socketWatch is one watch of a client, with the one-slot mailbox.
type socketWatch struct {
	name    string
	watch   *watch   // nil: its question was wrong
	pending *message // the newest that was not sent; guarded by socket.mu
	ended   bool     // guarded by socket.mu
}

type farewell struct {
	code   int
	reason string // at most 123 bytes
}

func (f *farewell) Error() string { return f.reason }

// upgrader makes a socket of a request. The pool has no New: then gorilla makes the
// buffers in the size that it was told.
func (h *hub) upgrader(refused *error) *websocket.Upgrader {
	return &websocket.Upgrader{
		HandshakeTimeout: liveWriteTimeout,
		ReadBufferSize:   readBuffer,
		WriteBufferSize:  writeBuffer,
		WriteBufferPool:  &writeBuffers,
		Subprotocols:     []string{protocol},
		CheckOrigin:      h.mayOpen,
		Error: func(_ http.ResponseWriter, _ *http.Request, status int, reason error) {
			*refused = &problem{Status: status, Detail: reason.Error()}
		},
	}
}

var writeBuffers sync.Pool

// livePath is that of the socket.
const livePath = "/v1/live"

// socket serves GET /v1/live.
func (h *hub) socket(w http.ResponseWriter, r *http.Request) error {
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		return &problem{Status: http.StatusUpgradeRequired, Detail: "this is a websocket; for server-sent events ask a question with Accept: text/event-stream"}
	}
	if offered := websocket.Subprotocols(r); len(offered) > 0 && !slices.Contains(offered, protocol) {
		return &problem{Status: http.StatusBadRequest, Detail: "Sec-WebSocket-Protocol: there is " + protocol}
	}
	s := &socket{hub: h, visitor: visitorOf(r), watches: make(map[string]*socketWatch)}
	if err := h.admit(s, r); err != nil {
		return err
	}
	to, sent := w.(*response)
	if sent {
		w = to.ResponseWriter // which can be taken over
	}
	var refused error
	conn, err := h.upgrader(&refused).Upgrade(w, r, nil)
	if err != nil {
		h.dismiss(s)
		return refused // nil where the connection is gone
	}
	if sent {
		to.status = http.StatusSwitchingProtocols
	}
	if tcp, ok := conn.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(kernelBuffer) // it works with another size too
	}
	conn.SetReadLimit(h.Live.MessageBytes)
	s.start(conn)
	return nil
}

// start begins to read and write: the handler returns, and so its buffers are free.
func (s *socket) start(conn *websocket.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = conn
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.read()
	s.write()
}

// read does what the client says until it goes.
func (s *socket) read() {
	defer s.end()
	s.conn.SetPongHandler(func(string) error { return s.conn.SetReadDeadline(time.Now().Add(pongTimeout)) })
	for {
		if err := s.conn.SetReadDeadline(time.Now().Add(pongTimeout)); err != nil {
			return
		}
		kind, from, err := s.conn.NextReader()
		if err == nil {
			err = s.obey(kind, from)
		}
		if err == nil {
			continue
		}
		if f, ok := errors.AsType[*farewell](err); ok {
			s.say(f)
		} else if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			s.hub.Requests.tooSlow()
			s.say(&farewell{closeTooSlow, "no answer to pings"})
		}
		return
	}
}

// end gives back what the client had.
func (s *socket) end() {
	s.cancel()
	for _, w := range s.watches {
		s.unwatch(w)
	}
	s.hub.dismiss(s)
	_ = s.conn.Close() // it may be closed
}

// say closes the connection with a code, unless it is doing so already.
func (s *socket) say(f *farewell) {
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(f.code, f.reason), time.Now().Add(closeTimeout)) // it may have gone
}

// command is what a client says.
type command struct {
	Watch   string `json:"watch"`
	URL     string `json:"url"`
	After   string `json:"after"`
	Unwatch string `json:"unwatch"`
}

// obey does what a message says. Its error ends the connection.
func (s *socket) obey(kind int, from io.Reader) error {
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	var c command
	if kind != websocket.TextMessage || json.Unmarshal(text, &c) != nil {
		return &farewell{closeWrong, `text messages are asked: {"watch": NAME, "url": URL} or {"unwatch": NAME}`}
	}
	switch {
	case c.Watch != "" && c.Unwatch == "":
		return s.watch(c)
	case c.Unwatch != "" && c.Watch == "":
		s.forget(c.Unwatch)
		return nil
	default:
		return &farewell{closeWrong, "either watch or unwatch is asked, with a name"}
	}
}

// watch begins to watch a question, in the place of what had its name. It waits for
// the first answer of a question that nobody watches: so a client has one question
// at a time computed for it alone.
func (s *socket) watch(c command) error {
	if len(c.Watch) > maxWatchName {
		return &farewell{closeWrong, fmt.Sprintf("watch: a name has at most %d bytes", maxWatchName)}
	}
	s.forget(c.Watch)
	if len(s.watches) >= s.hub.Live.Questions {
		return &farewell{closeLimit, fmt.Sprintf("at most %d questions at once by one connection", s.hub.Live.Questions)}
	}
	w := &socketWatch{name: c.Watch}
	s.watches[w.name] = w
	offer := func(m *message) { s.offer(w, m) }
	q, err := questionOf(c.URL)
	if err == nil {
		err = s.visitor.mayAsk(q)
	}
	if err != nil {
		offer(s.hub.problemMessage(s.ctx, c.URL, err))
		return nil
	}
	w.watch = s.hub.watch(s.ctx, q, c.After, offer)
	return nil
}

// forget ends the watch of a name, if there is one.
func (s *socket) forget(name string) {
	if w := s.watches[name]; w != nil {
		s.unwatch(w)
		delete(s.watches, name)
	}
}

func (s *socket) unwatch(w *socketWatch) {
	if w.watch != nil {
		w.watch.end()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.ended, w.pending = true, nil
}

// offer puts a message into the mailbox of a watch.
func (s *socket) offer(w *socketWatch, m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.ended {
		return
	}
	if w.pending == nil {
		s.ready = append(s.ready, w)
	}
	w.pending = m
	s.write()
}

func (s *socket) ping(p *pingMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = p
	s.write()
}

func (s *socket) leave(retry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bye = &farewell{websocket.CloseGoingAway, retryHint(retry)}
	s.write()
}

func (s *socket) expel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bye = &farewell{closeKey, "the key does not hold any more"}
	s.write()
}

func (s *socket) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close() // it may be closed
	}
}

// write begins to write, unless somebody does; mu is held.
func (s *socket) write() {
	if s.writing || s.conn == nil || s.ready == nil && s.time == nil && s.bye == nil {
		return
	}
	s.writing = true
	go s.writeAll()
}

// writeAll writes until there is nothing left.
func (s *socket) writeAll() {
	for {
		send := s.next()
		if send == nil {
			return
		}
		err := s.conn.SetWriteDeadline(time.Now().Add(liveWriteTimeout))
		if err == nil {
			err = send()
		}
		if err != nil {
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				s.hub.Requests.tooSlow()
			}
			_ = s.conn.Close() // which ends the reader too; a frame may be half written
			return             // writing stays true: nothing is written any more
		}
	}
}

// next takes what is to be written next; nil ends writing.
func (s *socket) next() func() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.bye == nil && len(s.ready) > 0 {
		w := s.ready[0]
		if s.ready = s.ready[1:]; len(s.ready) == 0 {
			s.ready = nil
		}
		m := w.pending
		if w.pending = nil; m == nil {
			continue // it was ended
		}
		return func() error {
			f, err := m.frame(w.name)
			if err != nil {
				return err
			}
			return s.conn.WritePreparedMessage(f)
		}
	}
	switch {
	case s.bye != nil:
		f := s.bye
		s.bye, s.ready, s.time = nil, nil, nil
		return func() error {
			s.say(f)
			return s.conn.SetReadDeadline(time.Now().Add(closeTimeout))
		}
	case s.time != nil:
		p := s.time
		s.time = nil
		return func() error {
			if err := s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(liveWriteTimeout)); err != nil {
				return err
			}
			return s.conn.WriteMessage(websocket.TextMessage, p.text())
		}
	}
	s.writing = false
	return nil
}
