package queries

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"tidemark/windows"
)

// Top ranks items, or the values of a dimension: the higher number first, equal
// ones in byte order. What has a zero has no place.
func (e *Engine) Top(ctx context.Context, q TopQuestion) (answer *TopAnswer, err error) {
	if err := e.declared(q.Dimension); err != nil {
		return nil, err
	}
	byValue := q.Dimension != "" && !q.HasValue
	types := e.typesOf(q.Types)
	w := wanted{
		series: func(s windows.Series) bool { return s.Dimension == "" || s.Dimension == q.Dimension },
		within: q.When,
		tokens: true,
	}
	if !byValue {
		w.whole = func(s windows.Series) bool {
			return s.Dimension == q.Dimension &&
				(types[0] == AllTypes || slices.Contains(types, s.Type) || s.Other&windows.OtherType != 0)
		}
	}
	v, err := e.open(ctx, w)
	if err != nil {
		return nil, err
	}
	defer v.close(&err)
	a := &asking{view: v, ctx: ctx, types: types, there: v.series(), viewers: true}
	a.q = Question{Dimension: q.Dimension, Value: q.Value, HasValue: q.HasValue}
	if a.span, err = v.resolve(q.When, "", q.Zone, v.kept); err != nil {
		return nil, err
	}
	answer = &TopAnswer{
		By:        q.By,
		Type:      strings.Join(a.types, ","),
		Dimension: q.Dimension,
		Extent:    v.extent(a.span),
		Items:     []Ranked{},
	}
	if q.HasValue {
		answer.Value = &q.Value
	}
	r := &ranking{asking: a, by: q.By, limit: q.Limit, bare: q.NoViewers}
	if q.By == ByRising {
		return answer, e.rising(r, q, answer)
	}
	if byValue {
		err = r.values()
	} else {
		err = r.items(groupsOf(a.there, a.types, slice{dimension: q.Dimension, value: q.Value}))
	}
	if err != nil {
		return nil, err
	}
	answer.Certified = r.certified()
	for i, p := range r.places {
		ranked := Ranked{Rank: i + 1, Item: p.name, Views: p.views, Viewers: p.viewers}
		if byValue {
			ranked.Item, ranked.Value = "", &p.name
		} else if ranked.Texts, err = v.texts(p.name); err != nil {
			return nil, err
		}
		answer.Items = append(answer.Items, ranked)
	}
	return answer, r.hint(answer)
}

// ranking is the question of who leads, while it is answered.
type ranking struct {
	*asking
	groups []group // of items
	by     By
	limit  int
	bare   bool    // the viewers of a ranking by views are not wanted
	places []place // the limit highest of those whose numbers are known, the first first
	behind rival   // the most dangerous of the others whose numbers are known
	rest   uint64  // nobody else has a number above this

	noViewers bool // no event of the range has a user, as far as that was looked up
}

// rival is somebody without a place, who may have up to high.
type rival struct {
	high uint64
	name string // the first in byte order of those
}

// place is an item, or a value, with its numbers.
type place struct {
	id      uint32 // of an item whose name was not needed yet; else 0
	name    string
	views   Number
	viewers Number
}

// score is the number that a place is ranked by.
func (r *ranking) score(p place) Number {
	if r.by == ByViewers {
		return p.viewers
	}
	return p.views
}

// enter adds places in their order; those with nothing have none.
func (r *ranking) enter(places []place) error {
	for _, p := range places {
		if r.score(p).Value > 0 {
			r.places = append(r.places, p)
		} else {
			r.rest = max(r.rest, r.score(p).High)
		}
	}
	slices.SortFunc(r.places, func(a, b place) int { return cmp.Compare(r.score(b).Value, r.score(a).Value) })
	// Names are looked up of those alone that have a place, or tie with the last.
	bar := r.bar()
	full := len(r.places)
	for full > r.limit && r.score(r.places[full-1]).Value < bar {
		full--
	}
	for i := range r.places[:full] {
		if err := r.nameIt(&r.places[i]); err != nil {
			return err
		}
	}
	slices.SortFunc(r.places[:full], func(a, b place) int {
		return cmp.Or(cmp.Compare(r.score(b).Value, r.score(a).Value), cmp.Compare(a.name, b.name))
	})
	least := r.least()
	for _, p := range r.places[min(r.limit, full):] {
		high := r.score(p).High
		if high < max(least, r.behind.high) {
			continue
		}
		if err := r.nameIt(&p); err != nil {
			return err
		}
		if high > r.behind.high || p.name < r.behind.name {
			r.behind = rival{high, p.name}
		}
	}
	r.places = r.places[:min(r.limit, full)]
	return nil
}

func (r *ranking) nameIt(p *place) (err error) {
	if p.id != 0 {
		p.name, err = r.name(p.id)
		p.id = 0
	}
	return err
}

// bar returns the number of the last place; 0 while there is room.
func (r *ranking) bar() uint64 {
	if len(r.places) < r.limit {
		return 0
	}
	return r.score(r.places[r.limit-1]).Value
}

// least returns what the last place has for certain; 0 while there is room.
func (r *ranking) least() uint64 {
	if len(r.places) < r.limit {
		return 0
	}
	return r.score(r.places[r.limit-1]).Low
}

// safe reports whether somebody unknown with at most n cannot beat the last place.
// Equal numbers go by name, and that is unknown.
func (r *ranking) safe(n uint64) bool { return n == 0 || n < r.least() }

// certified reports whether nobody outside can beat the last place (Q4).
func (r *ranking) certified() bool {
	if !r.safe(r.rest) {
		return false
	}
	least := r.least()
	return r.behind.high < least || r.behind.high == 0 ||
		r.behind.high == least && r.behind.name > r.places[r.limit-1].name
}

// values ranks the values of the dimension.
func (r *ranking) values() error {
	var places []place
	for _, in := range slicesOf(r.there, r.q.Dimension) {
		total, _, err := r.numbers([]key{site}, groupsOf(r.there, r.types, in))
		if err != nil {
			return err
		}
		p := place{name: in.value, views: total.total.number()}
		if !r.bare {
			p.viewers = total.number()
		}
		if in.other != 0 { // not a value: any of those in it may have so many
			r.rest = max(r.rest, r.score(p).High)
			continue
		}
		places = append(places, p)
	}
	return r.enter(places)
}

// hint says why a ranking may surprise.
func (r *ranking) hint(answer *TopAnswer) error {
	var hints []string
	if len(answer.Items) == 0 {
		h, err := r.nothing([]key{site})
		if err != nil {
			return err
		}
		hints = append(hints, h)
	}
	answer.Hint = joinHints(append(hints, r.unwrittenHint()))
	return nil
}
