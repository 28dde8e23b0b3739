package windows

import (
	"slices"
	"strings"

	"tidemark/sketches"
)

// Content is what an open window and a sealed partial have in common: the
// summaries of one minute of one partition. Of a window it is read under the
// partition's lock, of a partial freely.
type Content struct {
	minute Minute
	table
	series []*seriesState
	sets   []sketches.TokenSet
	dense  []sketches.Registers

	outcomes [outcomes]uint64
	reasons  map[string]uint64 // of the malformed
	hasher   sketches.Hasher
	memory   int  // resident, about
	total    *int // of the partition's windows, where this one is among them
}

// seriesState is one series of a content.
type seriesState struct {
	Series
	window   *Window      // while it is open
	of       *seriesState // the series of its type
	index    uint32
	typ      uint64 // its parts in the keys of slots: see seriesHash
	value    uint64
	site     slot   // all items together
	items    int    // that have a slot
	overflow uint64 // events of items that have none

	// Of the series of types alone:
	values   []int              // how many values each dimension has
	countMin *sketches.CountMin // once a key of the type has no slot: such keys; sealed: all
	heap     *sketches.TopK     // once a key of the type has no slot: the highest such items
	ranking  ranking            // the highest items that have one
}

// Minute returns the minute that the content is about.
func (c *Content) Minute() Minute { return c.minute }

// Series returns the series that have rows, in the order of their first event.
func (c *Content) Series() []Series {
	out := make([]Series, len(c.series))
	for i, s := range c.series {
		out[i] = s.Series
	}
	return out
}

// Items returns how many keys (series, item) have a slot.
func (c *Content) Items() int { return len(c.entries) }

// Empty reports whether nothing was counted: there may still be outcomes.
func (c *Content) Empty() bool {
	return !slices.ContainsFunc(c.series, func(s *seriesState) bool { return s.Dimension == "" && s.site.count > 0 })
}

// Find returns the row of one key. For an item, hash is Hasher.Item of its name.
func (c *Content) Find(s Series, kind Kind, hash sketches.Hash128) (Row, bool) {
	st := c.lookup(s)
	if st == nil {
		return Row{}, false
	}
	switch kind {
	case Site:
		return c.row(Site, nil, &st.site, nil), st.site.count > 0
	case Overflow:
		return Row{Kind: Overflow, Events: st.overflow, Reached: st.overflow}, st.overflow > 0
	case Item:
		sl, _ := c.find(keyOf(st.typ^st.value, hash))
		if sl == nil {
			return Row{}, false
		}
		return c.row(Item, nil, sl, nil), true
	}
	return Row{}, false
}

// Each calls yield for every row until it returns false: by series, first its
// Site, then its Overflow if it has one, and after them the items of all series in
// the order of the table. series is an index into Series().
func (c *Content) Each(yield func(series int, r Row) bool) {
	for i, st := range c.series {
		if st.site.count > 0 && !yield(i, c.row(Site, nil, &st.site, nil)) {
			return
		}
		if st.overflow > 0 && !yield(i, Row{Kind: Overflow, Events: st.overflow, Reached: st.overflow}) {
			return
		}
	}
	_ = c.eachItem(func(e entry, r Row) bool { return yield(int(e.series), r) })
}

// EachOf calls yield for every row of one series, like Each.
func (c *Content) EachOf(s Series, yield func(r Row) bool) {
	st := c.lookup(s)
	if st == nil || st.site.count > 0 && !yield(c.row(Site, nil, &st.site, nil)) {
		return
	}
	if st.overflow > 0 && !yield(Row{Kind: Overflow, Events: st.overflow, Reached: st.overflow}) {
		return
	}
	_ = c.eachItem(func(e entry, r Row) bool { return e.series != st.index || yield(r) })
}

// eachItem goes through the items some slots at a time: first all their entries are
// read, then a byte of each name, then they are yielded. Each lies somewhere else in
// memory, and so many reads wait at once instead of one after the other. It returns
// what it read of the names, or the compiler would leave that out.
func (c *Content) eachItem(yield func(e entry, r Row) bool) (touched byte) { //nolint:unparam // see above
	const together = 32
	var batch [together]struct {
		slot  *slot
		entry entry
	}
	var scratch []uint32
	for i := 0; i < len(c.slots); {
		n := 0
		for ; i < len(c.slots) && n < together; i++ {
			if c.slots[i].hash == 0 {
				continue
			}
			batch[n].slot, batch[n].entry = &c.slots[i], c.entries[c.refs[i]]
			n++
		}
		for _, b := range batch[:n] {
			touched += c.names[b.entry.name]
		}
		for _, b := range batch[:n] {
			r := c.row(Item, c.name(b.entry), b.slot, scratch)
			if b.slot.meta&metaForm == formSet {
				scratch = r.Tokens[:0]
			}
			if !yield(b.entry, r) {
				return touched
			}
		}
	}
	return touched
}

// Sketch returns what a type knows of the keys that found no slot: a Count-Min
// table of them, in which once sealed the type's other keys are as well (see
// SketchKey), and the highest of the items as such among them. ok is false where
// every key has a slot. The table is nil where it was found to be damaged: then only
// Overflow bounds such a key.
func (c *Content) Sketch(s Series) (table *sketches.CountMin, heap *sketches.TopK, ok bool) {
	st := c.lookup(Series{Type: s.Type, Other: s.Other & OtherType})
	if st == nil || st.heap == nil {
		return nil, nil, false
	}
	return st.countMin, st.heap, true
}

// Outcomes returns how many records of the minute had which outcome, by outcome
// and reason, without zeros.
func (c *Content) Outcomes() []OutcomeCount {
	var out []OutcomeCount
	for o, n := range c.outcomes {
		if n > 0 && Outcome(o) != Malformed {
			out = append(out, OutcomeCount{Outcome: Outcome(o), Records: n})
		}
	}
	for reason, n := range c.reasons {
		out = append(out, OutcomeCount{Outcome: Malformed, Reason: reason, Records: n})
	}
	slices.SortFunc(out, func(a, b OutcomeCount) int {
		if a.Outcome != b.Outcome {
			return int(a.Outcome) - int(b.Outcome)
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	return out
}

// Bytes returns the resident memory of the content, about.
func (c *Content) Bytes() int { return c.memory }

// grow books memory that the content has taken.
func (c *Content) grow(bytes int) {
	c.memory += bytes
	if c.total != nil {
		*c.total += bytes
	}
}

func (c *Content) lookup(s Series) *seriesState {
	for _, st := range c.series {
		if st.Series == s {
			return st
		}
	}
	return nil
}

// row shows a slot as a Row. Tokens of a set are copied into scratch.
func (c *Content) row(kind Kind, name []byte, s *slot, scratch []uint32) Row {
	r := Row{Kind: kind, Item: name, Events: uint64(s.count), Reached: uint64(s.count)}
	switch s.meta & metaForm {
	case formSet:
		r.Tokens = c.sets[s.tokens[0]].AppendTo(scratch[:0])
	case formDense:
		r.Registers = c.dense[s.tokens[0]]
	default:
		n := s.meta & metaInline
		r.Tokens = s.tokens[:n:n]
	}
	return r
}

// addToken adds a viewer to a slot: at most MaxInline tokens in the slot itself,
// at most MaxTokens in a set, more in registers. So the form follows from the
// number of different tokens alone, however they came.
func (c *Content) addToken(s *slot, t uint32) {
	switch s.meta & metaForm {
	case formDense:
		c.dense[s.tokens[0]].AddToken(t)
	case formSet:
		set := &c.sets[s.tokens[0]]
		if !set.Add(t) {
			return
		}
		c.grow(tokenBytes)
		if set.Len() > sketches.MaxTokens {
			c.toRegisters(s, set)
		}
	default:
		n := s.meta & metaInline
		if slices.Contains(s.tokens[:n], t) {
			return
		}
		if n < sketches.MaxInline {
			s.tokens[n] = t
			s.meta++
			return
		}
		c.sets = append(c.sets, sketches.TokenSet{})
		set := &c.sets[len(c.sets)-1]
		for _, have := range s.tokens {
			set.Add(have)
		}
		set.Add(t)
		s.tokens[0] = uint32(len(c.sets) - 1)
		s.meta = s.meta&^(metaForm|metaInline) | formSet
		c.grow(setBytes)
	}
}

// What the parts of a content take, about, for its Bytes.
const (
	windowBytes   = 768 // a window with nothing in it
	seriesBytes   = 512
	slotBytes     = 64 + 4 // of the table, free or not
	entryBytes    = 16
	tokenBytes    = 8   // a token of a set
	setBytes      = 192 // a set when it is made
	heapBytes     = topK * 64
	countMinBytes = sketches.Rows * sketches.Width * 4
)

func (c *Content) toRegisters(s *slot, set *sketches.TokenSet) {
	regs := sketches.NewRegisters()
	for _, t := range set.AppendTo(nil) {
		regs.AddToken(t)
	}
	c.grow(sketches.RegisterCount - set.Len()*tokenBytes)
	*set = sketches.TokenSet{}
	c.dense = append(c.dense, regs)
	s.tokens[0] = uint32(len(c.dense) - 1)
	s.meta = s.meta&^metaForm | formDense
}
