package queries

import (
	"cmp"
	"context"

	"tidemark/sketches"
	"tidemark/windows"
)

// count is how many events there were, with its bounds.
type count struct{ low, value, high uint64 }

func (c *count) add(o count) {
	c.low += o.low
	c.value += o.value
	c.high += o.high
}

// compare orders by value, then by bounds.
func (c count) compare(o count) int {
	return cmp.Or(cmp.Compare(c.value, o.value), cmp.Compare(c.high, o.high), cmp.Compare(c.low, o.low))
}

func (c count) number() Number {
	n := Number{Value: c.value, Low: c.low, High: c.high, Method: sketches.MethodExact}
	if c.low != c.high {
		n.Method = sketches.MethodCountMin
	}
	return n
}

// tally is what is known of one key in one bucket.
type tally struct {
	types   []count // by group
	total   count   // of all groups
	reached uint64  // events that reached the viewers sketch
	viewers *sketches.Viewers
	unseen  count // events of which no viewer is known
}

func newTally(groups int, id sketches.KeyID, viewers bool) *tally {
	t := &tally{types: make([]count, groups)}
	if viewers {
		t.viewers = sketches.NewViewers(id)
	}
	return t
}

// merge adds what another tally knows, of other events.
func (t *tally) merge(o *tally) error {
	for i := range t.types {
		t.types[i].add(o.types[i])
	}
	t.total.add(o.total)
	t.reached += o.reached
	t.unseen.add(o.unseen)
	if t.viewers == nil {
		return nil
	}
	return t.viewers.Merge(o.viewers)
}

// addRow counts a row of a group.
func (t *tally) addRow(group int, r windows.Row) {
	c := count{r.Events, r.Events, r.Events}
	t.types[group].add(c)
	t.total.add(c)
	t.reached += r.Reached
	switch {
	case t.viewers == nil:
	case r.Registers != nil:
		t.viewers.AddRegisters(r.Registers)
	default:
		t.viewers.AddTokens(r.Tokens)
	}
}

// addUnseen counts events that may be the key's, and of which no viewer is known.
func (t *tally) addUnseen(group int, c count) {
	t.types[group].add(c)
	t.total.add(c)
	t.unseen.add(c)
}

// counts returns the counts of some groups as the answer has them; together is
// whether there is one of all of them too.
func (t *tally) counts(groups []group, together bool) Counts {
	counts := make(Counts, len(groups)+1)
	for _, g := range groups {
		counts[g.name] = t.types[g.index].number()
	}
	if together {
		counts[AllTypes] = t.total.number()
	}
	return counts
}

// number returns how many different viewers there were.
//
// The bounds use what is known for certain, and nothing that depends on how the
// events came to lie in parts (Q3): no more viewers than events that reached the
// sketch; and a dense sketch has seen more than MaxTokens different tokens, so at
// least so many people, which is never less than any part that still has tokens
// can tell. The sum of the parts' bounds would be tighter at times, but another
// one after a roll-up.
func (t *tally) number() Number {
	n := t.viewers.Number()
	if t.viewers.Dense() {
		n.Low = max(n.Low, sketches.MaxTokens+1)
		n.Value = max(n.Value, n.Low)
		n.High = max(n.High, n.Value)
	}
	n.High = min(n.High, t.reached)
	n.Value = min(n.Value, n.High)
	n.Low = min(n.Low, n.Value)
	if t.unseen.high > 0 {
		n.Method = sketches.MethodCountMin
		n.Value += t.unseen.value
		n.High += t.unseen.high
	}
	return n
}

// gather reads some keys in all buckets of a span: for each key and bucket a
// tally. It is called with so many of them that fit in memory at once.
func (v *view) gather(ctx context.Context, s *span, keys []key, groups []group, viewers bool) ([][]*tally, error) {
	g := gathering{view: v, ctx: ctx, span: s, keys: keys}
	for range keys {
		row := make([]*tally, len(s.buckets)-1)
		for b := range row {
			row[b] = newTally(len(groups), v.hasher.KeyID(), viewers)
		}
		g.tallies = append(g.tallies, row)
	}
	for i, gr := range groups {
		err := g.each(gr.series,
			func(key int, p windows.Part, r windows.Row) { g.at(key, p).addRow(i, r) },
			func(key int, p windows.Part, c count) { g.at(key, p).addUnseen(i, c) })
		if err != nil {
			return nil, err
		}
	}
	return g.tallies, g.rests(groups)
}

type gathering struct {
	*view
	ctx     context.Context
	span    *span
	keys    []key
	tallies [][]*tally // by key and bucket
}

func (g *gathering) at(key int, p windows.Part) *tally {
	return g.tallies[key][g.span.bucketOf(p.Start)]
}

// each yields the rows of all keys in a series, and where a key may have had
// events without a slot, how many.
func (g *gathering) each(s windows.Series, row func(key int, p windows.Part, r windows.Row), unseen func(key int, p windows.Part, c count)) error {
	overflow, err := g.overflow(g.span, s)
	if err != nil {
		return err
	}
	type place struct {
		key  int
		part windows.Part
	}
	have := make(map[place]windows.Row) // in parts that overflowed; of these the counts alone
	err = g.read(g.ctx, g.span, s, g.keys, func(i int, p windows.Part, r windows.Row) {
		if _, ok := overflow[p]; ok {
			have[place{i, p}] = windows.Row{Events: r.Events, Short: r.Short}
		}
		row(i, p, r)
	})
	if err != nil {
		return err
	}
	if len(overflow) == 0 || g.keys[0].kind == windows.Site {
		return nil
	}
	return g.sketches(g.span, s, func(p windows.Part, table *sketches.CountMin, _ *sketches.TopK) error {
		most, ok := overflow[p]
		if !ok {
			return nil
		}
		for i, k := range g.keys {
			r, has := have[place{i, p}]
			if has && !r.Short {
				continue // all its events are in its slots
			}
			// The table holds all events of the item in windows that overflowed; those
			// without a slot are no more than all such events.
			c := count{value: most, high: most}
			if table != nil {
				estimate := uint64(table.Estimate(windows.SketchKey(g.hasher, s, k.hash)))
				c.high = min(most, estimate)
				c.value = min(most, estimate-min(estimate, r.Events))
			}
			if c.high > 0 {
				unseen(i, p, c)
			}
		}
		return nil
	})
}

// rests widens the bounds by what is in the series of the rest: events of types,
// or values, that were beyond a window's limit.
func (g *gathering) rests(groups []group) error {
	asked := make(map[windows.Series]bool)
	widened := make(map[windows.Series][]int) // a rest to the groups that it can hold events of
	for i := range groups {
		asked[groups[i].series] = true
		for _, rest := range groups[i].rest {
			widened[rest] = append(widened[rest], i)
		}
	}
	for rest, of := range widened {
		// A window that gave a series to the type and value put all its events there.
		has := make([]map[windows.Part]bool, len(of))
		for j, i := range of {
			has[j] = make(map[windows.Part]bool)
			err := g.rows(g.span, groups[i].series, site, func(p windows.Part, _ windows.Row) error {
				has[j][p] = p.Level == windows.LevelMinute
				return nil
			})
			if err != nil {
				return err
			}
		}
		widen := func(key int, p windows.Part, most uint64) {
			t, c := g.at(key, p), count{high: most}
			any := false
			for j, i := range of {
				if !has[j][p] {
					t.types[i].add(c)
					any = true
				}
			}
			if any && !asked[rest] { // else the total has them already
				t.total.add(c)
				t.unseen.add(c)
			}
		}
		err := g.each(rest,
			func(key int, p windows.Part, r windows.Row) { widen(key, p, r.Events) },
			func(key int, p windows.Part, c count) { widen(key, p, c.high) })
		if err != nil {
			return err
		}
	}
	return nil
}
