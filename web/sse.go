package web

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// listener is one client of server-sent events: of one question.
type listener struct {
	mu      sync.Mutex
	pending *message // the newest that was not sent
	time    *pingMessage
	retry   time.Duration // not 0: it has to go
	wake    chan struct{} // holds one while something is to be sent
}

func (s *listener) offer(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = m
	s.rouse()
}

func (s *listener) ping(p *pingMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = p
	s.rouse()
}

func (s *listener) leave(retry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retry = retry
	s.rouse()
}

func (s *listener) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// expel ends the stream: when it comes again it is told why.
func (s *listener) expel() { s.leave(leastRetry) }

// cut has nothing to do: the server closes the connections of its requests.
func (s *listener) cut() {}

// take returns what is to be sent, and whether that is the end.
func (s *listener) take() (text []byte, end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil {
		text = append(text, s.pending.sse()...)
		s.pending = nil
	}
	if s.time != nil {
		text = append(text, sseEvent("ping", "", s.time.text())...)
		s.time = nil
	}
	if s.retry > 0 {
		text = append(text, retryHint(s.retry)+"\n\n"...)
	}
	return text, s.retry > 0
}

// stream answers a question for as long as the client listens.
//
// EventSource gives up for good at any status but 200. That is right for a question
// that is wrong; but what passes, such as a server that has just started, is told as
// an event, and the end of the stream makes it come again.
func (h *hub) stream(w http.ResponseWriter, r *http.Request, q question) error {
	s := &listener{wake: make(chan struct{}, 1)}
	to := &sseWriter{w: w, deadlines: http.NewResponseController(w)}
	if err := h.admit(s, r); err != nil {
		return to.refuse(err)
	}
	defer h.dismiss(s)
	watching := h.watch(r.Context(), q, r.Header.Get("Last-Event-ID"), s.offer)
	defer watching.end()
	if p := s.fault(); p != nil {
		return p
	}
	if err := to.begin(); err != nil {
		return err
	}
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-s.wake:
		}
		text, end := s.take()
		if err := to.send(text); err != nil || end {
			return nil // the client has gone, or is too slow
		}
	}
}

// fault returns what is wrong with the question, if the first message says so.
func (s *listener) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.pending; m != nil && m.problem != nil && m.problem.Status < http.StatusInternalServerError {
		return m.problem
	}
	return nil
}

// sseWriter writes events to one client.
type sseWriter struct {
	w         http.ResponseWriter
	deadlines *http.ResponseController
}

// begin sends the header, and when to come back should the server vanish: not all at once.
func (s *sseWriter) begin() error {
	if err := s.deadlines.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if to, ok := s.w.(*response); ok {
		to.unmeasured = true // it takes as long as the client stays
	}
	header := s.w.Header()
	header.Set("Content-Type", streamType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would keep events back
	s.w.WriteHeader(http.StatusOK)
	retry := leastRetry + rand.N(4*time.Second) //nolint:gosec // nobody gains by guessing it
	return s.send([]byte(retryHint(retry) + "\n\n"))
}

func (s *sseWriter) send(text []byte) error {
	if err := s.deadlines.SetWriteDeadline(time.Now().Add(liveWriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.deadlines.Flush()
}

// refuse tells why there is no stream now.
func (s *sseWriter) refuse(err error) error {
	p := problemOf(err, false)
	if p.Status < http.StatusInternalServerError {
		return p
	}
	if s.begin() == nil {
		_ = s.send((&message{body: p.text(), problem: p}).sse()) // it may have gone
	}
	return nil
}

// sseEvent returns an event; data has no line breaks.
func sseEvent(event, id string, data []byte) []byte {
	var b bytes.Buffer
	b.WriteString("event: " + event + "\n")
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}
