package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// topic is one question that is watched.
type topic struct {
	question
	hub *hub

	mu      sync.Mutex
	watches map[*watch]struct{}
	last    *message // nil before the first answer
	asked   time.Time
	busy    bool          // it is being answered
	begun   chan struct{} // closed once there is an answer
}

// watch is one client's interest in a topic.
type watch struct {
	topic *topic
	seen  string // the id of what was offered last; guarded by topic.mu
	offer func(*message)
}

// watch makes a client hear of a question: what there is at once, unless it has seen
// that, and what comes after. It returns once the question has an answer.
func (h *hub) watch(ctx context.Context, q question, seen string, offer func(*message)) *watch {
	h.mu.Lock()
	t := h.topics[q.key]
	if t == nil {
		t = &topic{question: q, hub: h, watches: make(map[*watch]struct{}), begun: make(chan struct{})}
		h.topics[q.key] = t
		h.Requests.watched(len(h.topics))
	}
	w := &watch{topic: t, seen: seen, offer: offer}
	t.mu.Lock()
	h.mu.Unlock()
	t.watches[w] = struct{}{}
	if t.last != nil {
		h.Requests.told(w.tell(t.last))
	}
	first := t.last == nil && !t.busy
	t.mu.Unlock()
	if first {
		t.refresh(ctx)
	}
	select {
	case <-t.begun:
	case <-ctx.Done():
	}
	return w
}

// end ends a watch.
func (w *watch) end() {
	t, h := w.topic, w.topic.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watches, w)
	if len(t.watches) == 0 && h.topics[t.key] == t {
		delete(h.topics, t.key)
		h.Requests.watched(len(h.topics))
	}
}

// tell offers a message that the client has not seen; topic.mu is held.
func (w *watch) tell(m *message) (told int) {
	if m.id == w.seen {
		return 0
	}
	w.seen = m.id
	w.offer(m)
	return 1
}

func (t *topic) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.busy && time.Since(t.asked) >= tick-tick/100 // the clock may come a little early
}

// refresh has the question answered, and tells those who watch it if the answer is
// another one.
func (t *topic) refresh(ctx context.Context) {
	t.mu.Lock()
	if t.busy {
		t.mu.Unlock()
		return
	}
	t.busy, t.asked = true, time.Now()
	t.mu.Unlock()
	m := t.hub.message(ctx, t.question)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = false
	if ctx.Err() != nil {
		return // nobody watches any more, or the first who did has gone
	}
	if t.last == nil {
		close(t.begun)
	}
	t.last = m
	told := 0
	for w := range t.watches {
		told += w.tell(m)
	}
	t.hub.Requests.told(told)
}

// message is an answer, or a problem in the place of one, encoded for everybody.
type message struct {
	id      string
	body    []byte   // JSON
	problem *problem // nil: body is the answer

	mu     sync.Mutex
	event  []byte                                // as a server-sent event
	frames map[string]*websocket.PreparedMessage // by the name of the watch
}

// message asks a question.
func (h *hub) message(ctx context.Context, q question) *message {
	x, err := h.answers.get(ctx, q)
	var body []byte
	if err == nil {
		body, err = x.json()
	}
	if err != nil {
		return h.problemMessage(ctx, q.key, err)
	}
	return &message{id: idOf(body), body: body}
}

func (h *hub) problemMessage(ctx context.Context, key string, err error) *message {
	p := problemOf(err, ctx.Err() != nil)
	if p.cause != nil && ctx.Err() == nil {
		h.Logger.ErrorContext(ctx, "watched question failed", "question", key, "status", p.Status, "err", p.cause)
	}
	body := p.text()
	return &message{id: idOf(body), body: body, problem: p}
}

// What changes in an answer though nothing has happened: time. No string can hold
// these bytes, since a quote in a string has a backslash before it; and no member of
// these names holds a string that matters.
var passing = [][]byte{[]byte(`"to":"`), []byte(`"watermark":"`)}

// idOf returns an identifier of an answer: another one where it tells of something
// else. It is the same on every server and after every restart.
func idOf(body []byte) string {
	sum := sha256.New()
	for {
		at, name := -1, []byte(nil)
		for _, p := range passing {
			if i := bytes.Index(body, p); i >= 0 && (at < 0 || i < at) {
				at, name = i, p
			}
		}
		if at < 0 {
			break
		}
		sum.Write(body[:at])
		body = body[at+len(name):]
		body = body[bytes.IndexByte(body, '"')+1:]
	}
	sum.Write(body)
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:12])
}

// maxFrames is how many names of watches an answer is kept framed for.
const maxFrames = 32

// frame returns the message as a websocket sends it.
func (m *message) frame(name string) (*websocket.PreparedMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.frames[name]; f != nil {
		return f, nil
	}
	envelope := struct {
		Watch  string          `json:"watch"`
		ID     string          `json:"id,omitempty"`
		Answer json.RawMessage `json:"answer,omitempty"`
		Error  json.RawMessage `json:"error,omitempty"`
	}{Watch: name}
	if m.problem != nil {
		envelope.Error = m.body
	} else {
		envelope.ID, envelope.Answer = m.id, m.body
	}
	text, err := json.Marshal(envelope)
	if err != nil {
		return nil, err
	}
	f, err := websocket.NewPreparedMessage(websocket.TextMessage, text)
	if err != nil {
		return nil, err
	}
	if m.frames == nil {
		m.frames = make(map[string]*websocket.PreparedMessage)
	}
	if len(m.frames) < maxFrames {
		m.frames[name] = f
	}
	return f, nil
}

// sse returns the message as a server-sent event.
func (m *message) sse() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.event == nil {
		if m.problem != nil {
			m.event = sseEvent("error", "", m.body)
		} else {
			m.event = sseEvent("answer", m.id, m.body)
		}
	}
	return m.event
}
