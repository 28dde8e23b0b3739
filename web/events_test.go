package web_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidemark/web"
)

// acceptor answers as it is told, and remembers what it was given.
type acceptor struct {
	receipt     web.Receipt
	err         error
	unavailable string

	calls   int
	form    web.Form
	history bool
	body    string
}

func (a *acceptor) Accept(_ context.Context, e web.Events) (web.Receipt, error) {
	a.calls++
	b, err := io.ReadAll(e.Body)
	a.form, a.history, a.body = e.Form, e.History, string(b)
	if err != nil || e.Size != int64(len(b)) {
		return web.Receipt{}, errors.New("not the body that was sent")
	}
	return a.receipt, a.err
}

func (a *acceptor) Unavailable() string { return a.unavailable }

func eventsHandler(a *acceptor) http.Handler {
	return web.New(web.Config{Events: a, Ready: func(context.Context) error { return nil }, Logger: slog.New(slog.DiscardHandler)})
}

// post sends events, and holds request and response against openapi.json.
func post(t *testing.T, a *acceptor, target, body string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	eventsHandler(a).ServeHTTP(w, r)
	r.Body = io.NopCloser(strings.NewReader(body)) // for the validator
	validate(t, r, w)
	return w.Result()
}

const event = `{"item":"a"}`

func TestEventsAreTaken(t *testing.T) {
	for _, tt := range []struct {
		kind string
		form web.Form
		body string
	}{
		{"application/json", web.JSON, event},
		{"application/json; charset=UTF-8", web.JSON, "[" + event + "]"},
		{"application/x-ndjson", web.NDJSON, event}, // which is all that the validator reads
		{"text/csv; header=present", web.CSV, "item\na\n"},
		{"text/plain", web.AnyForm, event},
	} {
		a := &acceptor{receipt: web.Receipt{Accepted: 2, Rejected: 1, Errors: []web.Rejection{{Line: 4, Reason: "item: missing or empty"}}}}
		r := post(t, a, "/v1/events", tt.body, "Content-Type", tt.kind)
		if b := body(t, r); r.StatusCode != http.StatusOK || b != `{"accepted":2,"rejected":1,"errors":[{"line":4,"reason":"item: missing or empty"}]}`+"\n" {
			t.Errorf("%s: %d %s", tt.kind, r.StatusCode, b)
		}
		if a.form != tt.form || a.body != tt.body {
			t.Errorf("%s: given as %d: %q", tt.kind, a.form, a.body)
		}
	}
	for _, kind := range []string{"application/x-www-form-urlencoded", ""} { // which openapi.json has no name for
		a := &acceptor{receipt: web.Receipt{Accepted: 1}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/events?history=false", strings.NewReader(event))
		r.Header["Content-Type"] = []string{kind}
		w := httptest.NewRecorder()
		eventsHandler(a).ServeHTTP(w, r)
		if w.Code != http.StatusOK || a.form != web.AnyForm || w.Body.String() != `{"accepted":1,"rejected":0,"errors":[]}`+"\n" {
			t.Errorf("%q: %d %s, given as %d", kind, w.Code, w.Body, a.form)
		}
	}
}

func TestEventsOfAnyAge(t *testing.T) {
	for query, want := range map[string]bool{"": false, "?history=false": false, "?history=true": true} {
		a := &acceptor{receipt: web.Receipt{Accepted: 1}}
		if r := post(t, a, "/v1/events"+query, event, "Content-Type", "application/json"); r.StatusCode != http.StatusOK || a.history != want {
			t.Errorf("%q: %d, of any age: %v", query, r.StatusCode, a.history)
		}
	}
}

func TestNoEventInABody(t *testing.T) {
	r := post(t, &acceptor{receipt: web.Receipt{Rejected: 1, Errors: []web.Rejection{{Line: 1, Reason: "x"}}}}, "/v1/events", "{}", "Content-Type", "application/x-ndjson")
	if b := body(t, r); r.StatusCode != http.StatusUnprocessableEntity || b != `{"accepted":0,"rejected":1,"errors":[{"line":1,"reason":"x"}]}`+"\n" {
		t.Errorf("%d %s", r.StatusCode, b)
	}
}

func TestEventsAreRefused(t *testing.T) {
	full := &web.Refusal{Status: http.StatusTooManyRequests, Detail: "too many", RetryAfter: 2 * time.Second}
	tests := []struct {
		name   string
		a      acceptor
		target string
		header []string
		status int
		detail string
		retry  string
	}{
		{"a form that is not read", acceptor{}, "", []string{"Content-Type", "image/png"}, 415, `Content-Type "image/png": application/json, application/x-ndjson or text/csv is asked`, ""},
		{"a form of many parts", acceptor{}, "", []string{"Content-Type", "multipart/form-data; boundary=x"}, 415, "Content-Type", ""},
		{"no content type", acceptor{}, "", []string{"Content-Type", "json;;"}, 415, "Content-Type", ""},
		{"other letters", acceptor{}, "", []string{"Content-Type", "text/csv; charset=latin1"}, 415, "UTF-8", ""},
		{"packed otherwise", acceptor{}, "", []string{"Content-Encoding", "br"}, 415, `Content-Encoding "br": gzip, zstd or none is asked`, ""},
		{"packed twice", acceptor{}, "", []string{"Content-Encoding", "gzip, br"}, 415, "Content-Encoding", ""},
		{"unknown parameter", acceptor{}, "?histroy=true", nil, 400, "unknown parameter", ""},
		{"a parameter of no meaning", acceptor{}, "?history=yes", nil, 400, "true or false", ""},
		{"no query", acceptor{}, "?a;b", nil, 400, "query string", ""},
		{"from a page of others", acceptor{}, "", []string{"Sec-Fetch-Site", "cross-site"}, 403, "another origin", ""},
		{"from a page of others, an older browser", acceptor{}, "", []string{"Origin", "https://example.org"}, 403, "another origin", ""},
		{"too large", acceptor{err: &web.Refusal{Status: 413, Detail: "too large"}}, "", nil, 413, "too large", ""},
		{"unreadable", acceptor{err: &web.Refusal{Status: 400, Detail: "broken off"}}, "", nil, 400, "broken off", ""},
		{"too many", acceptor{err: full}, "", nil, 429, "too many", "2"},
		{"failed", acceptor{err: errors.New("of the inside")}, "", nil, 500, "the server failed", ""},
		{"not now", acceptor{unavailable: "the disk is full"}, "", nil, 503, "events cannot be taken now: the disk is full", "1"},
	}
	for _, tt := range tests {
		header := append([]string{}, tt.header...)
		if len(header) == 0 || header[0] != "Content-Type" {
			header = append(header, "Content-Type", "application/json")
		}
		r := post(t, &tt.a, "/v1/events"+tt.target, event, header...)
		if detail := problem(t, r, tt.status); !strings.Contains(detail, tt.detail) {
			t.Errorf("%s: %s, want %s", tt.name, detail, tt.detail)
		}
		if got := r.Header.Get("Retry-After"); got != tt.retry {
			t.Errorf("%s: Retry-After %q, want %q", tt.name, got, tt.retry)
		}
		if taken := tt.a.err != nil; taken != (tt.a.calls == 1) {
			t.Errorf("%s: given on %d times", tt.name, tt.a.calls)
		}
	}
	w := httptest.NewRecorder()
	eventsHandler(&acceptor{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events", http.NoBody))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("GET: %d, Allow %s", w.Code, w.Header().Get("Allow"))
	}
}

func TestReadyForEvents(t *testing.T) {
	a := &acceptor{}
	if r := get(t, eventsHandler(a), "/readyz/ingest"); r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, body(t, r))
	}
	a.unavailable = "the disk is full"
	r := get(t, eventsHandler(a), "/readyz/ingest")
	if detail := problem(t, r, http.StatusServiceUnavailable); detail != "events cannot be taken now: the disk is full" {
		t.Error(detail)
	}
	if r := get(t, eventsHandler(a), "/readyz"); r.StatusCode != http.StatusOK {
		t.Errorf("questions are not answered: %d", r.StatusCode)
	}
}
