package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPages asks for what browsers ask for: declared, typed, with a policy, and what
// has not changed is not sent again.
func TestPages(t *testing.T) {
	h := handler(t, engine(t))
	for path, want := range map[string]struct {
		kind       string
		everywhere bool
		most       int // gzipped
	}{
		"/":          {"text/html; charset=utf-8", false, 2_000},
		"/item":      {"text/html; charset=utf-8", false, 2_000},
		"/status":    {"text/html; charset=utf-8", false, 2_000},
		"/page.js":   {"text/javascript; charset=utf-8", false, 90_000},
		"/page.css":  {"text/css; charset=utf-8", false, 10_000},
		"/icon.svg":  {"image/svg+xml", false, 2_000},
		"/widget.js": {"text/javascript; charset=utf-8", true, 15_000},
		"/client.js": {"text/javascript; charset=utf-8", true, 8_000},
		"/count.js":  {"text/javascript; charset=utf-8", true, 1_500},
	} {
		plain := get(t, h, path)
		text := body(t, plain)
		if plain.StatusCode != http.StatusOK || plain.Header.Get("Content-Type") != want.kind || plain.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %s %v", path, plain.Status, plain.Header)
		}
		if origin := plain.Header.Get("Access-Control-Allow-Origin"); (origin == "*") != want.everywhere {
			t.Errorf("%s: allowed for the origins %q", path, origin)
		}
		policy := plain.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %s", path, policy)
		}
		zipped := get(t, h, path, "Accept-Encoding", "br, gzip")
		short := body(t, zipped)
		if len(short) > want.most {
			t.Errorf("%s: %d bytes gzipped, at most %d are allowed", path, len(short), want.most)
		}
		r, err := gzip.NewReader(strings.NewReader(short))
		if err != nil {
			t.Fatal(path, err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != text {
			t.Errorf("%s: inflates to other bytes (%v)", path, err)
		}
		again := get(t, h, path, "If-None-Match", plain.Header.Get("Etag"))
		if again.StatusCode != http.StatusNotModified || body(t, again) != "" {
			t.Errorf("%s: %s for what has not changed", path, again.Status)
		}
		if changed := get(t, h, path, "If-None-Match", `W/"other"`); changed.StatusCode != http.StatusOK || body(t, changed) != text {
			t.Errorf("%s: %s for what has changed", path, changed.Status)
		}
	}
}

func TestPagesAreOnlyRead(t *testing.T) {
	w := httptest.NewRecorder()
	handler(t, engine(t)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/item", http.NoBody))
	problem(t, w.Result(), http.StatusMethodNotAllowed)
}
