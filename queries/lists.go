package queries

import (
	"cmp"
	"slices"

	"tidemark/sketches"
	"tidemark/windows"
)

// evidence is what the parts say of their highest items, without going through
// their rows.
type evidence struct {
	lists    []partList
	longest  int           // of the lists
	series   []seriesHoles // that were looked at
	slotless []namedCount  // items that found no slot somewhere
	holes    uint64        // what any other item may have without a slot
}

// partList is the list of one part, the highest number first.
type partList struct {
	part   windows.Part
	series windows.Series
	items  []uint32
	n      []uint64
	most   uint64 // of whoever has a row in the part and is not listed
	closed uint64 // what of contest.open does not concern whoever is listed
	loose  bool   // of a series that only may hold events of what is asked for
}

// seriesHoles is how much an item may have without a slot, in each part of a
// series, if it is not among the highest of those.
type seriesHoles struct {
	series windows.Series
	loose  bool
	holes  map[windows.Part]uint64
}

// namedCount is what is known of an item by its name.
type namedCount struct {
	name   string
	count  count
	closed uint64 // as in partList
}

// readLists reads the lists of all parts.
func (r *ranking) readLists() (*evidence, error) {
	e := new(evidence)
	seen := make(map[windows.Series]bool)
	one := func(s windows.Series, loose bool) error {
		if seen[s] {
			return nil
		}
		seen[s] = true
		holes, err := e.readSlotless(r, s)
		if err != nil {
			return err
		}
		e.series = append(e.series, seriesHoles{s, loose, holes})
		for _, at := range r.steps(r.span) {
			err := r.snap.Lists(at, s, func(p windows.Part, l windows.TopList) error {
				e.add(r, p, s, l, loose, holes)
				return r.ctx.Err()
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, g := range r.groups {
		if err := one(g.series, false); err != nil {
			return nil, err
		}
	}
	for _, g := range r.groups {
		for _, rest := range g.rest {
			if err := one(rest, true); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

// add keeps a copy of a list.
func (e *evidence) add(r *ranking, p windows.Part, s windows.Series, l windows.TopList, loose bool, holes map[windows.Part]uint64) {
	n := l.Events
	if r.by == ByViewers {
		n = l.Reached
	}
	list := partList{
		part: p, series: s, loose: loose,
		items: slices.Clone(l.Items), n: slices.Clone(n), most: r.measure(l.MaxEvents, l.MaxReached),
	}
	list.closed = list.most
	if p.Level == windows.LevelMinute {
		list.closed += holes[p] // who has a slot there has no event without one
	}
	if !slices.IsSortedFunc(list.n, func(a, b uint64) int { return cmp.Compare(b, a) }) {
		list.sort() // by the events that reach the sketch, which are not the same order
	}
	e.lists, e.longest = append(e.lists, list), max(e.longest, len(list.items))
}

func (l *partList) sort() {
	order := make([]int, len(l.n))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(l.n[b], l.n[a]) })
	items, n := make([]uint32, len(order)), make([]uint64, len(order))
	for to, from := range order {
		items[to], n[to] = l.items[from], l.n[from]
	}
	l.items, l.n = items, n
}

// readSlotless reads which items of a series found no slot.
func (e *evidence) readSlotless(r *ranking, s windows.Series) (holes map[windows.Part]uint64, err error) {
	overflow, err := r.overflow(r.span, s)
	if err != nil || len(overflow) == 0 {
		return nil, err
	}
	holes = make(map[windows.Part]uint64)
	err = r.sketches(r.span, s, func(p windows.Part, table *sketches.CountMin, heap *sketches.TopK) error {
		all := overflow[p]
		if all == 0 {
			return nil
		}
		most := all
		if s.Dimension == "" && table != nil { // the heap is about the items as such
			most = min(all, uint64(heap.Min()))
		}
		e.holes += most
		holes[p] = most
		for _, entry := range heap.Sorted() {
			n := all
			if table != nil {
				n = min(all, uint64(table.Estimate(windows.SketchKey(r.hasher, s, entry.Hash))))
			}
			e.slotless = append(e.slotless, namedCount{entry.Name, count{high: n}, most})
		}
		return nil
	})
	return holes, err
}

// liveListed is how many items of what is not in the store are listed.
const liveListed = 1000

// liveItems returns the items of what is not in the store: all of them, or the highest,
// where keep is not 0; and how much any other has at most.
func (e *evidence) liveItems(r *ranking, keep int) (items []namedCount, most uint64) {
	sums := make(map[string]namedCount)
	for _, s := range e.series {
		for _, f := range r.live {
			fs := f.series[s.series]
			if fs == nil || !r.span.Contains(f.part.Start) {
				continue
			}
			for i, name := range fs.names {
				row := &fs.rows[i]
				if name == "" {
					continue // the site
				}
				x := sums[name]
				x.name = name
				n := r.measure(row.Events, row.Reached)
				if x.count.high += n; !s.loose {
					x.count.low += n
					x.count.value += n
				}
				x.closed += s.holes[f.part]
				sums[name] = x
			}
		}
	}
	for _, x := range sums {
		items = append(items, x)
	}
	if keep > 0 && len(items) > keep {
		slices.SortFunc(items, func(a, b namedCount) int { return cmp.Compare(b.count.high, a.count.high) })
		most = items[keep].count.high
		items = items[:keep]
		for i := range items {
			items[i].closed += most
		}
	}
	return items, most
}
