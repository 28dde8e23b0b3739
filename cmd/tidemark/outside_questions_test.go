package main_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// examiner asks questions and compares the answers with the oracle's.
type examiner struct {
	asker   asker
	oracle  *windowstest.Oracle
	random  *rand.Rand
	minutes []int64  // the start of each that has an event
	items   []string // all, in byte order
	hot     []string // the busiest first
	types   []string
	from    int64 // the first minute
	to      int64 // the minute after the last
	live    bool  // there may be more: nothing is said of complete and final

	viewers viewerScore
}

// viewerScore is how well viewers were estimated where they are not exact.
type viewerScore struct {
	estimates, outside int
	worst              float64 // relative
	worstAt            string
}

func newExaminer(a asker, o *windowstest.Oracle, seed uint64) *examiner {
	from, to := o.Span()
	e := &examiner{
		asker: a, oracle: o, random: rand.New(rand.NewPCG(seed, 5)),
		items: o.ItemNames(), types: o.Types(), from: wholeMinute(from), to: wholeMinute(to-1) + windows.MillisPerMinute,
	}
	for _, r := range o.Top(windowstest.Question{From: from, To: to}, windowstest.Views, 200) {
		e.hot = append(e.hot, r.Item)
	}
	for _, c := range o.Table(windowstest.Question{From: from, To: to}, windows.MillisPerMinute) {
		e.minutes = append(e.minutes, c.Start)
	}
	slices.Sort(e.minutes)
	e.minutes = slices.Compact(e.minutes)
	return e
}

func wholeMinute(ms int64) int64 { return ms / windows.MillisPerMinute * windows.MillisPerMinute }

// examine asks n questions of each kind.
func (e *examiner) examine(t *testing.T, n int) {
	t.Helper()
	for range n {
		e.counts(t)
		e.counts(t)
		e.view(t)
		e.top(t, "views")
		e.top(t, "viewers")
		if t.Failed() {
			return
		}
	}
}

// verdict says at the end whether the estimates were good enough.
func (e *examiner) verdict(t *testing.T) {
	t.Helper()
	s := e.viewers
	t.Logf("viewers: %d estimates, %d outside their bounds, at most %.2f %% off (%s)", s.estimates, s.outside, 100*s.worst, s.worstAt)
	if 20*s.outside > s.estimates {
		t.Errorf("%d of %d estimates of viewers are outside their bounds: more than 5 %%", s.outside, s.estimates)
	}
	if s.worst > 0.035 {
		t.Errorf("an estimate of viewers is %.2f %% off: %s", 100*s.worst, s.worstAt)
	}
}

// scope is a range and types, as a query and for the oracle.
type scope struct {
	query    url.Values
	question windowstest.Question
	types    []string // asked; nil: *
	live     bool
}

func (s scope) String() string { return s.query.Encode() }

// scope makes a random range of a random size, and random types.
func (e *examiner) scope() scope {
	span := (e.to - e.from) / windows.MillisPerMinute
	sizes := []int64{1, 5, 60, 24 * 60, 7 * 24 * 60, span/3 + 1, span}
	size := min(sizes[e.random.IntN(len(sizes))], span)
	start := e.from + e.random.Int64N(span-size+2)*windows.MillisPerMinute - windows.MillisPerMinute
	if e.random.IntN(2) == 0 { // around an event, for data with long silences
		start = e.minutes[e.random.IntN(len(e.minutes))] - e.random.Int64N(size)*windows.MillisPerMinute
	}
	start = max(start, 0)
	end := start + size*windows.MillisPerMinute
	s := scope{query: url.Values{}, question: windowstest.Question{From: start, To: end}, live: e.live}
	switch e.random.IntN(4) {
	case 0: // an odd instant is moved outward to whole minutes
		from := start + e.random.Int64N(windows.MillisPerMinute)
		s.query.Set("from", strconv.FormatInt(from, 10))
		s.query.Set("to", strconv.FormatInt(max(end-e.random.Int64N(windows.MillisPerMinute), from+1), 10))
	case 1: // another zone's way to write it
		zone := time.FixedZone("", (e.random.IntN(57)-28)*1800)
		s.query.Set("from", time.UnixMilli(start).In(zone).Format(time.RFC3339))
		s.query.Set("to", time.UnixMilli(end).In(zone).Format(time.RFC3339))
	default:
		s.query.Set("from", time.UnixMilli(start).UTC().Format(time.RFC3339))
		s.query.Set("to", time.UnixMilli(end).UTC().Format(time.RFC3339))
	}
	switch e.random.IntN(3) {
	case 0:
		s.query.Set("type", "*")
	case 1:
		s.types = []string{e.types[e.random.IntN(len(e.types))]}
	default:
		for _, typ := range e.types {
			if e.random.IntN(2) == 0 {
				s.types = append(s.types, typ)
			}
		}
		if s.types == nil {
			s.types = []string{"no such type"}
		}
	}
	s.question.Types = s.types
	for _, typ := range s.types {
		s.query.Add("type", typ)
	}
	return s
}

// item picks an item: a hot one, any one, or one that is not there.
func (e *examiner) item() string {
	switch e.random.IntN(5) {
	case 0, 1:
		return e.hot[e.random.IntN(len(e.hot))]
	case 2:
		return "\u00a0 no such item" + strconv.Itoa(e.random.IntN(10))
	default:
		return e.items[e.random.IntN(len(e.items))]
	}
}

// checkRange checks what an answer says about itself.
func (s scope) checkRange(t *testing.T, a answer) {
	t.Helper()
	if a.From.UnixMilli() != s.question.From || a.To.UnixMilli() != s.question.To {
		t.Errorf("%v: the answer is about %v to %v", s, a.From, a.To)
	}
	if !s.live && (!a.Complete || !a.Final) {
		t.Errorf("%v: complete %t, final %t after the end of the only log", s, a.Complete, a.Final)
	}
	want := strings.Join(s.types, ",")
	if s.types == nil {
		want = "*"
	}
	if a.Type != want {
		t.Errorf("%v: the answer is about type %q", s, a.Type)
	}
}

// checkCounts checks the counts of an answer: a key for each type asked, and * for
// several or all. item is nil for the site.
func (e *examiner) checkCounts(t *testing.T, s scope, item *string, a answer) {
	t.Helper()
	tally := func(types []string) windowstest.Tally {
		q := s.question
		q.Types = types
		if item == nil {
			return e.oracle.Site(q)
		}
		return e.oracle.Item(q, *item)
	}
	want := make(map[string]uint64)
	for _, typ := range s.types {
		want[typ] = tally([]string{typ}).Events
	}
	if len(s.types) != 1 {
		want["*"] = tally(s.types).Events
	}
	for typ, n := range want {
		if got, ok := a.Counts[typ]; !ok || got != (number{n, n, n, "exact"}) {
			t.Errorf("%v: %s is counted %+v, the truth is %d", s, typ, a.Counts[typ], n)
		}
	}
	for typ := range a.Counts {
		if _, ok := want[typ]; !ok && s.types != nil { // with * the types may be broken down
			t.Errorf("%v: counts of type %q, which was not asked", s, typ)
		}
	}
}

func (e *examiner) counts(t *testing.T) {
	t.Helper()
	s := e.scope()
	switch e.random.IntN(3) {
	case 0: // the site
		var a answer
		e.asker.ask(t, "/v1/counts", s.query, &a)
		s.checkRange(t, a)
		e.checkCounts(t, s, nil, a)
	case 1:
		item := e.item()
		s.query.Set("item", item)
		var a answer
		e.asker.ask(t, "/v1/counts", s.query, &a)
		s.checkRange(t, a)
		if a.Item == nil || *a.Item != item {
			t.Errorf("%v: the answer is about another item", s)
		}
		e.checkCounts(t, s, &item, a)
	default: // several
		var items []string
		for range 2 + e.random.IntN(20) {
			items = append(items, e.item())
		}
		s.query["item"] = items
		var a answer
		e.asker.ask(t, "/v1/counts", s.query, &a)
		if len(a.Items) != len(items) {
			t.Errorf("%v: %d answers about %d items", s, len(a.Items), len(items))
			return
		}
		for i, item := range items {
			s.checkRange(t, a.Items[i])
			if a.Items[i].Item == nil || *a.Items[i].Item != item {
				t.Errorf("%v: place %d is about another item", s, i)
			}
			e.checkCounts(t, s, &item, a.Items[i])
		}
	}
}

func (e *examiner) view(t *testing.T) {
	t.Helper()
	s := e.scope()
	var item *string
	var truth windowstest.Tally
	if e.random.IntN(3) == 0 {
		truth = e.oracle.Site(s.question)
	} else {
		name := e.item()
		item = &name
		s.query.Set("item", name)
		truth = e.oracle.Item(s.question, name)
	}
	var a answer
	e.asker.ask(t, "/v1/viewers", s.query, &a)
	s.checkRange(t, a)
	if a.Viewers == nil {
		t.Fatalf("%v: no viewers in the answer", s)
	}
	e.checkCounts(t, s, item, a)
	e.checkViewers(t, s.String(), *a.Viewers, truth)
}

// checkViewers checks a number of viewers: exact up to 12; beyond, an estimate
// that counts for the score.
func (e *examiner) checkViewers(t *testing.T, what string, got number, truth windowstest.Tally) {
	t.Helper()
	want := truth.Viewers
	if got.Low > got.Value || got.Value > got.High {
		t.Errorf("%s: viewers %+v is outside its own bounds", what, got)
	}
	if got.High > truth.Events {
		t.Errorf("%s: viewers %+v of %d events", what, got, truth.Events)
	}
	if want <= 12 || got.Method == "exact" {
		if got != (number{want, want, want, "exact"}) {
			t.Errorf("%s: viewers %+v, the truth is %d, exactly", what, got, want)
		}
		return
	}
	if got.Method != "hll" {
		t.Errorf("%s: viewers by method %q", what, got.Method)
	}
	e.viewers.estimates++
	if want < got.Low || want > got.High {
		e.viewers.outside++
	}
	off := float64(got.Value)/float64(want) - 1
	if off < 0 {
		off = -off
	}
	if off > e.viewers.worst {
		e.viewers.worst, e.viewers.worstAt = off, fmt.Sprintf("%s: %+v, the truth is %d", what, got, want)
	}
}

func (e *examiner) top(t *testing.T, by string) {
	t.Helper()
	s := e.scope()
	limit := []int{1, 3, 10, 100, 1000}[e.random.IntN(5)]
	s.query.Set("by", by)
	s.query.Set("limit", strconv.Itoa(limit))
	var a ranking
	e.asker.ask(t, "/v1/top", s.query, &a)
	s.checkRange(t, answer{Type: a.Type, From: a.From, To: a.To, Complete: a.Complete, Final: a.Final})
	// Where the last place is an estimate, somebody else may really be higher.
	estimated := len(a.Items) > 0 && by == "viewers" && a.Items[len(a.Items)-1].Viewers.Method != "exact"
	if a.By != by || !a.Certified && !estimated {
		t.Errorf("%v: by %q, certified %t", s, a.By, a.Certified)
	}
	all := e.oracle.Items(s.question)
	truth := make(map[string]windowstest.Tally, len(all))
	for _, r := range all {
		truth[r.Item] = r.Tally
	}
	for i, got := range a.Items {
		want, ok := truth[got.Item]
		if !ok || got.Rank != i+1 {
			t.Errorf("%v: rank %d, item %q: no such place", s, got.Rank, got.Item)
		}
		if got.Views != (number{want.Events, want.Events, want.Events, "exact"}) {
			t.Errorf("%v: views of %q are %+v, the truth is %d", s, got.Item, got.Views, want.Events)
		}
		e.checkViewers(t, fmt.Sprintf("%v item %q", s, got.Item), got.Viewers, want)
	}
	if by == "views" {
		want := e.oracle.Top(s.question, windowstest.Views, limit)
		if len(a.Items) != len(want) {
			t.Errorf("%v: %d items, the truth has %d", s, len(a.Items), len(want))
			return
		}
		for i := range want {
			if a.Items[i].Item != want[i].Item {
				t.Errorf("%v: place %d is %q, the truth is %q with %d", s, i+1, a.Items[i].Item, want[i].Item, want[i].Events)
			}
		}
		return
	}
	e.checkViewersRanking(t, s, limit, a)
}

// checkViewersRanking checks that a ranking goes by the numbers it shows, ties by
// item, and that no item that is certainly higher than its last place is missing.
func (e *examiner) checkViewersRanking(t *testing.T, s scope, limit int, a ranking) {
	t.Helper()
	all := e.oracle.Top(s.question, windowstest.Viewers, len(e.items))
	if len(a.Items) != min(limit, len(all)) {
		t.Errorf("%v: %d items, the truth has %d", s, len(a.Items), min(limit, len(all)))
		return
	}
	listed := make(map[string]bool)
	for i, got := range a.Items {
		listed[got.Item] = true
		if i == 0 {
			continue
		}
		before := a.Items[i-1]
		if before.Viewers.Value < got.Viewers.Value || before.Viewers.Value == got.Viewers.Value && before.Item >= got.Item {
			t.Errorf("%v: place %d, %q with %d viewers, comes before %q with %d", s, i, before.Item, before.Viewers.Value, got.Item, got.Viewers.Value)
		}
	}
	if len(a.Items) == 0 {
		return
	}
	last := a.Items[len(a.Items)-1]
	for _, r := range all {
		if listed[r.Item] {
			continue
		}
		if missing := last.Viewers.Value <= 12 && (r.Viewers > last.Viewers.Value || r.Viewers == last.Viewers.Value && r.Item < last.Item) ||
			float64(r.Viewers) > 1.07*float64(last.Viewers.Value); missing {
			t.Errorf("%v: %q with %d viewers is missing, the last place is %q with %d", s, r.Item, r.Viewers, last.Item, last.Viewers.Value)
		}
	}
}

// everything asks for the whole range: site and tops, as a text to compare two
// folders by.
func everything(t *testing.T, a asker, o *windowstest.Oracle) string {
	t.Helper()
	from, to := o.Span()
	query := func(more ...string) url.Values {
		q := url.Values{"type": {"*"}, "from": {strconv.FormatInt(from, 10)}, "to": {strconv.FormatInt(to, 10)}}
		for pair := range slices.Chunk(more, 2) {
			q.Add(pair[0], pair[1])
		}
		return q
	}
	var site answer
	a.ask(t, "/v1/viewers", query(), &site)
	var text strings.Builder
	fmt.Fprintf(&text, "site %+v %+v\n", site.Counts["*"], *site.Viewers)
	for _, by := range []string{"views", "viewers"} {
		var top ranking
		a.ask(t, "/v1/top", query("by", by, "limit", "1000"), &top)
		fmt.Fprintf(&text, "top by %s, certified %t\n", by, top.Certified)
		for _, i := range top.Items {
			fmt.Fprintf(&text, "%d %q %+v %+v\n", i.Rank, i.Item, i.Views, i.Viewers)
		}
	}
	return text.String()
}
