package windowstest

import (
	"cmp"
	"slices"
	"strings"
)

// Oracle answers questions about a set of events exactly. It is safe for
// concurrent use.
type Oracle struct {
	rows  []row // by time
	items names
	users names
	types names
	dims  []string // names of the dimensions
	value []names  // of each dimension
}

// row is an event with numbers for names, so that an answer over some 100,000
// events takes milliseconds and a test can ask for hundreds.
type row struct {
	time            int64
	item, user, typ int32 // user is -1 for nobody
	dims            []int32
}

// names numbers strings in the order in which they first appear.
type names struct {
	id   map[string]int32
	name []string
}

func (n *names) of(s string) int32 {
	if id, ok := n.id[s]; ok {
		return id
	}
	if n.id == nil {
		n.id = make(map[string]int32)
	}
	id := int32(len(n.name))
	n.id[s] = id
	n.name = append(n.name, s)
	return id
}

// find returns -2 for a name never seen: no row has it.
func (n *names) find(s string) int32 {
	if id, ok := n.id[s]; ok {
		return id
	}
	return -2
}

// NewOracle counts all the events; dims names the dimensions that their Dims are
// values of, an empty value being none. See WithoutDuplicates.
func NewOracle(events []Event, dims ...string) *Oracle {
	o := &Oracle{dims: dims, value: make([]names, len(dims))}
	for _, e := range events {
		r := row{time: e.Time, item: o.items.of(e.Item), user: -1, typ: o.types.of(e.Type)}
		if e.User != "" {
			r.user = o.users.of(e.User)
		}
		for i, v := range e.Dims[:min(len(e.Dims), len(dims))] {
			id := int32(-1)
			if v != "" {
				id = o.value[i].of(v)
			}
			r.dims = append(r.dims, id)
		}
		o.rows = append(o.rows, r)
	}
	slices.SortStableFunc(o.rows, func(a, b row) int { return cmp.Compare(a.time, b.time) })
	return o
}

// WithoutDuplicates returns the events without those whose ID stands before: what
// counts as long as the look-back of the dedup reaches over all of them.
func WithoutDuplicates(events []Event) []Event {
	seen := make(map[string]bool)
	var kept []Event
	for _, e := range events {
		if e.ID != "" {
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
		}
		kept = append(kept, e)
	}
	return kept
}

// Question says which events are asked for.
type Question struct {
	From, To  int64    // half-open range, Unix ms
	Types     []string // nil: all types together
	Dimension string   // "": any event
	Value     string   // of the dimension
}

// Tally is the exact answer: how many events, of how many different users.
type Tally struct{ Events, Viewers uint64 }

// Ranked is an item with its tally.
type Ranked struct {
	Item string
	Tally
}

// Span returns the time of the first event and the millisecond after the last.
func (o *Oracle) Span() (from, to int64) {
	if len(o.rows) == 0 {
		return 0, 0
	}
	return o.rows[0].time, o.rows[len(o.rows)-1].time + 1
}

// Types returns all types in byte order.
func (o *Oracle) Types() []string { return slices.Sorted(slices.Values(o.types.name)) }

// ItemNames returns all items in byte order.
func (o *Oracle) ItemNames() []string { return slices.Sorted(slices.Values(o.items.name)) }

// Users returns how many different users there are.
func (o *Oracle) Users() int { return len(o.users.name) }

// Events returns how many events there are.
func (o *Oracle) Events() int { return len(o.rows) }

// each calls yield for the rows that q asks for.
func (o *Oracle) each(q Question, yield func(row)) {
	var types map[int32]bool
	if q.Types != nil {
		types = make(map[int32]bool)
		for _, t := range q.Types {
			types[o.types.find(t)] = true
		}
	}
	dim, value := -1, int32(-2)
	if q.Dimension != "" {
		dim = slices.Index(o.dims, q.Dimension)
		if dim < 0 {
			return
		}
		value = o.value[dim].find(q.Value)
	}
	start, _ := slices.BinarySearchFunc(o.rows, q.From, func(r row, t int64) int { return cmp.Compare(r.time, t) })
	for _, r := range o.rows[start:] {
		if r.time >= q.To {
			return
		}
		if types != nil && !types[r.typ] {
			continue
		}
		if dim >= 0 && (dim >= len(r.dims) || r.dims[dim] != value) {
			continue
		}
		yield(r)
	}
}

// Site returns the tally of all items together.
func (o *Oracle) Site(q Question) Tally {
	var t Tally
	users := make(map[int32]struct{})
	o.each(q, func(r row) {
		t.Events++
		if r.user >= 0 {
			users[r.user] = struct{}{}
		}
	})
	t.Viewers = uint64(len(users))
	return t
}

// Item returns the tally of one item.
func (o *Oracle) Item(q Question, item string) Tally { return o.Together(q, item) }

// Together returns the tally of some items as if they were one.
func (o *Oracle) Together(q Question, items ...string) Tally {
	wanted := make(map[int32]bool)
	for _, item := range items {
		wanted[o.items.find(item)] = true
	}
	var t Tally
	users := make(map[int32]struct{})
	o.each(q, func(r row) {
		if !wanted[r.item] {
			return
		}
		t.Events++
		if r.user >= 0 {
			users[r.user] = struct{}{}
		}
	})
	t.Viewers = uint64(len(users))
	return t
}

// Items returns every item that has events, in byte order.
func (o *Oracle) Items(q Question) []Ranked {
	type pair struct{ item, user int32 }
	tallies := make(map[int32]*Tally)
	seen := make(map[pair]struct{})
	o.each(q, func(r row) {
		t := tallies[r.item]
		if t == nil {
			t = new(Tally)
			tallies[r.item] = t
		}
		t.Events++
		if r.user < 0 {
			return
		}
		p := pair{r.item, r.user}
		if _, ok := seen[p]; !ok {
			seen[p] = struct{}{}
			t.Viewers++
		}
	})
	ranked := make([]Ranked, 0, len(tallies))
	for item, t := range tallies {
		ranked = append(ranked, Ranked{o.items.name[item], *t})
	}
	slices.SortFunc(ranked, func(a, b Ranked) int { return strings.Compare(a.Item, b.Item) })
	return ranked
}

// By is what a ranking goes by.
type By func(Tally) uint64

// Views ranks by events.
func Views(t Tally) uint64 { return t.Events }

// Viewers ranks by different users.
func Viewers(t Tally) uint64 { return t.Viewers }

// Top returns the limit highest items: the higher number first, equal ones in
// the byte order of the items; an item with zero has no place.
func (o *Oracle) Top(q Question, by By, limit int) []Ranked {
	ranked := o.Items(q)
	ranked = slices.DeleteFunc(ranked, func(r Ranked) bool { return by(r.Tally) == 0 })
	slices.SortStableFunc(ranked, func(a, b Ranked) int { return cmp.Compare(by(b.Tally), by(a.Tally)) })
	return ranked[:min(limit, len(ranked))]
}

// Cell is one item in one bucket of time.
type Cell struct {
	Item  string
	Start int64 // Unix ms
	Tally
}

// Table returns all items in all buckets of the given size in milliseconds,
// aligned to the Unix epoch, ordered by item and start.
func (o *Oracle) Table(q Question, size int64) []Cell {
	type cell struct {
		item  int32
		start int64
	}
	type seen struct {
		cell
		user int32
	}
	tallies := make(map[cell]*Tally)
	users := make(map[seen]struct{})
	o.each(q, func(r row) {
		c := cell{r.item, r.time / size * size}
		t := tallies[c]
		if t == nil {
			t = new(Tally)
			tallies[c] = t
		}
		t.Events++
		if r.user < 0 {
			return
		}
		s := seen{c, r.user}
		if _, ok := users[s]; !ok {
			users[s] = struct{}{}
			t.Viewers++
		}
	})
	table := make([]Cell, 0, len(tallies))
	for c, t := range tallies {
		table = append(table, Cell{o.items.name[c.item], c.start, *t})
	}
	slices.SortFunc(table, func(a, b Cell) int {
		return cmp.Or(strings.Compare(a.Item, b.Item), cmp.Compare(a.Start, b.Start))
	})
	return table
}
