package web_test

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/queries"
)

// maxAnswer is how large an answer may be: as many steps as are allowed, each with its
// numbers.
const maxAnswer = queries.MaxCells * 600

// TestAnyQuestion asks whatever a query string may say, right, wrong and malformed:
// no panic, no 500, nothing without bounds, nothing undeclared. `make soak` asks a
// million different questions.
func TestAnyQuestion(t *testing.T) {
	questions := 20_000
	if os.Getenv("TIDEMARK_SOAK") != "" {
		questions = 1_000_000
	}
	h := handler(t, engine(t))
	var mu sync.Mutex
	seed, seen, statuses := maphash.MakeSeed(), make(map[uint64]bool), make(map[int]int)
	isNew := func(target string) bool {
		mu.Lock()
		defer mu.Unlock()
		hash := maphash.String(seed, target)
		known := seen[hash]
		seen[hash] = true
		return !known
	}
	var asking sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		asking.Go(func() {
			a := asker{t: t, h: h, r: rand.New(rand.NewPCG(uint64(worker), 11)), statuses: make(map[int]int)}
			for n := worker; n < questions && !t.Failed(); {
				u := a.question()
				if isNew(u.String()) {
					a.ask(u, n)
					n += workers
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for status, n := range a.statuses {
				statuses[status] += n
			}
		})
	}
	asking.Wait()
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusUnprocessableEntity} {
		if statuses[status] < questions/200 {
			t.Errorf("%d answers of status %d among %v: the questions are too much alike", statuses[status], status, statuses)
		}
	}
	t.Logf("%v", statuses)
}

// asker is one of those who ask.
type asker struct {
	t        *testing.T
	h        http.Handler
	r        *rand.Rand
	statuses map[int]int
}

// validateEvery is how many questions are held against openapi.json: it takes longer
// than an answer.
const validateEvery = 200

func (a *asker) ask(u url.URL, n int) {
	r := httptest.NewRequestWithContext(a.t.Context(), http.MethodGet, "/", http.NoBody)
	r.URL, r.RequestURI = &u, ""
	w := httptest.NewRecorder()
	a.h.ServeHTTP(w, r)
	a.statuses[w.Code]++
	switch w.Code {
	case http.StatusOK, http.StatusBadRequest, http.StatusUnprocessableEntity:
	default:
		a.t.Errorf("%s: %d %s", u.String(), w.Code, w.Body)
	}
	if !json.Valid(w.Body.Bytes()) || w.Body.Len() > maxAnswer {
		a.t.Errorf("%s: %d bytes: %.200s", u.String(), w.Body.Len(), w.Body)
	}
	// A type is a name in the answer; the validator knows none with a bracket for one.
	if n%validateEvery == 0 && !strings.Contains(u.RawQuery, "[") {
		if validate(a.t, r, w); a.t.Failed() {
			a.t.Errorf("%s: not as declared", u.String())
		}
	}
}

// right has for each parameter what it may say, wrong what it may not; wrong has also
// parameters that there are not.
var right, wrong = map[string][]string{
	"item":     {"a", "A", "item-0", "item-7", "never", "%F0%9F%91%A9", "a%20b"},
	"type":     {"view", "like", "*", "sale", "(other)"},
	"together": {"true", "false"},
	"value":    {"DE", "AT", "(other)", "nowhere"},
	"from":     {"2025-12-31", "2026-01-01T00:30:00Z", "2026-01-01T05:45:00%2B05:45", "1767225600000", "0", "1970-01-01"},
	"to":       {"2026-01-01T01:00:00.123456789Z", "2026-02-03", "1767232800000", "2105-12-31"},
	"at":       {"2026-01-01T01:30:00Z", "2026-01-02", "1767229200000"},
	"last":     {"5m", "24h", "30d", "4w", "all"},
	"tz":       {"UTC", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia", "America/St_Johns"},
	"step":     {"minute", "hour", "day", "week", "month"},
	"by":       {"views", "viewers"},
	"limit":    {"1", "10", "1000"},
	"prefix":   {"", "item-", "a"},
}, map[string][]string{
	"item":      {"", "%00", "%ff", strings.Repeat("x", 1025)},
	"type":      {"", "%ff"},
	"together":  {"maybe", ""},
	"dimension": {"county", "(outcome)", ""},
	"value":     {""},
	"from":      {"2026-02-30", "2106-01-01", "x", "", "99999999999999", "-1", "1969-12-31", "2026-01-01T01:00:00"},
	"to":        {"0", "2200-01-01", "y"},
	"at":        {"z", "-5"},
	"last":      {"0m", "999999999999d", "m", "1h30m"},
	"tz":        {"Local", "x/y", "", "../../etc/passwd"},
	"step":      {"year", ""},
	"by":        {"rising", "likes"},
	"limit":     {"1001", "0", "-1", "x"},
	"viewers":   {"x"},
	"prefix":    {"%ff"},
	"bogus":     {"1"},
	"Item":      {"a"},
	"item%00":   {"a"},
	"callback":  {"alert(1)"},
}

// question makes a question: mostly one that can be answered, then perhaps with
// something wrong in it.
func (a *asker) question() url.URL {
	path := queries.Paths[a.r.IntN(len(queries.Paths))]
	var query strings.Builder
	add := func(name, value string) { query.WriteString("&" + name + "=" + value) }
	some := func(n int, names ...string) {
		for _, name := range names {
			if a.r.IntN(n) == 0 {
				add(name, a.value(name))
			}
		}
	}
	subject := func() {
		some(2, "type")
		if a.r.IntN(3) == 0 {
			add("dimension", "country")
			some(2, "value")
		}
	}
	when := func() {
		if a.r.IntN(2) == 0 {
			some(1, "last")
			some(2, "at", "tz")
		} else {
			some(2, "from", "to", "tz")
		}
	}
	switch path {
	case "viewers", "counts":
		some(2, slices.Repeat([]string{"item"}, 1+a.r.IntN(4))...)
		some(4, "together")
		some(3, "step")
		subject()
		when()
	case "top":
		some(2, "by", "limit")
		subject()
		when()
	case "outcomes":
		some(2, "item", "item")
		when()
	case "items":
		some(2, "prefix", "limit")
	}
	if a.r.IntN(8) == 0 { // another's, or twice
		some(6, slices.Sorted(maps.Keys(right))...)
	}
	if a.r.IntN(4) == 0 {
		names := slices.Sorted(maps.Keys(wrong))
		name := names[a.r.IntN(len(names))]
		add(name, wrong[name][a.r.IntN(len(wrong[name]))])
	}
	text := []byte(query.String())
	if a.r.IntN(6) == 0 {
		text = a.mangle(text)
	}
	return url.URL{Path: "/v1/" + path, RawQuery: string(text)}
}

// value returns something right for a parameter.
func (a *asker) value(name string) string {
	if a.r.IntN(3) > 0 {
		return right[name][a.r.IntN(len(right[name]))]
	}
	day := time.UnixMilli(1_767_225_600_000 + a.r.Int64N(9*3_600_000) - 3*3_600_000)
	switch name {
	case "item", "prefix":
		return fmt.Sprint("item-", a.r.IntN(300))
	case "limit":
		return fmt.Sprint(1 + a.r.IntN(1000))
	case "last":
		return fmt.Sprint(1+a.r.IntN(100), []string{"m", "h", "d", "w"}[a.r.IntN(4)])
	case "from", "at":
		return fmt.Sprint(day.UnixMilli())
	case "to":
		return day.Add(time.Duration(a.r.IntN(1<<a.r.IntN(20))) * time.Minute).UTC().Format(time.RFC3339)
	}
	return right[name][a.r.IntN(len(right[name]))]
}

// mangle changes some bytes: takes out, puts in, doubles.
func (a *asker) mangle(text []byte) []byte {
	const alphabet = "&=;%+?#/\\\"'<>{}[]()*.,:-_~ \x00\x7f\xc3\xff0aZ"
	for range 1 + a.r.IntN(6) {
		at := a.r.IntN(len(text) + 1)
		switch b := alphabet[a.r.IntN(len(alphabet))]; {
		case at == len(text) || a.r.IntN(3) == 0:
			text = slices.Insert(text, at, b)
		case a.r.IntN(2) == 0:
			text[at] = b
		default:
			end := at + a.r.IntN(len(text)-at)
			text = slices.Replace(text, at, end, slices.Repeat(slices.Clone(text[at:end]), a.r.IntN(3))...)
		}
	}
	return text
}
