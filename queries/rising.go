package queries

import (
	"cmp"
	"slices"
	"strings"

	"tidemark/sketches"
	"tidemark/windows"
)

// riser is an item, or a value, while it is found out whether it rises.
type riser struct {
	id         uint32 // of an item that is stored; else 0
	name       string // "" where it was not needed yet
	observed   uint64 // in the window, at least
	hour, week uint64 // in what it is compared with
	score      float64
	expected   expectation
	method     sketches.Method // of what is expected
	views      Number
	viewers    Number
}

// rising ranks what rises (see docs/trending.md): first all that may be listed by their
// counts, then, the highest first, those whose viewers are not too few for their views.
func (e *Engine) rising(r *ranking, q TopQuestion, answer *TopAnswer) error {
	c := r.compare(r.span, q.When.Now)
	if !c.comparable() {
		answer.Hint = joinHints([]string{"there is nothing to compare with: no minute before this range is known", r.unwrittenHint()})
		return nil
	}
	for _, b := range []windows.Range{c.hour, c.week} {
		if !b.Empty() {
			answer.Baseline = append(answer.Baseline, Stretch{r.span.at(b.From), r.span.at(b.To)})
		}
	}
	var risers []riser
	var err error
	if r.q.Dimension != "" && !r.q.HasValue {
		risers, err = r.risingValues(c)
	} else {
		r.groups = groupsOf(r.there, r.types, slice{dimension: r.q.Dimension, value: r.q.Value})
		risers, err = r.risingItems(&e.sums, c)
	}
	if err != nil {
		return err
	}
	if r.limit < len(risers) {
		risers = risers[:r.limit]
	}
	for i, x := range risers {
		ranked := Ranked{Rank: i + 1, Item: x.name, Score: &x.score, Expected: x.expected.number(x.method), Views: x.views, Viewers: x.viewers}
		if r.q.Dimension != "" && !r.q.HasValue {
			ranked.Item, ranked.Value = "", &x.name
		} else if ranked.Texts, err = r.texts(x.name); err != nil {
			return err
		}
		answer.Items = append(answer.Items, ranked)
	}
	answer.Certified, err = r.allCounted(c)
	if err != nil {
		return err
	}
	return r.risingHint(answer)
}

// risingHint says why nothing is listed.
func (r *ranking) risingHint(answer *TopAnswer) error {
	var hints []string
	if len(answer.Items) == 0 {
		tallies, err := r.gather(r.ctx, r.span, []key{site}, groupsOf(r.there, r.types, slice{}), false)
		if err != nil {
			return err
		}
		h := "nothing rises by more than chance"
		if tallies[0][0].total.high == 0 {
			if h, err = r.nothing([]key{site}); err != nil {
				return err
			}
		}
		hints = append(hints, h)
	}
	answer.Hint = joinHints(append(hints, r.unwrittenHint()))
	return nil
}

// compareRisers orders by score, then by what was observed, then by name.
func compareRisers(a, b riser) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.observed, a.observed), strings.Compare(a.name, b.name))
}

// judge works out the score, and reports whether it is enough to be listed.
func (x *riser) judge(c comparison) bool {
	x.expected = c.expect(x.hour, x.week)
	x.score = c.score(x.observed, x.expected)
	return x.score >= listed
}

// risingItems returns the items that rise, in their order: as many as there are places.
func (r *ranking) risingItems(cache *sumCache, c comparison) ([]riser, error) {
	risers, err := r.candidates(cache, c)
	if err != nil {
		return nil, err
	}
	if risers, err = r.widened(risers, c); err != nil {
		return nil, err
	}
	for i := range risers {
		if x := &risers[i]; x.name == "" {
			if x.name, err = r.name(x.id); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(risers, compareRisers)
	var passed []riser
	for len(risers) > 0 && len(passed) < r.limit {
		some := risers[:min(len(risers), max(minHead, r.limit), maxTallies)]
		risers = risers[len(some):]
		keys := make([]key, len(some))
		for i, x := range some {
			keys[i] = r.item(x.name)
		}
		tallies, err := r.gather(r.ctx, r.span, keys, r.groups, true)
		if err != nil {
			return nil, err
		}
		for i, x := range some {
			x.views, x.viewers = tallies[i][0].total.number(), tallies[i][0].number()
			enough, err := r.enoughViewers(x)
			if err != nil {
				return nil, err
			}
			if enough {
				passed = append(passed, x)
			}
		}
	}
	return passed, nil
}

// enoughViewers reports whether an item, or value, has viewers enough for its views.
// Where no event of the window has a user nobody has viewers, and that says nothing.
func (r *ranking) enoughViewers(x riser) (bool, error) {
	if x.viewers.High*viewsPerViewer >= x.observed || x.viewers.High == 0 && r.noViewers {
		return true, nil
	}
	if x.viewers.High > 0 {
		return false, nil
	}
	total, _, err := r.numbers([]key{site}, groupsOf(r.there, r.types, slice{}))
	if err != nil {
		return false, err
	}
	r.noViewers = total.number().Value == 0
	return r.noViewers, nil
}

// candidates returns the items whose counts are enough to be listed.
func (r *ranking) candidates(cache *sumCache, c comparison) ([]riser, error) {
	var stored [3][]*sum // of the window, the hour and the week
	for i, ranges := range [][]windows.Range{c.halves(), {c.hour}, {c.week}} {
		var err error
		if stored[i], err = r.sums(r.ctx, cache, r.groups, ranges...); err != nil {
			return nil, err
		}
	}
	live, unstored, err := r.liveCounts(cache, c)
	if err != nil {
		return nil, err
	}
	count := func(i int, id uint32) (n uint64) {
		for _, s := range stored[i] {
			n += s.at(id)
		}
		return n + live[i].at(id)
	}
	var risers []riser
	var seen idIndex
	least := c.least()
	// Who has enough in all of them together has a share of it in one at least.
	parts := append(slices.Clone(stored[0]), live[0])
	share := max(1, least/uint64(len(parts)))
	for _, s := range parts {
		s.atLeast(share, func(id uint32) {
			if _, there := seen.get(id); there {
				return
			}
			seen.put(id, 0)
			x := riser{id: id, observed: count(0, id), method: sketches.MethodExact}
			if x.observed < least {
				return
			}
			x.hour, x.week = count(1, id), count(2, id)
			if x.judge(c) {
				risers = append(risers, x)
			}
		})
	}
	for name, n := range unstored {
		x := riser{name: name, observed: n[0], hour: n[1], week: n[2], method: sketches.MethodExact}
		if x.observed >= least && x.judge(c) {
			risers = append(risers, x)
		}
	}
	return risers, nil
}

// liveCounts sums what is not in the store, by range: of items that the store knows
// by identifier, of others by name.
func (r *ranking) liveCounts(cache *sumCache, c comparison) (stored [3]*sum, unstored map[string][3]uint64, err error) {
	unstored = make(map[string][3]uint64)
	for i := range stored {
		stored[i] = new(sum)
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	for _, f := range r.live {
		i := slices.IndexFunc(c.ranges(), func(at windows.Range) bool { return at.Contains(f.part.Start) })
		if i < 0 {
			continue
		}
		for _, g := range r.groups {
			fs := f.series[g.series]
			if fs == nil {
				continue
			}
			for j, name := range fs.names {
				row := &fs.rows[j]
				if name == "" {
					continue // the site
				}
				id, known, err := cache.idOf(r.view, name)
				if err != nil {
					return stored, nil, err
				}
				if known {
					stored[i].add(id, row.Events)
				} else {
					n := unstored[name]
					n[i] += row.Events
					unstored[name] = n
				}
			}
		}
		if err := r.ctx.Err(); err != nil {
			return stored, nil, err
		}
	}
	return stored, unstored, nil
}

// widened has what is expected of each found out from all that may be its, where some
// items had no slot in the hours that are compared with, and leaves those that rise.
func (r *ranking) widened(risers []riser, c comparison) ([]riser, error) {
	if some, err := r.overflowedIn(c.hour, c.week); err != nil || !some || len(risers) == 0 {
		return risers, err
	}
	var left []riser
	for len(risers) > 0 {
		some := risers[:min(len(risers), maxTallies)]
		risers = risers[len(some):]
		keys := make([]key, len(some))
		for i := range some {
			if some[i].name == "" {
				var err error
				if some[i].name, err = r.name(some[i].id); err != nil {
					return nil, err
				}
			}
			keys[i] = r.item(some[i].name)
		}
		of := func(at windows.Range) ([]count, error) {
			counts := make([]count, len(keys))
			if at.Empty() {
				return counts, nil
			}
			tallies, err := r.gather(r.ctx, r.spanOf(at), keys, r.groups, false)
			for i := range tallies {
				counts[i] = tallies[i][0].total
			}
			return counts, err
		}
		hour, err := of(c.hour)
		if err != nil {
			return nil, err
		}
		week, err := of(c.week)
		if err != nil {
			return nil, err
		}
		for i, x := range some {
			x.hour, x.week = hour[i].value, week[i].value
			if hour[i].low != hour[i].high || week[i].low != week[i].high {
				x.method = sketches.MethodCountMin
			}
			if x.judge(c) {
				left = append(left, x)
			}
		}
	}
	return left, nil
}

func (r *ranking) spanOf(at windows.Range) *span {
	return &span{Range: at, buckets: []windows.Minute{at.From, at.To}, zone: r.span.zone}
}

// overflowedIn reports whether some item had no slot in one of the ranges.
func (r *ranking) overflowedIn(ranges ...windows.Range) (bool, error) {
	for _, at := range ranges {
		if at.Empty() {
			continue
		}
		for _, g := range r.groups {
			if some, err := r.overflowed(r.spanOf(at), g.series); err != nil || some {
				return some, err
			}
		}
	}
	return false, nil
}

// allCounted reports whether every event of the window is known to be of the item, or
// value, that it is of: else somebody who is not listed may rise more.
func (r *ranking) allCounted(c comparison) (bool, error) {
	if some, err := r.overflowedIn(c.window); err != nil || some {
		return false, err
	}
	for _, g := range r.groups {
		for _, rest := range g.rest {
			any := false
			err := r.rows(r.span, rest, site, func(windows.Part, windows.Row) error { any = true; return nil })
			if err != nil || any {
				return false, err
			}
		}
	}
	return true, nil
}

// risingValues returns the values of the dimension that rise, in their order.
func (r *ranking) risingValues(c comparison) ([]riser, error) {
	var risers []riser
	for _, in := range slicesOf(r.there, r.q.Dimension) {
		if in.other != 0 {
			continue // no value
		}
		groups := groupsOf(r.there, r.types, in)
		x := riser{name: in.value, method: sketches.MethodExact}
		for i, at := range c.ranges() {
			if at.Empty() {
				continue
			}
			tallies, err := r.gather(r.ctx, r.spanOf(at), []key{site}, groups, i == 0)
			if err != nil {
				return nil, err
			}
			switch t := tallies[0][0]; i {
			case 0:
				x.views, x.viewers, x.observed = t.total.number(), t.number(), t.total.low
			case 1:
				x.hour = t.total.value
			case 2:
				x.week = t.total.value
			}
		}
		if !x.judge(c) {
			continue
		}
		enough, err := r.enoughViewers(x)
		if err != nil {
			return nil, err
		}
		if enough {
			risers = append(risers, x)
		}
	}
	slices.SortFunc(risers, compareRisers)
	return risers, nil
}
