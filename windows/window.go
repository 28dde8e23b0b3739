package windows

import (
	"tidemark/sketches"
)

// Window is the open, mutable summary of one minute in one partition.
type Window struct {
	Content
	limits     Limits
	dimensions []string
	types      []*seriesState          // the series of types, OtherType last if there is one
	values     map[Series]*seriesState // the series of dimensions' values
	breakdowns int                     // slots that they have
	first      int64                   // the smallest offset it holds
}

// newWindow opens the window of a minute, with room for so many items: a table that
// grows from nothing costs a busy minute a tenth of its time. dimensions are the
// declared ones, in the order of Event.Dims.
func newWindow(m Minute, h sketches.Hasher, l Limits, dimensions []string, first int64, items int) *Window {
	w := &Window{
		Content:    Content{minute: m, hasher: h, memory: windowBytes},
		limits:     l,
		dimensions: dimensions,
		first:      first,
	}
	w.reserve(items)
	w.memory += len(w.slots) * slotBytes
	return w
}

// Partial is what a seal emits for one minute: immutable, safe for any number of
// readers.
type Partial struct{ Content }

// seal closes the window, with the Count-Min tables of its types. It must not be
// touched any more: the partial has its tables.
func (w *Window) seal(tables map[*seriesState]*sketches.CountMin) *Partial {
	w.total = nil
	for _, st := range w.series {
		st.window, st.countMin = nil, tables[st]
	}
	return &Partial{w.Content}
}

// book records what became of a record of this minute.
func (w *Window) book(ev *Event) {
	w.outcomes[ev.Outcome]++
	if ev.Outcome == Malformed {
		if w.reasons == nil {
			w.reasons = make(map[string]uint64)
		}
		w.reasons[ev.Reason]++
	}
}

// findType returns the series of an event's type, nil where it has to be opened.
func (w *Window) findType(name []byte) *seriesState {
	for _, st := range w.types {
		if st.Type == string(name) && st.Other == 0 {
			return st
		}
	}
	if len(w.types) > MaxTypes {
		return w.types[MaxTypes]
	}
	return nil
}

// typeSeries returns the series of an event's type, and opens it if need be.
func (w *Window) typeSeries(name []byte) *seriesState {
	if st := w.findType(name); st != nil {
		return st
	}
	s := Series{Type: string(name)}
	if len(w.types) == MaxTypes {
		s = Series{Other: OtherType}
	}
	st := w.open(s)
	st.of = st
	st.values = make([]int, len(w.dimensions))
	w.types = append(w.types, st)
	return st
}

// valueSeries returns the series of a type's breakdown by the value of the
// dimension with that number.
func (w *Window) valueSeries(typ *seriesState, dimension int, value []byte) *seriesState {
	s := typ.Series
	s.Dimension, s.Value = w.dimensions[dimension], string(value)
	if st := w.values[s]; st != nil {
		return st
	}
	if typ.values[dimension] >= w.limits.Values {
		s.Value = ""
		s.Other |= OtherValue
		if st := w.values[s]; st != nil {
			return st
		}
	}
	typ.values[dimension]++
	return w.openValue(typ, s)
}

func (w *Window) openValue(typ *seriesState, s Series) *seriesState {
	st := w.open(s)
	st.of = typ
	if w.values == nil {
		w.values = make(map[Series]*seriesState)
	}
	w.values[s] = st
	return st
}

func (w *Window) open(s Series) *seriesState {
	st := &seriesState{Series: s, window: w, index: uint32(len(w.series))}
	st.typ, st.value = seriesHash(w.hasher, s)
	w.series = append(w.series, st)
	w.grow(seriesBytes + len(s.Type) + len(s.Value))
	return st
}

// count counts an event in its type's series, and returns the slot of its item, if
// it has one.
func (w *Window) count(st *seriesState, k key, ev *Event) *slot {
	st.site.count++
	s, _ := w.find(k)
	if s == nil {
		if s = w.slot(st, k, ev.Item); s == nil {
			w.spill(st, ev)
			return nil
		}
	}
	s.count++
	if s.count > st.ranking.floor && s.meta&metaHot == 0 {
		w.rank(&st.ranking, s)
	}
	return s
}

// addBreakdowns counts an event in the series of its dimensions' values.
func (w *Window) addBreakdowns(typ *seriesState, ev *Event, token uint32) {
	for d, value := range ev.Dims {
		if value == nil {
			continue
		}
		st := w.valueSeries(typ, d, value)
		s := w.addBreakdown(typ, st, ev)
		if ev.HasUser {
			w.addToken(&st.site, token)
			if s != nil {
				w.addToken(s, token)
			}
		}
	}
}

// addOutcome counts, by item, an event that does not count.
func (w *Window) addOutcome(ev *Event) {
	typ := w.typeSeries(ev.Type)
	s := typ.Series
	s.Dimension, s.Value = OutcomeDimension, ev.Outcome.String()
	st := w.values[s]
	if st == nil {
		st = w.openValue(typ, s)
	}
	w.addBreakdown(typ, st, ev)
}

// addBreakdown counts an event in a series of one of its type's breakdowns, and
// returns the item's slot there, if it has one.
func (w *Window) addBreakdown(typ, st *seriesState, ev *Event) *slot {
	st.site.count++
	k := keyOf(st.typ^st.value, ev.ItemHash)
	s, _ := w.find(k)
	if s == nil {
		if s = w.breakdownSlot(st, k, ev.Item); s == nil {
			w.overflowed(typ)
			typ.countMin.Add(ev.ItemHash.Lo^st.value, 1)
			st.overflow++
			return nil
		}
	}
	s.count++
	return s
}

// slot makes the slot of a key that has none, or returns nil where the window has
// no more to give. The budget never grows back: such a key gets none later either.
func (w *Window) slot(st *seriesState, k key, name []byte) *slot {
	if len(w.entries) >= w.limits.Items || len(w.names)+len(name) > w.limits.Items*nameBytesPerItem {
		return nil
	}
	st.items++
	before := len(w.slots)
	s := w.insert(k, st.index, name)
	w.grow(entryBytes + len(name) + (len(w.slots)-before)*slotBytes)
	return s
}

func (w *Window) breakdownSlot(st *seriesState, k key, name []byte) *slot {
	if w.breakdowns >= w.limits.Items/2 {
		return nil
	}
	s := w.slot(st, k, name)
	if s != nil {
		w.breakdowns++
	}
	return s
}

// spill counts an event whose item has no slot.
func (w *Window) spill(st *seriesState, ev *Event) {
	w.overflowed(st)
	st.overflow++
	if estimate := st.countMin.Add(ev.ItemHash.Lo, 1); estimate > st.heap.Min() {
		st.heap.Offer(ev.ItemHash, estimate, ev.Item)
	}
}

// overflowed makes the Count-Min table and the heap of a type, a key of which has
// found no slot.
func (w *Window) overflowed(typ *seriesState) {
	if typ.heap == nil {
		typ.heap = sketches.NewTopK(w.hasher.KeyID(), topK)
		typ.countMin = sketches.NewCountMin(w.hasher.KeyID())
		w.grow(heapBytes + countMinBytes)
	}
}

// countMins returns the Count-Min tables of the window's types that are large
// enough to have one: what had no slot is in them already, key by key, and what had
// one enters here with its whole count. So every event is in its table, and one
// whose item has a slot costs nothing until the window is sealed: an update of the
// table for each event took a quarter of the window path. The window is not changed.
func (w *Window) countMins() map[*seriesState]*sketches.CountMin {
	var tables map[*seriesState]*sketches.CountMin
	for _, typ := range w.types {
		if typ.items < countMinFrom && typ.heap == nil {
			continue
		}
		if tables == nil {
			tables = make(map[*seriesState]*sketches.CountMin)
		}
		t := sketches.NewCountMin(w.hasher.KeyID())
		if typ.countMin != nil {
			t = typ.countMin.Clone()
		}
		tables[typ] = t
	}
	if tables == nil {
		return nil
	}
	typ := w.types[0]
	t := tables[typ]
	for i := range w.slots {
		s := &w.slots[i]
		if s.hash == 0 || s.count == 0 {
			continue
		}
		if len(w.types) > 1 { // else nobody needs to look up whose slot it is
			typ = w.series[w.entries[w.refs[i]].series].of
			t = tables[typ]
		}
		if t != nil {
			t.Add(s.hash^typ.typ, s.count)
		}
	}
	return tables
}
