package clickhouse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/sinks"
	"tidemark/sketches"
	"tidemark/windows"
)

var _ sinks.Partial = (*windows.Partial)(nil)

// partial is a sinks.Partial made by hand.
type partial struct {
	minute   windows.Minute
	series   []windows.Series
	rows     []seriesRow
	outcomes []windows.OutcomeCount
}

type seriesRow struct {
	series int
	windows.Row
}

func (p *partial) Minute() windows.Minute           { return p.minute }
func (p *partial) Series() []windows.Series         { return p.series }
func (p *partial) Outcomes() []windows.OutcomeCount { return p.outcomes }

func (p *partial) Each(yield func(series int, r windows.Row) bool) {
	for _, r := range p.rows {
		r.Item = slices.Clone(r.Item) // borrowed: a sink that keeps it reads what comes after
		r.Tokens = slices.Clone(r.Tokens)
		more := yield(r.series, r.Row)
		for i := range r.Item {
			r.Item[i] = '#'
		}
		clear(r.Tokens)
		if !more {
			return
		}
	}
}

// add appends a row.
func (p *partial) add(s windows.Series, r windows.Row) {
	i := slices.Index(p.series, s)
	if i < 0 {
		i = len(p.series)
		p.series = append(p.series, s)
	}
	p.rows = append(p.rows, seriesRow{i, r})
}

// viewersOf returns users in the form of a row.
func viewersOf(r *windows.Row, users []uint64) {
	v := sketches.NewViewers(0)
	for _, u := range users {
		v.AddHash(u)
	}
	r.Tokens, r.Registers = v.Tokens(), v.Registers()
}

// exactKey is what a row of item_minutes_exact is about.
type exactKey struct {
	Minute    time.Time `ch:"minute"`
	Type      string    `ch:"type"`
	Dimension string    `ch:"dimension"`
	Value     string    `ch:"value"`
	Rest      string    `ch:"rest"`
	Kind      string    `ch:"kind"`
	Item      string    `ch:"item"`
}

type exactRow struct {
	exactKey
	Events  uint64 `ch:"events"`
	Reached uint64 `ch:"reached"`
}

// rest and kinds are how the columns say it.
var (
	rests = []string{"none", "type", "value", "type and value"}
	kinds = []string{"item", "site", "other"}
)

func exactKeyOf(m windows.Minute, s windows.Series, kind windows.Kind, item string) exactKey {
	k := exactKey{m.Time(), s.Type, s.Dimension, s.Value, rests[s.Other], kinds[kind], item}
	if s.Other&windows.OtherType != 0 {
		k.Type = "(other)"
	}
	if s.Other&windows.OtherValue != 0 {
		k.Value = "(other)"
	}
	return k
}

// oracle knows what a database must say after some seals.
type oracle struct {
	counts   map[exactKey]exactRow
	outcomes map[outcomeKey]uint64
	viewers  map[viewerKey][]seenAt
	reached  map[viewerKey][]reachedAt
	texts    map[string]windows.ItemInfo
	known    map[windows.Identity]bool
}

type (
	outcomeKey struct {
		Minute          time.Time
		Outcome, Reason string
	}
	viewerKey struct {
		windows.Series
		kind windows.Kind
		item string
	}
	seenAt struct {
		minute windows.Minute
		row    windows.Row
	}
	reachedAt struct {
		minute  windows.Minute
		reached uint64
	}
)

func newOracle() *oracle {
	return &oracle{
		counts: make(map[exactKey]exactRow), outcomes: make(map[outcomeKey]uint64),
		viewers: make(map[viewerKey][]seenAt), reached: make(map[viewerKey][]reachedAt),
		texts: make(map[string]windows.ItemInfo), known: make(map[windows.Identity]bool),
	}
}

// add takes a seal; one that it knows changes nothing.
func (o *oracle) add(s *sinks.Seal) {
	if o.known[s.Identity] {
		return
	}
	o.known[s.Identity] = true
	for _, p := range s.Partials {
		series := p.Series()
		p.Each(func(n int, r windows.Row) bool {
			key := viewerKey{series[n], r.Kind, string(r.Item)}
			o.viewers[key] = append(o.viewers[key], seenAt{p.Minute(), windows.Row{Tokens: slices.Clone(r.Tokens), Registers: slices.Clone(r.Registers)}})
			o.reached[key] = append(o.reached[key], reachedAt{p.Minute(), r.Reached})
			if r.Kind != windows.Site {
				k := exactKeyOf(p.Minute(), series[n], r.Kind, string(r.Item))
				sum := o.counts[k]
				o.counts[k] = exactRow{k, sum.Events + r.Events, sum.Reached + r.Reached}
			}
			return true
		})
		for _, c := range p.Outcomes() {
			o.outcomes[outcomeKey{p.Minute().Time(), c.Outcome.String(), c.Reason}] += c.Records
		}
	}
	for _, i := range s.Items {
		have, ok := o.texts[i.Item]
		if !ok {
			have.Item = i.Item
		}
		have.Merge(i)
		o.texts[i.Item] = have
	}
}

// number is what the API says of a key in [from, to).
func (o *oracle) number(k viewerKey, from, to windows.Minute) sketches.Number {
	v := sketches.NewViewers(0)
	within := windows.Range{From: from, To: to}
	for _, s := range o.viewers[k] {
		if !within.Contains(s.minute) {
			continue
		}
		if s.row.Registers != nil {
			v.AddRegisters(s.row.Registers)
		}
		v.AddTokens(s.row.Tokens)
	}
	var reached uint64
	for of, rows := range o.reached {
		// Of the site it is what its items add up to.
		if of != k && (k.kind != windows.Site || of.Series != k.Series || of.kind == windows.Site) {
			continue
		}
		for _, r := range rows {
			if within.Contains(r.minute) && of.kind != windows.Site {
				reached += r.reached
			}
		}
	}
	return clamp(v, reached)
}

// clamp is what queries makes of a sketch's Number.
func clamp(v *sketches.Viewers, reached uint64) sketches.Number {
	n := v.Number()
	if v.Dense() {
		n.Low = max(n.Low, sketches.MaxTokens+1)
		n.Value = max(n.Value, n.Low)
		n.High = max(n.High, n.Value)
	}
	n.High = min(n.High, reached)
	n.Value = min(n.Value, n.High)
	n.Low = min(n.Low, n.Value)
	return n
}

func compareExact(a, b exactKey) int {
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// check compares all that a database says with the oracle.
func (o *oracle) check(t testing.TB, w *world) {
	t.Helper()
	want := make([]exactRow, 0, len(o.counts))
	for _, k := range sortedBy(o.counts, compareExact) {
		want = append(want, o.counts[k])
	}
	got := query[exactRow](t, w, "SELECT * FROM {{.}}.item_minutes_exact")
	slices.SortFunc(got, func(a, b exactRow) int { return compareExact(a.exactKey, b.exactKey) })
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(exactRow{})); diff != "" {
		t.Errorf("item_minutes_exact (-want +got):\n%s", diff)
	}

	type outcomeRow struct {
		Minute  time.Time `ch:"minute"`
		Outcome string    `ch:"outcome"`
		Reason  string    `ch:"reason"`
		Records uint64    `ch:"records"`
	}
	outcomes := make(map[outcomeKey]uint64)
	for _, r := range query[outcomeRow](t, w, "SELECT * FROM {{.}}.outcomes_exact") {
		outcomes[outcomeKey{r.Minute, r.Outcome, r.Reason}] = r.Records
	}
	if diff := cmp.Diff(o.outcomes, outcomes); diff != "" {
		t.Errorf("outcomes_exact (-want +got):\n%s", diff)
	}

	type textRow struct {
		Item  string `ch:"item"`
		Title string `ch:"title"`
		URL   string `ch:"url"`
		Image string `ch:"image"`
	}
	texts := make([]textRow, 0, len(o.texts))
	for _, item := range sorted(o.texts) {
		i := o.texts[item]
		texts = append(texts, textRow{item, i.Title.Value, i.URL.Value, i.Image.Value})
	}
	if diff := cmp.Diff(texts, query[textRow](t, w, "SELECT * FROM {{.}}.items_latest ORDER BY item")); diff != "" && len(texts) > 0 {
		t.Errorf("items_latest (-want +got):\n%s", diff)
	}
	if n := one[uint64](t, w, "SELECT count() FROM {{.}}.seals FINAL"); n != uint64(len(o.known)) {
		t.Errorf("%d seals, want %d", n, len(o.known))
	}
}

// viewersQuery is how an analyst asks for viewers.
const viewersQuery = `
WITH (SELECT sum(reached) FROM {{.}}.item_minutes FINAL
      WHERE type = {type:String} AND dimension = {dimension:String} AND value = {value:String} AND rest = {rest:String}
        AND (kind = 'item' AND item = {item:String} OR {kind:String} = 'site')
        AND minute >= {since:DateTime('UTC')} AND minute < {until:DateTime('UTC')}) AS reached,
    tidemark_union(viewers) AS seen
SELECT number.1 AS viewers, number.2 AS low, number.3 AS high FROM (SELECT tidemark_number(seen, reached) AS number
FROM {{.}}.item_viewers
WHERE type = {type:String} AND dimension = {dimension:String} AND value = {value:String} AND rest = {rest:String}
  AND kind = {kind:String} AND item = {item:String}
  AND tidemark_covers(level, start, {since:DateTime('UTC')}, {until:DateTime('UTC')}))`

type sqlNumber struct {
	Value uint64 `ch:"viewers"`
	Low   uint64 `ch:"low"`
	High  uint64 `ch:"high"`
}

func (w *world) viewers(t testing.TB, k viewerKey, from, to windows.Minute) sqlNumber {
	t.Helper()
	e := exactKeyOf(from, k.Series, k.kind, k.item)
	got := query[sqlNumber](t, w, viewersQuery,
		named("type", e.Type), named("dimension", e.Dimension), named("value", e.Value), named("rest", e.Rest),
		named("kind", e.Kind), named("item", e.Item), named("since", stamp(from)), named("until", stamp(to)))
	if len(got) != 1 {
		t.Fatalf("%d rows", len(got))
	}
	return got[0]
}

func stamp(m windows.Minute) string { return m.Time().Format(time.DateTime) }

// random makes seals of a few keys, so that they meet.
type random struct {
	*rand.Rand
	users []uint64
	seals map[int]windows.Pair // newest of a partition
}

func newRandom(seed uint64) *random {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 1)), seals: make(map[int]windows.Pair)}
	for range 20_000 {
		r.users = append(r.users, r.Uint64())
	}
	return r
}

var (
	types  = []string{"view", "like", "(other)"}
	values = []string{"DE", "AT", "(other)"}
	stuff  = []string{"a", "ab", "b", "ü \x00\xff'\\", "(other)"}
)

func (r *random) series() windows.Series {
	s := windows.Series{Type: types[r.IntN(len(types))]}
	if r.IntN(2) == 0 {
		s.Dimension, s.Value = "country", values[r.IntN(len(values))]
		if r.IntN(4) == 0 {
			s.Value, s.Other = "", windows.OtherValue
		}
	}
	if r.IntN(6) == 0 {
		s.Type, s.Other = "", s.Other|windows.OtherType
	}
	return s
}

// some returns how many users a row has: mostly few, sometimes a sketch full.
func (r *random) some() int {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return r.IntN(200)
	case 2:
		return 900 + r.IntN(300)
	case 3:
		return r.IntN(12_000)
	}
	return r.IntN(20)
}

func (r *random) row(kind windows.Kind, item string) windows.Row {
	row := windows.Row{Kind: kind}
	n := r.some()
	from := r.IntN(len(r.users) - n)
	row.Events = uint64(1 + n + r.IntN(5))
	row.Reached = row.Events + uint64(r.IntN(2)*r.IntN(10))
	if kind == windows.Item {
		row.Item = []byte(item)
	}
	if kind != windows.Overflow {
		viewersOf(&row, r.users[from:from+n])
	}
	return row
}

// partial returns a minute with a row for each of some keys.
func (r *random) partial(m windows.Minute) *partial {
	p := &partial{minute: m}
	done := make(map[viewerKey]bool)
	for range 1 + r.IntN(8) {
		k := viewerKey{r.series(), windows.Kind(r.IntN(3)), ""}
		if k.kind == windows.Item {
			k.item = stuff[r.IntN(len(stuff))]
		}
		if !done[k] {
			done[k] = true
			p.add(k.Series, r.row(k.kind, k.item))
		}
	}
	if r.IntN(2) == 0 {
		o := windows.Series{Type: "view", Dimension: windows.OutcomeDimension, Value: "bot"}
		p.add(o, windows.Row{Item: []byte("a"), Events: uint64(1 + r.IntN(9))})
	}
	p.outcomes = []windows.OutcomeCount{
		{Outcome: windows.Counted, Records: uint64(r.IntN(1000))},
		{Outcome: windows.Malformed, Reason: "time: is missing", Records: uint64(1 + r.IntN(5))},
	}
	return p
}

// seal returns the next seal of a partition, about some minutes behind base.
func (r *random) seal(base windows.Minute, minutes, reach int) *sinks.Seal {
	partition := r.IntN(3)
	from := r.seals[partition]
	to := windows.Pair{F: base + windows.Minute(reach), S: from.S + 1 + int64(r.IntN(1000))}
	r.seals[partition] = to
	s := &sinks.Seal{Identity: windows.Identity{Partition: partition, E: 1<<63 + uint64(partition), To: to}, From: from, R: from.S}
	var at []int
	for range minutes {
		at = append(at, r.IntN(reach))
	}
	slices.Sort(at)
	for _, m := range slices.Compact(at) {
		s.Partials = append(s.Partials, r.partial(base+windows.Minute(m)))
	}
	if r.IntN(2) == 0 {
		s.Items = append(s.Items, windows.ItemInfo{
			Item:  stuff[r.IntN(len(stuff))],
			Title: windows.Text{At: int64(r.IntN(3)) * 1000, Value: stuff[r.IntN(len(stuff))]},
			URL:   windows.Text{At: windows.MaxTime - 1 - int64(r.IntN(3)), Value: stuff[r.IntN(len(stuff))]},
		})
	}
	return s
}
