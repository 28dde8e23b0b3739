package web_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tidemark/web"
	"tidemark/web/keys"
)

// guarded is an API that asks for keys.
type guarded struct {
	http.Handler
	ring *keys.Ring
	text map[string]string // of each key, by its name
	log  bytes.Buffer
	reg  *prometheus.Registry
}

// guard returns an API with keys of these names; cfg is changed as it is told.
func guard(t *testing.T, made []keys.Key, change func(*web.Config)) *guarded {
	t.Helper()
	g := &guarded{text: make(map[string]string), reg: prometheus.NewRegistry()}
	file := filepath.Join(t.TempDir(), "keys.json")
	for _, want := range made {
		k, text, err := keys.New(want.Name, want.Scopes, want.Binding, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		k.Revoked, g.text[want.Name] = want.Revoked, text
		if err := keys.Edit(file, func(all []keys.Key) ([]keys.Key, error) { return append(all, k), nil }); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if g.ring, err = keys.Open(file); err != nil {
		t.Fatal(err)
	}
	cfg := web.Config{
		Questions: engine(t),
		Ready:     func(context.Context) error { return nil },
		Events:    &acceptor{receipt: web.Receipt{Accepted: 1}},
		Keys:      g.ring,
		Metrics:   promhttp.HandlerFor(g.reg, promhttp.HandlerOpts{}),
		Requests:  web.NewMetrics(g.reg),
		Logger:    slog.New(slog.NewTextHandler(&g.log, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	g.Handler = web.New(cfg)
	return g
}

// do sends a request. One of a method with a body has an event in it.
func (g *guarded) do(t *testing.T, method, target string, header ...string) *http.Response {
	t.Helper()
	newBody := func() *strings.Reader {
		if method == http.MethodPost {
			return strings.NewReader(event)
		}
		return strings.NewReader("")
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, newBody())
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "remote" {
			r.RemoteAddr = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	if method != http.MethodOptions {
		again := httptest.NewRequestWithContext(t.Context(), method, target, newBody())
		again.Header = r.Header
		validate(t, again, w)
	}
	return w.Result()
}

var revoked = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// theKeys are one of each kind.
var theKeys = []keys.Key{
	{Name: "reader", Scopes: []keys.Scope{keys.Read}},
	{Name: "sender", Scopes: []keys.Scope{keys.Ingest}},
	{Name: "both", Scopes: []keys.Scope{keys.Read, keys.Ingest}},
	{Name: "admin", Scopes: []keys.Scope{keys.Admin}},
	{Name: "item", Scopes: []keys.Scope{keys.Read}, Binding: keys.Binding{Item: "item-0"}},
	{Name: "value", Scopes: []keys.Scope{keys.Read}, Binding: keys.Binding{Dimension: "country", Value: "DE"}},
	{Name: "question", Scopes: []keys.Scope{keys.Read}, Binding: keys.Binding{Question: "/v1/top?limit=3"}},
	{Name: "revoked", Scopes: []keys.Scope{keys.Admin}, Revoked: &revoked},
}

func TestWhoMayDoWhat(t *testing.T) {
	g := guard(t, theKeys, nil)
	all := []string{"reader", "sender", "both", "admin", "item", "value", "question"}
	for _, tt := range []struct {
		method, target string
		may            string // the keys that may; the others are told 403
	}{
		{"GET", "/v1/viewers", "reader both admin"},
		{"GET", "/v1/viewers?item=item-0", "reader both admin item"},
		{"GET", "/v1/counts?item=item-0&item=item-1", "reader both admin"},
		{"GET", "/v1/outcomes?item=item-0", "reader both admin item"},
		{"GET", "/v1/counts?dimension=country&value=DE", "reader both admin value"},
		{"GET", "/v1/counts?dimension=country&value=AT", "reader both admin"},
		{"GET", "/v1/top?dimension=country&value=DE", "reader both admin value"},
		{"GET", "/v1/top?limit=3", "reader both admin question"},
		{"GET", "/v1/top", "reader both admin"},
		{"GET", "/v1/items", "reader both admin"},
		{"GET", "/v1/status", "reader both admin"},
		{"GET", "/metrics", "reader both admin"},
		{"POST", "/v1/events", "sender both admin"},
		{"POST", "/v1/events?history=true", "admin"},
		{"GET", "/healthz", "reader sender both admin item value question"},
		{"GET", "/readyz/ingest", "reader sender both admin item value question"},
	} {
		for _, name := range all {
			want := http.StatusForbidden
			if strings.Contains(" "+tt.may+" ", " "+name+" ") {
				want = http.StatusOK
			}
			r := g.do(t, tt.method, tt.target, "Authorization", "Bearer "+g.text[name])
			if r.StatusCode != want {
				t.Errorf("%s %s with the key of %s: %d, want %d: %s", tt.method, tt.target, name, r.StatusCode, want, body(t, r))
			}
			if tt.method != "GET" || strings.HasPrefix(tt.target, "/healthz") || strings.HasPrefix(tt.target, "/readyz") {
				continue
			}
			join := "?"
			if strings.Contains(tt.target, "?") {
				join = "&"
			}
			r = g.do(t, tt.method, tt.target+join+"key="+g.text[name])
			if name == "sender" || name == "both" || name == "admin" { // they may more than read
				want = http.StatusUnauthorized
			}
			if r.StatusCode != want {
				t.Errorf("%s %s with the key of %s in the URL: %d, want %d: %s", tt.method, tt.target, name, r.StatusCode, want, body(t, r))
			}
		}
	}
	for _, text := range g.text {
		if strings.Contains(g.log.String(), text) {
			t.Error("a key stands in the log")
		}
	}
}

// Whoever is refused is told what helps the owner of a key, and nothing of other keys.
func TestWhyAKeyIsRefused(t *testing.T) {
	g := guard(t, theKeys, nil)
	for _, tt := range []struct {
		name, target, authorization string
		status                      int
		detail, challenge           string
	}{
		{"none", "/v1/top", "", 401, "this server asks for a key", `Bearer realm="tidemark"`},
		{"empty", "/v1/top?key=", "", 401, "this server asks for a key", `Bearer realm="tidemark"`},
		{"unknown", "/v1/top", "Bearer tidemark_x", 401, "no such key", `Bearer realm="tidemark", error="invalid_token"`},
		{"cut off", "/v1/top", "Bearer " + g.text["reader"][:40], 401, "no such key", `Bearer realm="tidemark", error="invalid_token"`},
		{"revoked", "/v1/top", "Bearer " + g.text["revoked"], 401, "was revoked at 2026-01-02T03:04:05Z", `Bearer realm="tidemark", error="invalid_token"`},
		{"another scheme", "/v1/top", "Basic eDp5", 401, "must be Bearer KEY", `Bearer realm="tidemark", error="invalid_request"`},
		{"no text", "/v1/top", "Bearer", 401, "must be Bearer KEY", `Bearer realm="tidemark", error="invalid_request"`},
		{"in the URL", "/v1/top?key=" + g.text["admin"], "", 401, "must not stand in a URL", `Bearer realm="tidemark", error="invalid_request"`},
		{"scope", "/v1/top", "bearer " + g.text["sender"], 403, "may ingest, and this needs one that may read", ""},
		{"item", "/v1/viewers?item=b", "Bearer " + g.text["item"], 403, `may read of item "item-0" only`, ""},
		{"value", "/v1/viewers", "Bearer " + g.text["value"], 403, `may read of country "DE" only`, ""},
		{"question", "/v1/top", "Bearer " + g.text["question"], 403, "may read of /v1/top?limit=3 only", ""},
	} {
		header := []string{}
		if tt.authorization != "" {
			header = append(header, "Authorization", tt.authorization)
		}
		r := g.do(t, "GET", tt.target, header...)
		if detail := problem(t, r, tt.status); !strings.Contains(detail, tt.detail) {
			t.Errorf("%s: %s", tt.name, detail)
		}
		if got := r.Header.Get("WWW-Authenticate"); got != tt.challenge {
			t.Errorf("%s: WWW-Authenticate: %s", tt.name, got)
		}
	}
	want := `# HELP tidemark_http_refused_total Requests that their sender may not make, by reason. key: none, or one that is wrong or revoked; scope, binding: a key that may do other things; origin: a page that --allow-origins does not name; limit_requests, limit_events: more than --limit-requests or --limit-events let one client. The log has samples.
# TYPE tidemark_http_refused_total counter
tidemark_http_refused_total{reason="binding"} 3
tidemark_http_refused_total{reason="key"} 8
tidemark_http_refused_total{reason="scope"} 1
`
	if err := testutil.GatherAndCompare(g.reg, strings.NewReader(want), "tidemark_http_refused_total"); err != nil {
		t.Error(err)
	}
}

// As long as there are no keys everybody may do all, also with one.
func TestWithoutKeysAllIsOpen(t *testing.T) {
	g := guard(t, nil, nil)
	for _, target := range []string{"/v1/viewers", "/v1/viewers?key=tidemark_x", "/v1/viewers?key=a&item=b", "/metrics", "/v1/status"} {
		if r := g.do(t, "GET", target); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", target, r.StatusCode, body(t, r))
		}
	}
	if r := g.do(t, "POST", "/v1/events?history=true", "Authorization", "Basic eDp5"); r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, body(t, r))
	}
}

func TestPagesOfOtherOrigins(t *testing.T) {
	one := func(c *web.Config) { c.Origins = web.Origins{"https://a.example", "https://b.example:8443"} }
	every := func(c *web.Config) { c.Origins = web.Origins{"*"} }
	for _, tt := range []struct {
		origins func(*web.Config)
		origin  string
		allowed bool
	}{
		{nil, "https://a.example", false},
		{one, "https://a.example", true},
		{one, "https://A.example", true},
		{one, "https://b.example:8443", true},
		{one, "https://b.example", false},
		{one, "http://a.example", false},
		{one, "https://a.example.evil.example", false},
		{one, "null", false},
		{every, "https://c.example", true},
		{every, "null", true},
	} {
		g := guard(t, nil, tt.origins)
		header := []string{"Origin", tt.origin, "Sec-Fetch-Site", "cross-site"}
		want := map[bool]string{true: tt.origin}[tt.allowed]

		for _, target := range []string{"/v1/top", "/v1/top?limit=0", "/v1/nothing"} { // errors too
			r := g.do(t, "GET", target, header...)
			if got := r.Header.Get("Access-Control-Allow-Origin"); got != want || !strings.Contains(strings.Join(r.Header.Values("Vary"), ","), "Origin") {
				t.Errorf("GET %s from %s: may read: %q", target, tt.origin, got)
			}
		}
		status := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[tt.allowed]
		if r := g.do(t, "POST", "/v1/events", header...); r.StatusCode != status || r.Header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("POST from %s: %d %s", tt.origin, r.StatusCode, body(t, r))
		}
		status = map[bool]int{true: http.StatusNoContent, false: http.StatusForbidden}[tt.allowed]
		r := g.do(t, "OPTIONS", "/v1/events", append(header, "Access-Control-Request-Method", "POST")...)
		if r.StatusCode != status || r.Header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("preflight from %s: %d %s", tt.origin, r.StatusCode, body(t, r))
		}
		if tt.allowed && (r.Header.Get("Access-Control-Allow-Methods") != "POST" || !strings.Contains(r.Header.Get("Access-Control-Allow-Headers"), "Authorization")) {
			t.Errorf("preflight from %s: %v", tt.origin, r.Header)
		}
	}
	// A page of this server, and a program, need no leave.
	g := guard(t, nil, nil)
	for _, header := range [][]string{nil, {"Origin", "http://example.com", "Sec-Fetch-Site", "same-origin"}} {
		if r := g.do(t, "POST", "/v1/events", header...); r.StatusCode != http.StatusOK {
			t.Errorf("%v: %d", header, r.StatusCode)
		}
	}
	if r := g.do(t, "OPTIONS", "/v1/top"); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("OPTIONS of no page: %d", r.StatusCode)
	}
}

// A preflight has no key: it is answered before any is asked for.
func TestPreflightNeedsNoKey(t *testing.T) {
	g := guard(t, theKeys, func(c *web.Config) { c.Origins = web.Origins{"https://a.example"} })
	r := g.do(t, "OPTIONS", "/v1/top", "Origin", "https://a.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")
	if r.StatusCode != http.StatusNoContent {
		t.Errorf("%d", r.StatusCode)
	}
	// And a page of an allowed origin can read why it is refused.
	r = g.do(t, "GET", "/v1/top", "Origin", "https://a.example")
	if r.StatusCode != http.StatusUnauthorized || r.Header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
}

// Each client has its own limit; who is over it is told when to come again, and then
// is served.
func TestLimitsByClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, theKeys, func(c *web.Config) {
			c.Limits = web.Limits{Requests: 2}
			c.Proxies = web.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
		})
		served := func(who ...string) int {
			for n := range 1000 {
				r := g.do(t, "GET", "/v1/status", who...)
				if r.StatusCode == http.StatusTooManyRequests {
					if r.Header.Get("Retry-After") != "1" {
						t.Errorf("%v: Retry-After %q", who, r.Header.Get("Retry-After"))
					}
					return n
				}
				if r.StatusCode != http.StatusOK {
					t.Fatalf("%v: %d %s", who, r.StatusCode, body(t, r))
				}
			}
			return -1
		}
		read, other, admin := "Bearer "+g.text["reader"], "Bearer "+g.text["both"], "Bearer "+g.text["admin"]
		for _, tt := range []struct {
			name string
			who  []string
			want int
		}{
			{"one", []string{"remote", "192.0.2.1:1", "Authorization", read}, 10},
			{"another address", []string{"remote", "192.0.2.2:1", "Authorization", read}, 10},
			{"the same from another port", []string{"remote", "192.0.2.2:77", "Authorization", read}, 0},
			{"the same with another key", []string{"remote", "192.0.2.2:77", "Authorization", other}, 10},
			{"who says that it is somebody else", []string{"remote", "192.0.2.2:1", "Authorization", read, "X-Forwarded-For", "192.0.2.9"}, 0},
			{"behind a proxy", []string{"remote", "10.1.1.1:1", "Authorization", read, "X-Forwarded-For", "192.0.2.3"}, 10},
			{"the same over another proxy", []string{"remote", "[fd00::1]:1", "Authorization", read, "X-Forwarded-For", "198.51.100.7, 192.0.2.3:99, 10.9.9.9"}, 0},
			{"a proxy itself", []string{"remote", "10.1.1.1:1", "Authorization", read}, 10},
			{"who writes nonsense through a proxy", []string{"remote", "10.1.1.1:1", "Authorization", read, "X-Forwarded-For", "192.0.2.77, x"}, 0},
			{"IPv6", []string{"remote", "[2001:db8::1]:1", "Authorization", read}, 10},
			{"the same network", []string{"remote", "[2001:db8::ffff:2]:1", "Authorization", read}, 0},
			{"this machine", []string{"remote", "127.0.0.1:1", "Authorization", read}, -1},
			{"an administrator", []string{"remote", "192.0.2.1:1", "Authorization", admin}, -1},
		} {
			if got := served(tt.who...); got != tt.want {
				t.Errorf("%s: %d requests were served, want %d", tt.name, got, tt.want)
			}
		}
		time.Sleep(time.Second)
		if got := served("remote", "192.0.2.1:1", "Authorization", read); got != 2 {
			t.Errorf("after a second: %d", got)
		}
		// Whoever guesses keys is limited too.
		tried := 0
		for ; g.do(t, "GET", "/v1/status", "remote", "192.0.2.66:1", "Authorization", fmt.Sprint("Bearer ", tried)).StatusCode == http.StatusUnauthorized; tried++ {
		}
		if tried != 10 {
			t.Errorf("%d keys were tried", tried)
		}
		if r := g.do(t, "GET", "/healthz", "remote", "192.0.2.66:1"); r.StatusCode != http.StatusOK {
			t.Errorf("/healthz: %d", r.StatusCode)
		}
	})
}

// A client that has sent more events than it may has to wait until that is made up for.
func TestLimitOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, theKeys, func(c *web.Config) {
			c.Limits = web.Limits{Events: 100}
			c.Events = &acceptor{receipt: web.Receipt{Accepted: 700, Rejected: 100}}
		})
		send := func() *http.Response {
			return g.do(t, "POST", "/v1/events", "remote", "192.0.2.1:1", "Authorization", "Bearer "+g.text["sender"])
		}
		if r := send(); r.StatusCode != http.StatusOK { // 800, and 500 may come at once
			t.Fatalf("%d %s", r.StatusCode, body(t, r))
		}
		r := send()
		if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") != "4" {
			t.Errorf("%d, Retry-After %s", r.StatusCode, r.Header.Get("Retry-After"))
		}
		time.Sleep(4 * time.Second)
		if r := send(); r.StatusCode != http.StatusOK {
			t.Errorf("after the time that it was told: %d %s", r.StatusCode, body(t, r))
		}
	})
}
