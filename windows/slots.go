package windows

import (
	"math/bits"

	"tidemark/sketches"
)

// slot is the summary of one key: one cache line, no pointer.
type slot struct {
	hash   uint64                     // of the key; 0: the slot is free
	count  uint32                     // events that count
	meta   uint32                     // see the masks below
	tokens [sketches.MaxInline]uint32 // viewers; or [0] is the index of their set or registers
}

// The parts of slot.meta. The upper 24 bits hold further bits of the item's hash.
const (
	metaInline = 0x0f   // how many inline tokens
	metaForm   = 3 << 4 // where the viewers are:
	formSet    = 1 << 4 // in Content.sets
	formDense  = 2 << 4 // in Content.dense
	metaHot    = 1 << 6 // listed in the series' ranking
	checkShift = 8
)

const minSlots = 8

// key is what a slot is found by.
type key struct {
	hash  uint64
	check uint32 // the upper 24 bits of slot.meta
}

// table is an open-addressed hash table of slots, at most three quarters full.
// Beside each slot stands the number of its entry (names, series), which only
// inserting and sealing touch.
type table struct {
	slots   []slot
	refs    []uint32
	mask    uint64
	entries []entry
	names   []byte
}

// entry is what a slot is about.
type entry struct {
	series  uint32 // index into Content.series
	name    uint32 // where the item's name starts in names
	nameLen uint16
}

// home is where the search for a hash begins. The lowest bits stay out of it:
// partitions and other tables use them.
func (t *table) home(hash uint64) uint64 { return hash >> 8 & t.mask }

// find returns the slot of k, or nil.
func (t *table) find(k key) (*slot, int) {
	if len(t.slots) == 0 {
		return nil, 0
	}
	for i := t.home(k.hash); ; i = (i + 1) & t.mask {
		s := &t.slots[i]
		if s.hash == k.hash && s.meta>>checkShift == k.check {
			return s, int(i)
		}
		if s.hash == 0 {
			return nil, 0
		}
	}
}

// insert makes the slot of k, which has none. Slots move when the table grows.
func (t *table) insert(k key, series uint32, name []byte) *slot {
	if 4*(len(t.entries)+1) > 3*len(t.slots) {
		t.resize(max(minSlots, 2*len(t.slots)))
	}
	i := t.home(k.hash)
	for t.slots[i].hash != 0 {
		i = (i + 1) & t.mask
	}
	s := &t.slots[i]
	s.hash, s.meta = k.hash, k.check<<checkShift
	t.refs[i] = uint32(len(t.entries))
	t.entries = append(t.entries, entry{series: series, name: uint32(len(t.names)), nameLen: uint16(len(name))})
	t.names = append(t.names, name...)
	return s
}

// reserve makes room for so many items in an empty table.
func (t *table) reserve(items int) {
	n := minSlots
	for 3*n < 4*items {
		n *= 2
	}
	t.resize(n)
	t.entries = make([]entry, 0, items)
}

// resize moves the slots into a table of n, a power of two.
func (t *table) resize(n int) {
	old, oldRefs := t.slots, t.refs
	t.slots, t.refs, t.mask = make([]slot, n), make([]uint32, n), uint64(n-1)
	for k := range old {
		if old[k].hash == 0 {
			continue
		}
		i := t.home(old[k].hash)
		for t.slots[i].hash != 0 {
			i = (i + 1) & t.mask
		}
		t.slots[i], t.refs[i] = old[k], oldRefs[k]
	}
}

// name returns the item's name of an entry.
func (t *table) name(e entry) []byte {
	return t.names[e.name : e.name+uint32(e.nameLen) : e.name+uint32(e.nameLen)]
}

// keyOf returns what the slot of an item in a series is found by.
func keyOf(series uint64, item sketches.Hash128) key {
	h := item.Lo ^ series
	if h == 0 { // 0 marks a free slot
		h = 1
	}
	return key{hash: h, check: uint32(item.Hi >> 40)}
}

// seriesHash returns the part that a series has in the keys of its slots. The
// series of the item as such differ from type to type only, so that
// SketchKey can leave the type out: each type has a Count-Min table of its own.
func seriesHash(h sketches.Hasher, s Series) (typ, value uint64) {
	var buf [256]byte
	b := append(buf[:0], 't', byte(s.Other&OtherType))
	typ = h.Item(append(b, s.Type...)).Hi
	if s.Dimension == "" {
		return typ, 0
	}
	b = append(buf[:0], 'v', byte(s.Other&OtherValue), byte(len(s.Dimension)))
	b = append(b, s.Dimension...)
	return typ, bits.RotateLeft64(h.Item(append(b, s.Value...)).Hi, 32)
}

// SketchKey is what the item of a series is counted under in the Count-Min table
// of the series' type.
func SketchKey(h sketches.Hasher, s Series, item sketches.Hash128) uint64 {
	_, value := seriesHash(h, s)
	return item.Lo ^ value
}
