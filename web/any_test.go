package web_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/queries"
)

// TestAnyQuestion asks whatever parameters may say, right and wrong, in any
// combination: no panic, no 500, nothing without bounds, nothing undeclared.
func TestAnyQuestion(t *testing.T) {
	h := handler(t, engine(t))
	instants := []string{
		"2026-01-01", "2026-01-01T00:30:00Z", "2026-01-01T05:45:00%2B05:45", "1767225600000", "0", "2025-12-31", "2026-02-30", "2106-01-01", "x", "",
		"99999999999999", "-1", "1969-12-31", "2026-01-01T01:00:00", "2026-01-01T01:00:00.123456789Z",
	}
	pools := map[string][]string{
		"item":      {"a", "A", "item-0", "never", "", "%00", "%F0%9F%91%A9", "a%20b", "%ff"},
		"type":      {"view", "like", "*", "sale", "", "(other)"},
		"together":  {"true", "false", "maybe"},
		"dimension": {"country", "county", "(outcome)", ""},
		"value":     {"DE", "AT", "(other)", "nowhere", ""},
		"from":      instants, "to": instants, "at": instants,
		"last":     {"5m", "24h", "30d", "4w", "all", "0m", "999999999999d", "m", "1h30m"},
		"tz":       {"UTC", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia", "America/St_Johns", "Local", "x/y", ""},
		"step":     {"minute", "hour", "day", "week", "month", "year"},
		"by":       {"views", "viewers", "rising"},
		"limit":    {"1", "10", "1000", "1001", "0", "-1", "x"},
		"viewers":  {"true", "false", "x"},
		"prefix":   {"", "item-", "%ff", "a"},
		"bogus":    {"1"},
		"Item":     {"a"},
		"item%00":  {"a"},
		"callback": {"alert(1)"},
	}
	names := slices.Sorted(maps.Keys(pools))
	rapid.Check(t, func(rt *rapid.T) {
		path := "/v1/" + rapid.SampledFrom(queries.Paths).Draw(rt, "path")
		var query strings.Builder
		for range rapid.IntRange(0, 6).Draw(rt, "parameters") {
			name := rapid.SampledFrom(names).Draw(rt, "name")
			query.WriteString("&" + name + "=" + rapid.SampledFrom(pools[name]).Draw(rt, "value"))
		}
		u := url.URL{Path: path, RawQuery: query.String()}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), http.NoBody)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusUnprocessableEntity:
		default:
			rt.Fatalf("%s: %d %s", u.String(), w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) || w.Body.Len() > 8<<20 {
			rt.Fatalf("%s: %d bytes: %.200s", u.String(), w.Body.Len(), w.Body)
		}
		validate(t, r, w)
		if t.Failed() {
			rt.Fatalf("%s: not as declared", u.String())
		}
	})
}
