package web_test

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/web"
	"tidemark/web/keys"
)

// A socket takes a key in each way that there is, watches what the key allows, and
// ends when the key is revoked; so does a stream.
func TestSocketsWithKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	add := func(b keys.Binding, scopes ...keys.Scope) string {
		k, text, err := keys.New("", scopes, b, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := keys.Edit(file, func(all []keys.Key) ([]keys.Key, error) { return append(all, k), nil }); err != nil {
			t.Fatal(err)
		}
		return text
	}
	reader, sender := add(keys.Binding{}, keys.Read), add(keys.Binding{}, keys.Ingest)
	bound := add(keys.Binding{Item: "a"}, keys.Read)
	ring, err := keys.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	l := serveLiveAs(t, web.Config{Questions: new(changing), Live: plenty, Keys: ring, Origins: web.Origins{"https://a.example"}})
	for _, tt := range []struct {
		name, query string
		protocols   []string
		header      http.Header
		status      int
	}{
		{"no key", "", []string{"tidemark.v1"}, nil, 401},
		{"a wrong one", "", []string{"tidemark.v1", "tidemark.key.x"}, nil, 401},
		{"a sender's", "", []string{"tidemark.v1", "tidemark.key." + sender}, nil, 403},
		{"sub-protocol", "", []string{"tidemark.v1", "tidemark.key." + reader}, nil, 101},
		{"sub-protocol first", "", []string{"tidemark.key." + reader, "tidemark.v1"}, nil, 101},
		{"URL", "?key=" + reader, nil, nil, 101},
		{"header", "", nil, http.Header{"Authorization": {"Bearer " + reader}}, 101},
		{"an origin that may", "?key=" + reader, nil, http.Header{"Origin": {"https://a.example"}}, 101},
		{"an origin that may not", "?key=" + reader, nil, http.Header{"Origin": {"https://b.example"}}, 403},
	} {
		d := websocket.Dialer{Subprotocols: tt.protocols}
		c, resp, err := d.DialContext(t.Context(), l.socket+tt.query, tt.header)
		if resp == nil || resp.StatusCode != tt.status {
			t.Errorf("%s: %v, %+v", tt.name, err, resp)
		}
		if c != nil {
			if len(tt.protocols) > 0 && c.Subprotocol() != "tidemark.v1" {
				t.Errorf("%s: sub-protocol %q", tt.name, c.Subprotocol())
			}
			_ = c.Close()
		}
	}
	s := l.dial(t, http.Header{"Authorization": {"Bearer " + bound}})
	for url, status := range map[string]int{"/v1/viewers?item=a": 0, "/v1/viewers?item=b": 403, "/v1/viewers": 403} {
		s.say(`{"watch":"w","url":%q}`, url)
		m := s.hear()
		if got := m.Error; status == 0 && got != nil || status != 0 && (got == nil || got.Status != status) {
			t.Errorf("%s: %+v", url, m)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url+"/v1/viewers?item=a", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + bound}, "Accept": {"text/event-stream"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %+v", err, resp)
	}
	defer resp.Body.Close()

	go ring.Watch(t.Context(), slog.New(slog.DiscardHandler))
	if err := keys.Edit(file, func(all []keys.Key) ([]keys.Key, error) {
		now := time.Now()
		all[len(all)-1].Revoked = &now
		return all, nil
	}); err != nil {
		t.Fatal(err)
	}
	_ = s.SetReadDeadline(time.Now().Add(patience))
	for err = nil; err == nil; {
		_, _, err = s.ReadMessage()
	}
	if !websocket.IsCloseError(err, 4501) {
		t.Errorf("the key was revoked, and the socket ends with %v", err)
	}
	_ = body(t, resp) // which ends
}
