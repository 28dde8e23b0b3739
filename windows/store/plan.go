package store

import (
	"slices"

	"tidemark/windows"
)

// ladder is which periods of which levels can be read. The zero value has minutes
// only, of all time.
type ladder struct {
	// rolled has the starts that are rolled up, by level; of ever the days that are
	// in it.
	rolled catalogue
	// floor is where each level begins: retention has removed what was before. It is
	// a start of the next level, and never less than that level's floor.
	floor [levelCount]windows.Minute
	// ever is the days that may have something in the level ever; empty: none.
	ever windows.Range
	// first is the first minute that anything was ever kept of.
	first windows.Minute
}

// plan covers the range between each two edges, which ascend, with the largest
// periods that lie in it. steps are disjoint, cover all that can be covered, and
// name each event once; starts of one level that follow each other are one step.
// gone is what retention has taken, or has left in larger periods only.
//
// It is pure: what it says depends on nothing but what it is given.
func (l *ladder) plan(edges []windows.Minute) (steps []windows.Stretch, gone []windows.Range) {
	p := planner{ladder: l}
	for i := 1; i < len(edges); i++ {
		p.all(windows.Range{From: edges[i-1], To: edges[i]})
	}
	return p.steps, p.gone
}

type planner struct {
	*ladder
	steps []windows.Stretch
	gone  []windows.Range
}

// all covers a range, by lifetime totals if it has all that they have.
func (p *planner) all(r windows.Range) {
	if p.ever.Empty() || r.From > p.ever.From || r.To < p.ever.To {
		p.cover(levelDay, r)
		return
	}
	p.step(levelEver, p.ever)
	// What days no longer have is in there too; of the others those that were not
	// rolled up yet remain.
	at := max(r.From, p.floor[levelDay])
	p.rolled.each(levelEver, windows.Range{From: at, To: r.To}, func(e entry) bool {
		p.cover(levelDay, windows.Range{From: at, To: e.start()})
		at = max(at, e.start()+policy[levelDay].size)
		return true
	})
	p.cover(levelDay, windows.Range{From: at, To: r.To})
}

// cover covers a range by periods of a level, and its ends by those of the levels
// below.
func (p *planner) cover(l windows.Level, r windows.Range) {
	if floor := p.floor[l]; r.From < floor {
		p.lost(windows.Range{From: r.From, To: min(r.To, floor)})
		r.From = floor
	}
	if r.Empty() {
		return
	}
	if l == levelMinute {
		p.step(l, r)
		return
	}
	size := policy[l].size
	whole := windows.Range{From: (r.From + size - 1) / size * size, To: r.To / size * size}
	if whole.Empty() {
		p.cover(l-1, r)
		return
	}
	p.cover(l-1, windows.Range{From: r.From, To: whole.From})
	p.periods(l, whole)
	p.cover(l-1, windows.Range{From: whole.To, To: r.To})
}

// periods covers whole periods of a level: those that are rolled up, and those
// that the level below has nothing of any more, as they are, others by the level below.
func (p *planner) periods(l windows.Level, r windows.Range) {
	at := r.From
	if alone := min(r.To, p.floor[l-1]); at < alone {
		p.step(l, windows.Range{From: at, To: alone})
		at = alone
	}
	p.rolled.each(l, windows.Range{From: at, To: r.To}, func(e entry) bool {
		if e.start() >= at {
			p.cover(l-1, windows.Range{From: at, To: e.start()})
			at = e.start() + policy[l].size
			p.step(l, windows.Range{From: e.start(), To: at})
		}
		return true
	})
	p.cover(l-1, windows.Range{From: at, To: r.To})
}

func (p *planner) step(l windows.Level, r windows.Range) {
	if n := len(p.steps) - 1; n >= 0 && p.steps[n].Level == l && p.steps[n].To == r.From {
		p.steps[n].To = r.To
		return
	}
	p.steps = append(p.steps, windows.Stretch{Level: l, Range: r})
}

func (p *planner) lost(r windows.Range) {
	if r.From = max(r.From, p.first); r.Empty() {
		return // there never was anything
	}
	if n := len(p.gone) - 1; n >= 0 && p.gone[n].To == r.From {
		p.gone[n].To = r.To
		return
	}
	p.gone = append(p.gone, r)
}

// Plan covers the range between each two edges, which ascend, by the largest
// periods that are rolled up: with a hundred reads a month of minutes. Each step is
// a Stretch to read; together they name each event of the range once. A part of
// the steps lies between the same two edges as its Start.
//
// gone is what can't be told: retention has taken it, or has left it only as a
// part of larger periods. Where that is everything, nothing is kept of the range.
func (n *Snapshot) Plan(edges []windows.Minute) (steps []windows.Stretch, gone []windows.Range) {
	steps, gone = n.ladder.plan(edges)
	return slices.DeleteFunc(steps, func(s windows.Stretch) bool { return !n.catalogue.any(s.Level, s.Range) }), gone
}

// Kept returns what is kept of each level, from the smallest.
func (n *Snapshot) Kept() []windows.Kept {
	keep := n.store.opts.Keep.levels()
	out := make([]windows.Kept, levelCount)
	for l := range out {
		out[l] = windows.Kept{Level: windows.Level(l), Size: policy[l].size, From: n.ladder.floor[l], For: keep[l]}
	}
	return out
}

// share returns a copy that later changes leave alone.
func (l *ladder) share() ladder {
	out := *l
	out.rolled = l.rolled.share()
	return out
}

// has reports whether a period is rolled up.
func (l *ladder) has(p period) bool {
	return l.rolled.any(p.level, windows.Range{From: p.start, To: p.start + 1})
}

// widenEver says that the level ever may have something of a day.
func (l *ladder) widenEver(day windows.Minute) {
	r := windows.Range{From: day, To: day + policy[levelDay].size}
	if !l.ever.Empty() {
		r = windows.Range{From: min(r.From, l.ever.From), To: max(r.To, l.ever.To)}
	}
	l.ever = r
}
