package queries

import (
	"cmp"
	"slices"

	"tidemark/windows"
)

// contest is who may win a ranking of items: the threshold algorithm (Fagin,
// Lotem and Naor, 2001) over the lists of all parts.
//
// A list names the highest items of a part, and says how much any other has at
// most. Only the heads of the lists make candidates; the rest of the lists says
// what else the candidates have. So whoever is no candidate has at most the sum of
// what comes first behind each head, outside; and a candidate has at most what its
// lists say, and what the lists that lack it leave open.
type contest struct {
	*ranking
	*evidence
	candidates []candidate
	byID       idIndex
	byName     map[string]int // of those that the store has no identifier of
	outside    uint64         // nobody who is no candidate has more
	open       uint64         // what lists leave open, of items that they lack
}

type candidate struct {
	id     uint32
	name   string // where there is no id
	listed count
	closed uint64 // what of open does not concern it
}

// most returns the number that nobody knows a candidate to exceed.
func (c *contest) most(x candidate) uint64 { return x.listed.high + c.open - x.closed }

// exact reports whether the lists say all of a candidate.
func (c *contest) exact(x candidate) bool {
	return x.closed == c.open && x.listed.low == x.listed.high
}

// measure is what a row counts for in the ranking. Viewers are bounded by the
// events that reached their sketch.
func (r *ranking) measure(events, reached uint64) uint64 {
	if r.by == ByViewers {
		return reached
	}
	return events
}

// items ranks the items of some groups: from the heads of the lists, and where
// those leave a place open, from longer ones, and at last from all rows.
func (r *ranking) items(groups []group) error {
	r.groups = groups
	e, err := r.readLists()
	if err != nil {
		return err
	}
	for head := max(minHead, 2*r.limit); ; head *= 4 {
		c := newContest(r, e)
		if err := c.lists(head); err != nil {
			return err
		}
		if standing, err := c.hold(); err != nil || standing {
			return cmp.Or(err, r.viewersToo())
		}
		if head >= e.longest {
			break
		}
	}
	c := newContest(r, e)
	if err := c.scan(); err != nil {
		return err
	}
	if _, err := c.hold(); err != nil {
		return err
	}
	return r.viewersToo()
}

// minHead is how long the heads of the lists are at first, at least.
const minHead = 64

func newContest(r *ranking, e *evidence) *contest {
	return &contest{ranking: r, evidence: e, byName: make(map[string]int), outside: e.holes, open: e.holes}
}

// hold finds out who wins, and reports whether nothing more can be found out.
func (c *contest) hold() (standing bool, err error) {
	c.places, c.behind, c.rest = nil, rival{}, c.outside
	if err := c.settle(); err != nil {
		return false, err
	}
	// All rows can move a place, or bring the certificate, only so far.
	return c.safe(c.outside) || c.outside < c.bar() && !c.safe(c.holes), nil
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
		if err := c.enter(places); err != nil {
			return err
		}
	}
	return nil
}

// lookUp adds to some candidates what they have in parts whose lists lack them.
func (c *contest) lookUp(some []candidate) error {
	var index idIndex // into some
	var ids []uint32
	for i, x := range some {
		if x.id != 0 && !c.exact(x) {
			index.put(x.id, i)
			ids = append(ids, x.id)
		}
	}
	slices.Sort(ids)
	listed := make([]int, len(some)) // the last list, from 1, that has it
	missing := make([]uint32, 0, len(ids))
	for n := range c.evidence.lists {
		l := &c.evidence.lists[n]
		if l.most == 0 || len(ids) == 0 {
			continue // it is complete
		}
		for _, id := range l.items {
			if i, ok := index.get(id); ok {
				listed[i] = n + 1
			}
		}
		missing = missing[:0]
		for _, id := range ids {
			if i, _ := index.get(id); listed[i] != n+1 {
				missing = append(missing, id)
				some[i].closed += l.most
			}
		}
		if len(missing) == 0 {
			continue
		}
		at := windows.Stretch{Level: l.part.Level, Range: windows.Range{From: l.part.Start, To: l.part.Start + 1}}
		err := c.snap.RowsOf(at, l.series, missing, func(m int, p windows.Part, row windows.Row) error {
			if p != l.part {
				return nil
			}
			var closed uint64
			if !row.Short {
				closed = l.closed - l.most
			}
			i, _ := index.get(missing[m])
			some[i].add(c.measure(row.Events, row.Reached), l.loose, closed)
			return nil
		})
		if err = cmp.Or(err, c.ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// evaluate returns the numbers of some candidates.
func (c *contest) evaluate(some []candidate) ([]place, error) {
	if c.by == ByViews {
		if err := c.lookUp(some); err != nil {
			return nil, err
		}
	}
	places := make([]place, len(some))
	var open []int // whose numbers have to be read
	var keys []key
	for i, x := range some {
		places[i] = place{id: x.id, name: x.name}
		if c.by == ByViews && c.exact(x) {
			places[i].views = x.listed.number()
			continue
		}
		if err := c.nameIt(&places[i]); err != nil {
			return nil, err
		}
		open, keys = append(open, i), append(keys, c.item(places[i].name))
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
func (r *ranking) viewersToo() error {
	winners := r.places
	if r.by == ByViewers || r.bare || len(winners) == 0 {
		return nil
	}
	keys := make([]key, len(winners))
	for i, p := range winners {
		keys[i] = r.item(p.name)
	}
	tallies, err := r.gather(r.ctx, r.span, keys, r.groups, true)
	if err != nil {
		return err
	}
	for i := range winners {
		winners[i].viewers = tallies[i][0].number()
	}
	return nil
}

// lists makes candidates of the heads of the lists, and adds up what all lists say
// of them.
func (c *contest) lists(head int) error {
	named, most := c.liveItems(c.ranking, liveListed)
	c.outside += most
	c.open += most
	if err := c.enterNamed(named); err != nil {
		return err
	}
	for _, l := range c.evidence.lists {
		c.open += l.most
		if len(l.items) > head {
			c.outside += l.n[head]
		} else {
			c.outside += l.most
		}
		for _, id := range l.items[:min(head, len(l.items))] {
			c.ofID(id)
		}
	}
	for _, l := range c.evidence.lists {
		for i, id := range l.items {
			if at, ok := c.byID.get(id); ok {
				c.candidates[at].add(l.n[i], l.loose, l.closed)
			}
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// scan makes candidates of all rows.
func (c *contest) scan() error {
	named, _ := c.liveItems(c.ranking, 0)
	if err := c.enterNamed(named); err != nil {
		return err
	}
	for _, e := range c.series {
		for _, at := range c.steps(c.span) {
			err := c.snap.Scan(at, e.series, func(p windows.Part, id uint32, r windows.Row) error {
				if r.Kind != windows.Item {
					return nil
				}
				var closed uint64
				if !r.Short {
					closed = e.holes[p]
				}
				c.candidates[c.ofID(id)].add(c.measure(r.Events, r.Reached), e.loose, closed)
				return c.ctx.Err()
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// enterNamed adds up what is known by name: of items without a slot, and of what
// is not in the store.
func (c *contest) enterNamed(live []namedCount) error {
	for _, named := range [][]namedCount{c.slotless, live} {
		for _, n := range named {
			at, err := c.ofName(n.name)
			if err != nil {
				return err
			}
			x := &c.candidates[at]
			x.listed.add(n.count)
			x.closed += n.closed
		}
	}
	return nil
}

// add notes that a list says n of a candidate, and what of open it closes.
func (x *candidate) add(n uint64, loose bool, closed uint64) {
	if loose {
		x.listed.high += n
	} else {
		x.listed.add(count{n, n, n})
	}
	x.closed += closed
}

// ofID returns the index of an item's candidate.
func (c *contest) ofID(id uint32) int {
	at, ok := c.byID.get(id)
	if !ok {
		at = len(c.candidates)
		c.byID.put(id, at)
		c.candidates = append(c.candidates, candidate{id: id})
	}
	return at
}

func (c *contest) ofName(name string) (int, error) {
	id, err := c.id(c.item(name))
	if err != nil {
		return 0, err
	}
	if id.stored {
		return c.ofID(id.id), nil
	}
	at, ok := c.byName[name]
	if !ok {
		at = len(c.candidates)
		c.byName[name] = at
		c.candidates = append(c.candidates, candidate{name: name})
	}
	return at, nil
}
