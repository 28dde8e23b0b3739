package web_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/goleak"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/web"
	"tidemark/windows/windowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// engine answers about a small stream with everything in it.
func engine(tb testing.TB) *queries.Engine {
	tb.Helper()
	shape := windowstest.Shape{
		Seed: 2, Events: 3_000, Items: 200, Users: 2_500, Start: start, Span: 2 * time.Hour,
		NoUser: 0.1, Duplicates: 0.05, IDs: true, OddNames: true, Types: []string{"view", "like"}, Dims: [][]string{{"DE", "AT", ""}},
	}
	return queriestest.Setup{Partitions: 2, Dimensions: []string{"country"}}.Engine(tb, shape.Stream())
}

// handler is a whole API over it.
func handler(tb testing.TB, q web.Questions) http.Handler {
	tb.Helper()
	reg := prometheus.NewRegistry()
	return web.New(web.Config{
		Questions: q,
		Ready:     func(context.Context) error { return nil },
		Metrics:   promhttp.HandlerFor(reg, promhttp.HandlerOpts{}),
		Requests:  web.NewMetrics(reg),
		Logger:    slog.New(slog.DiscardHandler),
	})
}

// get asks, and holds request and response against openapi.json.
func get(t *testing.T, h http.Handler, target string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	validate(t, r, w)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func problem(t *testing.T, r *http.Response, status int) (detail string) {
	t.Helper()
	b := body(t, r)
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(b), &p); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	if r.StatusCode != status || p.Status != status || p.Title != http.StatusText(status) || p.Type != "about:blank" || p.Detail == "" {
		t.Errorf("status %d with %s, want a problem with %d", r.StatusCode, b, status)
	}
	if got := r.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("a problem of type %s", got)
	}
	return p.Detail
}

// TestAnswersAreAsDeclared asks every question in every form.
func TestAnswersAreAsDeclared(t *testing.T) {
	h := handler(t, engine(t))
	for _, q := range []string{
		"/v1/viewers", "/v1/viewers?item=a", "/v1/viewers?item=a&item=A&item=never", "/v1/viewers?item=a&item=A&together=true",
		"/v1/viewers?type=*", "/v1/viewers?type=view&type=like", "/v1/viewers?type=sale", "/v1/viewers?last=5m", "/v1/viewers?last=all",
		"/v1/viewers?from=2026-01-01T00:00:00Z&to=2026-01-01T00:30:00%2B00:00&step=minute", "/v1/viewers?step=hour&tz=Asia/Kathmandu",
		"/v1/viewers?step=month&type=*", "/v1/viewers?dimension=country", "/v1/viewers?dimension=country&step=day", "/v1/viewers?dimension=country&value=DE&item=a",
		"/v1/viewers?last=1h&at=2026-01-01T01:00:00Z", "/v1/counts", "/v1/counts?item=a&step=week", "/v1/counts?dimension=country&type=*",
		"/v1/top", "/v1/top?by=viewers&limit=1000", "/v1/top?type=*&limit=3", "/v1/top?viewers=false", "/v1/top?dimension=country", "/v1/top?dimension=country&value=AT&by=viewers", "/v1/top?last=1h", "/v1/top?by=rising&last=1m&at=2026-01-01T01:30:00Z", "/v1/top?by=rising&last=5m&dimension=country&at=2026-01-01T01:30:00Z", "/v1/top?by=rising&last=5m",
		"/v1/outcomes", "/v1/outcomes?item=a", "/v1/outcomes?item=a&item=b&last=all", "/v1/items", "/v1/items?prefix=item-1&limit=5", "/v1/items?prefix=", "/v1/status",
		"/healthz", "/readyz", "/metrics", "/openapi.json",
	} {
		r := get(t, h, q)
		b := body(t, r)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", q, r.StatusCode, b)
		}
		if q != "/metrics" && !json.Valid([]byte(b)) {
			t.Errorf("%s: %s", q, b)
		}
		if !strings.HasPrefix(q, "/v1/") {
			continue
		}
		r = get(t, h, q, "Accept", "text/csv")
		rows, err := csv.NewReader(r.Body).ReadAll()
		if err != nil || len(rows) == 0 || r.Header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" {
			t.Errorf("%s as CSV: %v, %v, %d rows", q, err, r.Header, len(rows))
		}
	}
}

// TestFieldsAreInTheOrderOfTheirImportance pins the text of an answer.
func TestFieldsAreInTheOrderOfTheirImportance(t *testing.T) {
	h := handler(t, engine(t))
	for query, want := range map[string]string{
		"/v1/viewers?item=a&from=2026-01-01T00:00:30Z&to=2026-01-01T01:59:30Z&step=hour": `{"item":"a","type":"view","from":"2026-01-01T00:00:00Z","to":"2026-01-01T02:00:00Z","complete":true,"final":true,"watermark":"2026-01-01T02:00:00Z",` +
			`"viewers":{"value":147,"low":147,"high":147,"method":"hll"},"counts":{"view":{"value":218,"low":218,"high":218,"method":"exact"}},"step":"hour","series":[` +
			`{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T01:00:00Z","complete":true,"viewers":{"value":80,"low":80,"high":80,"method":"hll"},"counts":{"view":{"value":95,"low":95,"high":95,"method":"exact"}}},` +
			`{"start":"2026-01-01T01:00:00Z","end":"2026-01-01T02:00:00Z","complete":true,"viewers":{"value":94,"low":94,"high":94,"method":"hll"},"counts":{"view":{"value":123,"low":123,"high":123,"method":"exact"}}}]}`,
		"/v1/top?limit=1": `{"by":"views","type":"view","from":"2026-01-01T00:00:00Z","to":"2026-01-01T02:00:00Z","complete":true,"final":true,"watermark":"2026-01-01T02:00:00Z","certified":true,` +
			`"items":[{"rank":1,"item":"item-0","views":{"value":384,"low":384,"high":384,"method":"exact"},"viewers":{"value":229,"low":229,"high":229,"method":"hll"}}]}`,
	} {
		if got := strings.TrimSpace(body(t, get(t, h, query))); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, want)
		}
	}
}

// TestRefusals says what is wrong, and with what status.
func TestRefusals(t *testing.T) {
	h := handler(t, engine(t))
	for _, c := range []struct {
		target string
		status int
		says   string
	}{
		{"/v1/viewers?itm=x", 400, "itm: unknown parameter; did you mean item?"},
		{"/v1/viewers?last=5x", 400, "last: "},
		{"/v1/viewers?item=%zz", 400, "query string"},
		{"/v1/viewers?a;b", 400, "query string"},
		{"/v1/viewers?from=1970-01-01&to=2100-01-01&step=minute", 422, "step: the range has more than 10000 steps of a minute"},
		{"/v1/viewers?dimension=county", 400, `dimension: "county" is not declared; declared: country`},
		{"/v1/viewers?" + strings.Repeat("item=x&", 101), 400, "item: at most 100"},
		{"/v1/viewers?from=2026-01-01&to=2026-01-04&step=minute&" + strings.Repeat("item=x&", 100), 422, "ask for fewer"},
		{"/v1/top?limit=5000", 400, "limit: "},
		{"/v1/status?x=1", 400, "Known here: none"},
		{"/v1/viewer", 404, "did you mean /v1/viewers?"},
		{"/v1", 404, "There are /v1/viewers, /v1/counts"},
		{"/v1/viewers/", 404, "did you mean /v1/viewers?"},
	} {
		if detail := problem(t, get(t, h, c.target), c.status); !strings.Contains(detail, c.says) {
			t.Errorf("%.80s: %q, want %q", c.target, detail, c.says)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPut} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/v1/viewers", http.NoBody))
		problem(t, w.Result(), http.StatusMethodNotAllowed)
		if w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow: %s", method, w.Header().Get("Allow"))
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/v1/viewers", http.NoBody))
	if w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
}

// failing answers with an error.
type failing struct{ err error }

func (f failing) Ask(context.Context, string, url.Values, time.Time) (queries.Reply, error) {
	if f.err == nil {
		panic("secret of the inside")
	}
	return nil, f.err
}

func (failing) Watermark() *time.Time { return nil }

// TestNothingOfTheInsideGetsOut makes the inside fail.
func TestNothingOfTheInsideGetsOut(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
	}{
		{errors.New("secret of the inside"), 500},
		{nil, 500},
		{fmt.Errorf("secret of the inside: %w", context.DeadlineExceeded), 503},
		{fmt.Errorf("wrapped: %w", &queries.Fault{Parameter: "x", Detail: "wrong"}), 400},
		{&queries.Fault{Parameter: "x", Detail: "wrong", Refused: true}, 422},
	} {
		r := get(t, handler(t, failing{c.err}), "/v1/top")
		if c.status == 503 && r.Header.Get("Retry-After") != "1" {
			t.Errorf("503 without Retry-After")
		}
		if detail := problem(t, r, c.status); strings.Contains(detail, "secret") {
			t.Errorf("%v: %s", c.err, detail)
		}
	}
	h := web.New(web.Config{
		Ready:  func(context.Context) error { return errors.New("secret of the inside") },
		Logger: slog.New(slog.DiscardHandler),
	})
	if detail := problem(t, get(t, h, "/readyz"), 503); strings.Contains(detail, "secret") {
		t.Error(detail)
	}
}

// blocked never answers before its context ends.
type blocked struct{ entered chan struct{} }

func (b blocked) Ask(ctx context.Context, _ string, _ url.Values, _ time.Time) (queries.Reply, error) {
	b.entered <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (blocked) Watermark() *time.Time { return nil }

// TestWhoGoesAwayStopsTheQuestion cancels a request while it is answered.
func TestWhoGoesAwayStopsTheQuestion(t *testing.T) {
	b := blocked{make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := httptest.NewRecorder()
		handler(t, b).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/top", http.NoBody))
	}()
	<-b.entered
	cancel()
	<-done
}

func TestAcceptDecidesTheForm(t *testing.T) {
	h := handler(t, engine(t))
	for accept, csv := range map[string]bool{
		"": false, "*/*": false, "text/html": false, "text/csv": true, "text/*": true, "application/json": false,
		"text/csv, application/json": false, "text/csv;q=0.5, application/json;q=0.9": false, "application/json;q=0.1, text/csv": true,
		"text/csv, */*;q=0.1": true, "text/csv;q=0": false, "text/csv;q=x": false, "nonsense": false,
	} {
		r := get(t, h, "/v1/top", "Accept", accept)
		if got := strings.HasPrefix(r.Header.Get("Content-Type"), "text/csv"); got != csv {
			t.Errorf("Accept %q: CSV %v, want %v", accept, got, csv)
		}
		if !slices.Contains(r.Header.Values("Vary"), "Accept") {
			t.Errorf("Accept %q: no Vary", accept)
		}
	}
}

// TestCSV pins the form of a table.
func TestCSV(t *testing.T) {
	h := handler(t, engine(t))
	got := body(t, get(t, h, "/v1/counts?item=a&item=never,+%22so%22&last=all", "Accept", "text/csv"))
	want := "item,from,to,complete,view,view_low,view_high,view_method\r\n" +
		"a,2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,true,218,218,218,exact\r\n" +
		"\"never, \"\"so\"\"\",2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,true,0,0,0,exact\r\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzQuery throws query strings at every question: no panic, no 500, and only
// what is declared.
func FuzzQuery(f *testing.F) {
	h := handler(f, engine(f))
	for _, s := range []string{
		"item=a&item=b&together=true&last=5m", "type=*&step=hour&tz=Asia/Kolkata&from=2026-01-01", "by=viewers&limit=10&dimension=country",
		"dimension=country&value=DE", "prefix=item&limit=3", "item=%00%ff&a=b", "from=0&to=1767225600000&step=month", "last=all&at=2026-01-01", "%", ";", "item=" + strings.Repeat("x", 2000),
	} {
		f.Add(uint8(0), s)
	}
	f.Fuzz(func(t *testing.T, path uint8, query string) {
		u := url.URL{Path: "/v1/" + queries.Paths[int(path)%len(queries.Paths)], RawQuery: query}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), http.NoBody)
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest && w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", u.String(), w.Code, w.Body)
		}
		if w.Body.Len() > 20<<20 {
			t.Errorf("%s: %d bytes", u.String(), w.Body.Len())
		}
	})
}
