package store

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tidemark/sketches"
	"tidemark/windows"
)

// source is one start of one part that is merged with others: its rows, ascending,
// and its tables.
type source struct {
	block func() ([]byte, error) // the next block, nil at the end; valid until the next call
	// types are the types that overflowed, by their series, and load reads the tables
	// of one: they are large, so only one is in memory at a time.
	types []uint32
	load  func(typ uint32) (typeTables, error)

	reader blockReader
	record record
	end    bool
}

// advance moves on to the next row.
func (s *source) advance() error {
	for {
		ok, err := s.reader.next(&s.record)
		if ok || err != nil {
			return err
		}
		block, err := s.block()
		if err != nil {
			return err
		}
		if block == nil {
			s.end = true
			return nil
		}
		s.reader = newBlockReader(block)
	}
}

// merger merges sources, however many, a row at a time. Its memory is used again.
type merger struct {
	key    sketches.KeyID
	typeOf func(series uint32) (typ uint32, err error) // the series of the type of a series

	queue   []queued // a heap: the source with the lowest row first
	viewers union

	overflowed []*source // those in which the type of the present series overflowed
	series     uint32
	any        bool // some source overflowed
}

// queued is a source in the heap, with its key beside it, since it is the key that
// is looked at.
type queued struct {
	key rowKey
	src *source
}

// merge writes the union of the sources: counts add, viewers unite, tables add.
func (m *merger) merge(sources []*source, w *partWriter) (presenceInfo, error) {
	m.queue = m.queue[:0]
	m.any = false
	for _, s := range sources {
		m.any = m.any || len(s.types) > 0
		if err := s.advance(); err != nil {
			return 0, err
		}
		if !s.end {
			m.queue = append(m.queue, queued{s.record.key, s})
		}
	}
	for i := len(m.queue)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	m.series = math.MaxUint32
	for len(m.queue) > 0 {
		if err := m.row(sources, w); err != nil {
			return 0, err
		}
	}
	tables, err := m.tables(sources)
	if err != nil {
		return 0, err
	}
	return w.finish(tables)
}

// down moves an element of the heap to its place below.
func (m *merger) down(i int) {
	q := m.queue
	x := q[i]
	for {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if right := child + 1; right < len(q) && q[right].key < q[child].key {
			child = right
		}
		if q[child].key >= x.key {
			break
		}
		q[i] = q[child]
		i = child
	}
	q[i] = x
}

// next moves the first source on.
func (m *merger) next() error {
	s := m.queue[0].src
	if err := s.advance(); err != nil {
		return err
	}
	if s.end {
		last := len(m.queue) - 1
		m.queue[0] = m.queue[last]
		m.queue = m.queue[:last]
	} else {
		m.queue[0].key = s.record.key
	}
	if len(m.queue) > 0 {
		m.down(0)
	}
	return nil
}

// row writes the lowest row.
func (m *merger) row(sources []*source, w *partWriter) error {
	first := m.queue[0].src
	key := first.record.key
	if err := m.enter(key.series(), sources); err != nil {
		return err
	}
	if !m.shared(key) {
		r := first.record
		r.short = r.short || m.short(key, first)
		if err := w.put(&r); err != nil {
			return err
		}
		return m.next()
	}
	sum := record{key: key}
	m.viewers.reset()
	with := 0 // of the sources that overflowed, those that have the row
	for len(m.queue) > 0 && m.queue[0].key == key {
		r := &m.queue[0].src.record
		sum.events += r.events
		sum.reached += r.reached
		sum.short = sum.short || r.short
		m.viewers.add(r)
		if m.hasOverflowed(m.queue[0].src) {
			with++
		}
		if err := m.next(); err != nil {
			return err
		}
	}
	sum.short = sum.short || key.item() >= firstItem && with < len(m.overflowed)
	m.viewers.settle()
	if m.viewers.dense {
		sum.dense = m.viewers.regs
		return w.put(&sum)
	}
	return w.putTokens(key, sum.events, sum.reached, sum.short, m.viewers.tokens)
}

// shared reports whether a second source has the key of the first.
func (m *merger) shared(key rowKey) bool {
	return len(m.queue) > 1 && m.queue[1].key == key || len(m.queue) > 2 && m.queue[2].key == key
}

// enter finds the sources in which the series' type overflowed.
func (m *merger) enter(series uint32, sources []*source) error {
	if !m.any || series == m.series {
		return nil
	}
	m.series = series
	m.overflowed = m.overflowed[:0]
	if series == seriesOutcomes {
		return nil
	}
	typ, err := m.typeOf(series)
	if err != nil {
		return err
	}
	for _, s := range sources {
		if slices.Contains(s.types, typ) {
			m.overflowed = append(m.overflowed, s)
		}
	}
	return nil
}

func (m *merger) hasOverflowed(s *source) bool {
	return slices.Contains(m.overflowed, s)
}

// short reports whether a row that only one source has may lack events: if the
// type overflowed in another one.
func (m *merger) short(key rowKey, only *source) bool {
	switch {
	case !m.any || len(m.overflowed) == 0 || key.item() < firstItem:
		return false
	case len(m.overflowed) == 1:
		return m.overflowed[0] != only
	}
	return true
}

// tables returns the merged tables of all types that overflowed somewhere.
func (m *merger) tables(sources []*source) ([]typeTables, error) {
	if !m.any {
		return nil, nil
	}
	var types []uint32
	for _, s := range sources {
		types = append(types, s.types...)
	}
	slices.Sort(types)
	var out []typeTables
	for _, typ := range slices.Compact(types) {
		t := mergedTables{typ: typ, key: m.key}
		for _, s := range sources {
			if !slices.Contains(s.types, typ) {
				continue
			}
			one, err := s.load(typ)
			if err != nil {
				return nil, err
			}
			if err := t.add(one); err != nil {
				return nil, err
			}
		}
		out = append(out, t.finish())
	}
	return out, nil
}

// mergedTables merges what sources know of one type.
//
// A heap says how much an item has at most that is not in it: Min, if it is full.
// So that this holds for the sum, each item is entered with what it has in all
// sources at most: where a heap has it its count, else the heap's Min.
type mergedTables struct {
	typ     uint32
	key     sketches.KeyID
	table   *sketches.CountMin
	damaged bool // a source has no table
	k       int
	least   uint64 // of all heaps' Min
	items   map[string]*aboveLeast
}

// aboveLeast is an item of some heaps, and how much more it has than their Min.
type aboveLeast struct {
	name  string
	hash  sketches.Hash128
	count uint64
}

func (m *mergedTables) add(t typeTables) error {
	if m.items == nil {
		m.items = make(map[string]*aboveLeast)
	}
	switch {
	case t.table == nil:
		m.damaged = true
	case m.table == nil:
		m.table = t.table.Clone()
	default:
		if err := m.table.Merge(t.table); err != nil {
			return err
		}
	}
	m.k = max(m.k, t.heap.K())
	floor := t.heap.Min()
	m.least += uint64(floor)
	for _, e := range t.heap.Sorted() {
		it := m.items[e.Name]
		if it == nil {
			it = &aboveLeast{name: e.Name, hash: e.Hash}
			m.items[e.Name] = it
		}
		it.count += uint64(e.Count - floor)
	}
	return nil
}

func (m *mergedTables) finish() typeTables {
	out := typeTables{series: m.typ, table: m.table, heap: sketches.NewTopK(m.key, m.k)}
	if m.damaged {
		out.table = nil
	}
	items := slices.SortedFunc(maps.Values(m.items), func(a, b *aboveLeast) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.name, b.name))
	})
	for _, it := range items {
		out.heap.Offer(it.hash, uint32(min(m.least+it.count, math.MaxUint32)), []byte(it.name))
	}
	return out
}

func newMerger(s *Store) *merger {
	return &merger{key: s.meta.KeyID, typeOf: s.typeOf}
}

// typeOf returns the id of the series of a series' type.
func (s *Store) typeOf(series uint32) (uint32, error) {
	all := s.known.list()
	i := int(series) - firstSeries
	if i < 0 || i >= len(all) {
		return 0, fmt.Errorf("%w: no series has the id %d", ErrDamaged, series)
	}
	typ := windows.Series{Type: all[i].Type, Other: all[i].Other & windows.OtherType}
	return s.series.find(s.db, appendSeries(nil, typ))
}
