package queries

import (
	"cmp"
	"slices"

	"tidemark/sketches"
	"tidemark/windows"
)

// contest is who may win a ranking of items: the threshold algorithm (Fagin,
// Lotem and Naor, 2001) over the lists of all parts.
//
// A list names the highest items of a part, and says how much any other has at
// most. So whoever is in no list has at most the sum of those, outside; and an
// item has at most what its lists say, and of outside what belongs to the lists
// that lack it.
type contest struct {
	*ranking
	groups     []group
	candidates []candidate
	byID       map[uint32]int
	byName     map[string]int // of those that the store has no identifier of
	outside    uint64
	holes      uint64 // what of outside is of items without a slot, and so in no row
}

type candidate struct {
	id      uint32
	name    string // where there is no id
	listed  count
	covered uint64 // what of outside belongs to lists that have it
}

// most returns the number that nobody knows a candidate to exceed.
func (c *contest) most(x candidate) uint64 { return x.listed.high + c.outside - x.covered }

// exact reports whether the lists say all of a candidate.
func (c *contest) exact(x candidate) bool {
	return x.covered == c.outside && x.listed.low == x.listed.high
}

// measure is what a row counts for in the ranking. Viewers are bounded by the
// events that reached their sketch.
func (r *ranking) measure(events, reached uint64) uint64 {
	if r.by == ByViewers {
		return reached
	}
	return events
}

// items ranks the items of some groups: from the lists, and where those leave a
// place open, from all rows.
func (r *ranking) items(groups []group) error {
	for _, collect := range []func(*contest) error{(*contest).lists, (*contest).scan} {
		c := &contest{ranking: r, groups: groups, byID: make(map[uint32]int), byName: make(map[string]int)}
		if err := collect(c); err != nil {
			return err
		}
		r.places, r.behind, r.rest = nil, rival{}, c.outside
		if err := c.settle(); err != nil {
			return err
		}
		// All rows can move a place, or bring the certificate, only so far.
		if r.safe(c.outside) || c.outside < r.bar() && !r.safe(c.holes) {
			break
		}
	}
	return r.viewersToo(groups)
}

// certifyTallies is how many candidates are evaluated at most, once the ranking
// stands, to find out that none of them may be higher for all that is known. Where
// the last place is an estimate with wide bounds there can be millions.
const certifyTallies = 4096

// settle finds out the numbers of the candidates that may win, the most
// promising first, until no other can.
func (c *contest) settle() error {
	spare := certifyTallies
	slices.SortFunc(c.candidates, func(a, b candidate) int { return cmp.Compare(c.most(b), c.most(a)) })
	const batch = 64
	left := c.candidates
	for n := max(batch, c.limit); len(left) > 0; n = min(2*n, maxTallies) {
		some := left[:min(n, len(left))]
		if i := slices.IndexFunc(some, func(x candidate) bool { return c.most(x) < c.least() }); i >= 0 {
			some = some[:i]
		}
		if len(some) == 0 {
			return nil
		}
		if most := c.most(some[0]); most < c.bar() {
			if spare -= len(some); spare < 0 {
				c.rest = max(c.rest, most)
				return nil
			}
		}
		left = left[len(some):]
		places, err := c.evaluate(some)
		if err != nil {
			return err
		}
		c.enter(places)
	}
	return nil
}

// evaluate returns the numbers of some candidates.
func (c *contest) evaluate(some []candidate) ([]place, error) {
	places := make([]place, len(some))
	var open []int // whose numbers have to be read
	var keys []key
	for i, x := range some {
		name := x.name
		if x.id != 0 {
			var err error
			if name, err = c.name(x.id); err != nil {
				return nil, err
			}
		}
		places[i].name = name
		if c.by == ByViews && c.exact(x) {
			places[i].views = x.listed.number()
			continue
		}
		open, keys = append(open, i), append(keys, c.item(name))
	}
	if len(keys) == 0 {
		return places, nil
	}
	tallies, err := c.gather(c.ctx, c.span, keys, c.groups, c.by == ByViewers)
	if err != nil {
		return nil, err
	}
	for j, i := range open {
		t := tallies[j][0]
		places[i].views = t.total.number()
		if c.by == ByViewers {
			places[i].viewers = t.number()
		}
	}
	return places, nil
}

// viewersToo adds the viewers of the winners of a ranking by views.
func (r *ranking) viewersToo(groups []group) error {
	winners := r.places
	if r.by == ByViewers || len(winners) == 0 {
		return nil
	}
	keys := make([]key, len(winners))
	for i, p := range winners {
		keys[i] = r.item(p.name)
	}
	tallies, err := r.gather(r.ctx, r.span, keys, groups, true)
	if err != nil {
		return err
	}
	for i := range winners {
		winners[i].viewers = tallies[i][0].number()
	}
	return nil
}

// lists collects the candidates from the lists of the parts.
func (c *contest) lists() error {
	return c.collect(func(s windows.Series, loose bool, holes map[windows.Part]uint64) error {
		for _, at := range c.steps(c.span) {
			err := c.snap.Lists(at, s, func(p windows.Part, l windows.TopList) error {
				most := c.measure(l.MaxEvents, l.MaxReached)
				c.outside += most
				covered := most
				if p.Level == windows.LevelMinute {
					covered += holes[p] // who has a slot there has no event without one
				}
				for i, id := range l.Items {
					n := c.measure(l.Events[i], l.Reached[i])
					c.add(c.ofID(id), n, loose, covered)
				}
				return c.ctx.Err()
			})
			if err != nil {
				return err
			}
		}
		return c.frozenRows(s, loose, holes, 1000)
	})
}

// scan collects the candidates from all rows.
func (c *contest) scan() error {
	return c.collect(func(s windows.Series, loose bool, holes map[windows.Part]uint64) error {
		for _, at := range c.steps(c.span) {
			err := c.snap.Scan(at, s, func(p windows.Part, id uint32, r windows.Row) error {
				if r.Kind != windows.Item {
					return nil
				}
				var covered uint64
				if !r.Short {
					covered = holes[p]
				}
				c.add(c.ofID(id), c.measure(r.Events, r.Reached), loose, covered)
				return c.ctx.Err()
			})
			if err != nil {
				return err
			}
		}
		return c.frozenRows(s, loose, holes, 0)
	})
}

// collect calls a collector for every series that is asked for, and with loose
// for those that may hold events of it.
func (c *contest) collect(collector func(s windows.Series, loose bool, holes map[windows.Part]uint64) error) error {
	seen := make(map[windows.Series]bool)
	one := func(s windows.Series, loose bool) error {
		if seen[s] {
			return nil
		}
		seen[s] = true
		holes, err := c.slotless(s, loose)
		if err != nil {
			return err
		}
		return collector(s, loose, holes)
	}
	for _, g := range c.groups {
		if err := one(g.series, false); err != nil {
			return err
		}
	}
	for _, g := range c.groups {
		for _, rest := range g.rest {
			if err := one(rest, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// add notes that a list says n of a candidate, and what of outside belongs to it.
func (c *contest) add(i int, n uint64, loose bool, covered uint64) {
	x := &c.candidates[i]
	if loose {
		x.listed.high += n
	} else {
		x.listed.add(count{n, n, n})
	}
	x.covered += covered
}

// slotless adds the items that found no slot, and returns how much any has in
// each part that is not among its highest.
func (c *contest) slotless(s windows.Series, loose bool) (map[windows.Part]uint64, error) {
	overflow, err := c.overflow(c.span, s)
	if err != nil || len(overflow) == 0 {
		return nil, err
	}
	holes := make(map[windows.Part]uint64)
	err = c.sketches(c.span, s, func(p windows.Part, table *sketches.CountMin, heap *sketches.TopK) error {
		all := overflow[p]
		if all == 0 {
			return nil
		}
		most := all
		if s.Dimension == "" && table != nil { // the heap is about the items as such
			most = min(all, uint64(heap.Min()))
		}
		c.outside += most
		c.holes += most
		holes[p] = most
		for _, e := range heap.Sorted() {
			n := all
			if table != nil {
				n = min(all, uint64(table.Estimate(windows.SketchKey(c.hasher, s, e.Hash))))
			}
			i, err := c.ofName(e.Name)
			if err != nil {
				return err
			}
			x := &c.candidates[i]
			x.listed.high += n
			x.covered += most
		}
		return nil
	})
	return holes, err
}

// frozenRows adds what is not in the store: all of it, or the highest, where keep
// is not 0.
func (c *contest) frozenRows(s windows.Series, loose bool, holes map[windows.Part]uint64, keep int) error {
	type item struct {
		name       string
		n, covered uint64
	}
	sums := make(map[string]item)
	for _, f := range c.live {
		fs := f.series[s]
		if fs == nil || !c.span.Contains(f.part.Start) {
			continue
		}
		for name, r := range fs.rows {
			if name == "" {
				continue // the site
			}
			x := sums[name]
			sums[name] = item{name, x.n + c.measure(r.Events, r.Reached), x.covered + holes[f.part]}
		}
	}
	items := make([]item, 0, len(sums))
	for _, x := range sums {
		items = append(items, x)
	}
	var most uint64
	if keep > 0 && len(items) > keep {
		slices.SortFunc(items, func(a, b item) int { return cmp.Compare(b.n, a.n) })
		most = items[keep].n
		items = items[:keep]
	}
	c.outside += most
	for _, x := range items {
		i, err := c.ofName(x.name)
		if err != nil {
			return err
		}
		c.add(i, x.n, loose, most+x.covered)
	}
	return nil
}

// ofID returns the index of an item's candidate.
func (c *contest) ofID(id uint32) int {
	i, ok := c.byID[id]
	if !ok {
		i = len(c.candidates)
		c.byID[id] = i
		c.candidates = append(c.candidates, candidate{id: id})
	}
	return i
}

func (c *contest) ofName(name string) (int, error) {
	id, err := c.id(c.item(name))
	if err != nil {
		return 0, err
	}
	if id.stored {
		return c.ofID(id.id), nil
	}
	i, ok := c.byName[name]
	if !ok {
		i = len(c.candidates)
		c.byName[name] = i
		c.candidates = append(c.candidates, candidate{name: name})
	}
	return i, nil
}
