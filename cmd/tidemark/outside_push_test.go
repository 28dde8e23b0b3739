package main_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"tidemark/windows/windowstest"
)

// watching is a client of a server's websocket.
type watching struct {
	*websocket.Conn
	t *testing.T
}

type heard struct {
	Watch  string
	ID     string
	Answer map[string]any
	Error  any
}

func (s *server) watch(t *testing.T) watching {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"tidemark.v1"}}
	c, _, err := d.Dial("ws"+strings.TrimPrefix(s.url, "http")+"/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return watching{c, t}
}

func (w watching) say(name, question, after string) {
	w.t.Helper()
	if err := w.WriteJSON(map[string]string{"watch": name, "url": question, "after": after}); err != nil {
		w.t.Fatal(err)
	}
}

// hear returns the next answer.
func (w watching) hear() (m heard) {
	w.t.Helper()
	_ = w.SetReadDeadline(time.Now().Add(time.Minute))
	for m.Watch == "" {
		m = heard{}
		if err := w.ReadJSON(&m); err != nil {
			w.t.Fatal(err)
		}
	}
	if m.Error != nil {
		w.t.Fatalf("%s: %v", m.Watch, m.Error)
	}
	return m
}

// timeless leaves out what passes with time alone.
func timeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"to", "watermark", "complete", "final"} {
			delete(v, name)
		}
		for _, x := range v {
			timeless(x)
		}
	case []any:
		for _, x := range v {
			timeless(x)
		}
	}
	return v
}

// TestWhatIsPushedIsTheAnswer holds what a client of the websocket is told against the
// GET with its instant, while the stream is paused; and it kills the server, and goes
// on where it was.
func TestWhatIsPushedIsTheAnswer(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	s := f.start(t)
	const n = 3000
	var events []windowstest.Event
	for i := range 100 { // what rises
		events = append(events, windowstest.Event{Item: "rocket", User: fmt.Sprint(i), Type: "view", ID: fmt.Sprint("rocket", i), Time: time.Now().UnixMilli()})
	}
	events = append(events, liveEvents(11, n+100)...)
	post := func(part, from, to int) {
		t.Helper()
		if status, body, err := send(s.url, events[from:to]); err != nil || status != 200 {
			t.Fatalf("part %d: %d %s %v", part, status, body, err)
		}
	}
	post(1, 0, n)
	settled(t, s.server, n)
	questions := []string{
		"/v1/top?last=5m", "/v1/top?by=viewers&last=10m&limit=3", "/v1/viewers?item=item-1&item=item-2&last=5m", "/v1/counts?step=minute&last=5m&type=*", "/v1/counts?type=view&type=like",
		"/v1/top?by=rising&last=1m", "/v1/viewers", "/v1/outcomes?last=5m", "/v1/items?limit=3",
	}
	c := s.watch(t)
	ids := make(map[string]string)
	check := func(m heard) {
		t.Helper()
		ids[m.Watch] = m.ID
		target := m.Watch
		if at, ok := m.Answer["to"].(string); ok && strings.Contains(target, "last=") {
			target += "&at=" + url.QueryEscape(at)
		} else if items, ok := m.Answer["items"].([]any); ok && strings.Contains(target, "last=") {
			target += "&at=" + url.QueryEscape(items[0].(map[string]any)["to"].(string))
		}
		var want map[string]any
		status, body := s.get(t, target)
		if err := json.Unmarshal([]byte(body), &want); err != nil || status != 200 {
			t.Fatalf("%s: %d %s", target, status, body)
		}
		if diff := cmp.Diff(timeless(want), timeless(m.Answer)); diff != "" {
			t.Errorf("%s: -GET +pushed:\n%s", target, diff)
		}
	}
	for _, q := range questions {
		c.say(q, q, "")
		m := c.hear()
		if rising, _ := m.Answer["items"].([]any); strings.Contains(q, "rising") && (len(rising) == 0 || rising[0].(map[string]any)["item"] != "rocket") {
			t.Errorf("%s: %v", q, m.Answer)
		}
		check(m)
	}
	// More comes, and all that is about all time is told again.
	post(2, n, n+100)
	settled(t, s.server, n+100)
	for old := fmt.Sprint(ids["/v1/counts?type=view&type=like"], ids["/v1/viewers"]); ; {
		m := c.hear()
		ids[m.Watch] = m.ID
		if !strings.Contains(old, ids["/v1/viewers"]) && !strings.Contains(old, ids["/v1/counts?type=view&type=like"]) {
			break
		}
	}
	s.end(t, syscall.SIGKILL)

	s = f.start(t)
	c = s.watch(t)
	c.say("/v1/viewers", "/v1/viewers", ids["/v1/viewers"])
	c.say("/v1/items?limit=3", "/v1/items?limit=3", "")
	if m := c.hear(); m.Watch != "/v1/items?limit=3" {
		t.Errorf("after a restart it was told what it knew: %+v", m)
	}
	post(3, n+100, n+200)
	settled(t, s.server, n+200)
	for seen := false; !seen; {
		m := c.hear()
		if seen = m.Watch == "/v1/viewers"; seen && m.ID == ids[m.Watch] {
			t.Errorf("the same id again: %+v", m)
		}
	}
}
