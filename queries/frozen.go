package queries

import (
	"bytes"
	"time"

	"tidemark/sketches"
	"tidemark/windows"
)

// frozen is a copy of what a question wants of one window, or of a seal that
// waits: a part that is not in the store.
type frozen struct {
	part     windows.Part
	series   map[windows.Series]*frozenSeries
	outcomes []windows.OutcomeCount
}

type frozenSeries struct {
	names    []string       // of items; of the site ""
	rows     []windows.Row  // of each
	index    map[string]int // into them, made when it is first needed
	overflow windows.Row
	table    *sketches.CountMin
	heap     *sketches.TopK // nil: every item has a slot
}

// liveParts is where the identifiers of parts begin that the store has not numbered.
const liveParts = 1 << 31

func (v *view) freeze(c *windows.Content, w wanted) {
	m := c.Minute()
	if !c.Empty() {
		v.kept = windows.Range{From: min(v.kept.From, m), To: max(v.kept.To, m+1)}
	}
	if !w.within.mayHold(m) {
		return
	}
	f := &frozen{
		part:     windows.Part{Start: m, ID: liveParts + uint32(len(v.live))},
		series:   make(map[windows.Series]*frozenSeries),
		outcomes: c.Outcomes(),
	}
	for _, s := range c.Series() {
		if w.series(s) {
			f.series[s] = freezeSeries(c, s, w, v.hasher.KeyID())
		}
	}
	v.live = append(v.live, f)
}

func freezeSeries(c *windows.Content, s windows.Series, w wanted, id sketches.KeyID) *frozenSeries {
	f := new(frozenSeries)
	f.overflow, _ = c.Find(s, windows.Overflow, sketches.Hash128{})
	// There can be many rows, and this holds up whoever counts: so names and tokens
	// are copied into one place each.
	var names []byte
	var ends []int
	var tokens []uint32
	keep := func(r windows.Row) {
		names = append(names, r.Item...)
		ends = append(ends, len(names))
		r.Item = nil
		if w.tokens {
			first := len(tokens)
			tokens = append(tokens, r.Tokens...)
			r.Tokens, r.Registers = tokens[first:len(tokens):len(tokens)], bytes.Clone(r.Registers)
		} else {
			r.Tokens, r.Registers = nil, nil
		}
		f.rows = append(f.rows, r)
	}
	if w.whole != nil && w.whole(s) {
		c.EachOf(s, func(r windows.Row) bool {
			if r.Kind != windows.Overflow {
				keep(r)
			}
			return true
		})
	} else {
		for _, k := range append(w.keys, site) {
			if r, ok := c.Find(s, k.kind, k.hash); ok {
				r.Item = []byte(k.item)
				keep(r)
			}
		}
	}
	all, from := string(names), 0
	f.names = make([]string, len(ends))
	for i, end := range ends {
		f.names[i], from = all[from:end], end
	}
	if table, heap, ok := c.Sketch(s); ok && s.Dimension == "" {
		if table != nil {
			f.table = sketches.NewCountMin(id)
			_ = f.table.Merge(table) // of one key
		}
		f.heap = sketches.NewTopK(id, heap.K())
		for _, e := range heap.Sorted() {
			f.heap.Offer(e.Hash, e.Count, []byte(e.Name))
		}
	}
	return f
}

func (f *frozen) find(s windows.Series, k key) (windows.Row, bool) {
	fs := f.series[s]
	if fs == nil {
		return windows.Row{}, false
	}
	if k.kind == windows.Overflow {
		return fs.overflow, fs.overflow.Events > 0
	}
	if fs.index == nil {
		fs.index = make(map[string]int, len(fs.names))
		for i, name := range fs.names {
			fs.index[name] = i
		}
	}
	i, ok := fs.index[k.item]
	if !ok {
		return windows.Row{}, false
	}
	return fs.rows[i], true
}

// mayHold reports whether the range can come to hold m, whatever is kept.
func (w When) mayHold(m windows.Minute) bool {
	if w.Last > 0 {
		return true // steps may move its start; there are few windows
	}
	t := m.Time()
	const step = 32 * 24 * time.Hour // the longest, by which an edge is moved outward
	return (w.From.IsZero() || !t.Before(w.From.Add(-step))) && (w.To.IsZero() || t.Before(w.To.Add(step)))
}
