package sketches

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// TopK keeps the k items with the highest counts that it was offered. It starts
// as a short list and grows to k. Not safe for concurrent use while one call
// changes it.
type TopK struct {
	key     KeyID
	k       int
	min     uint32
	entries []topEntry
	heap    []topKey // by key, the least first
	index   []int32  // open addressing by hash: 1 + a position in entries; 0 is free
}

type topEntry struct {
	hash  Hash128
	name  []byte // memory is kept when another item takes the place
	count uint32
}

func (e *topEntry) set(h Hash128, count uint32, name []byte) {
	e.hash, e.count, e.name = h, count, append(e.name[:0], name...)
}

// topKey is a place in the heap. Its key is the entry's count of some time: when
// an entry's count rises the heap stays as it is, and the key is put right when
// it comes to the root. So an offer of a known item, which is nearly every one,
// moves nothing. Keys are never above the counts, and the root's is its count:
// that is the least of all counts.
type topKey struct {
	key   uint32
	entry int32
}

// Entry is an item of a TopK.
type Entry struct {
	Hash  Hash128
	Count uint32
	Name  string
}

// MaxK is the largest k of a TopK.
const MaxK = 1 << 20

// NewTopK returns an empty list of at most k items, k in [1, MaxK], for hashes
// made under key. Another k is a mistake of the program: it panics.
func NewTopK(key KeyID, k int) *TopK {
	if k < 1 || k > MaxK {
		panic(fmt.Sprintf("sketches: a TopK of %d items", k))
	}
	return &TopK{key: key, k: k}
}

// Key returns the name of the key that its hashes were made under.
func (t *TopK) Key() KeyID { return t.key }

// K returns how many items it keeps at most.
func (t *TopK) K() int { return t.k }

// Len returns how many items it holds.
func (t *TopK) Len() int { return len(t.entries) }

// Min returns the least count that it holds, or 0 while there is room. No item
// outside had a higher count when it was last offered, so that only a count
// above Min is worth an offer.
func (t *TopK) Min() uint32 { return t.min }

// Offer says that the item has this count now. Counts never fall: a lower one
// than is known changes nothing. The name is copied if the item is let in. Two
// items whose hashes are equal are told apart by their names.
func (t *TopK) Offer(h Hash128, count uint32, name []byte) {
	if i := t.find(h, name); i >= 0 {
		e := &t.entries[i]
		if count > e.count {
			e.count = count
			if t.heap[0].entry == i {
				t.settle()
			}
		}
		return
	}
	if len(t.entries) < t.k {
		i := int32(len(t.entries))
		if len(t.entries) < cap(t.entries) {
			t.entries = t.entries[:i+1] // with the memory of a name, after a Reset
		} else {
			t.entries = append(t.entries, topEntry{})
		}
		t.entries[i].set(h, count, name)
		t.heap = append(t.heap, topKey{key: count, entry: i})
		t.up(len(t.heap) - 1)
		if len(t.index) < 2*len(t.entries) {
			t.reindex()
		} else {
			t.link(i)
		}
		t.settle()
		return
	}
	if count <= t.min {
		return
	}
	i := t.heap[0].entry
	t.unlink(i)
	t.entries[i].set(h, count, name)
	t.link(i)
	t.settle()
}

// settle makes the root's key its count again, and min true.
func (t *TopK) settle() {
	for {
		root := &t.heap[0]
		count := t.entries[root.entry].count
		if root.key == count {
			break
		}
		root.key = count
		t.down()
	}
	if len(t.entries) == t.k {
		t.min = t.heap[0].key
	}
}

// up moves the place i towards the root until its parent is no higher.
func (t *TopK) up(i int) {
	x := t.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if t.heap[parent].key <= x.key {
			break
		}
		t.heap[i] = t.heap[parent]
		i = parent
	}
	t.heap[i] = x
}

// down moves the root away from it until its children are no lower.
func (t *TopK) down() {
	x, i := t.heap[0], 0
	for {
		child := 2*i + 1
		if child >= len(t.heap) {
			break
		}
		if right := child + 1; right < len(t.heap) && t.heap[right].key < t.heap[child].key {
			child = right
		}
		if t.heap[child].key >= x.key {
			break
		}
		t.heap[i] = t.heap[child]
		i = child
	}
	t.heap[i] = x
}

// find returns the position of an item in entries, or -1.
func (t *TopK) find(h Hash128, name []byte) int32 {
	if len(t.index) == 0 {
		return -1
	}
	mask := uint64(len(t.index) - 1)
	for i := h.Lo & mask; ; i = (i + 1) & mask {
		at := t.index[i] - 1
		if at < 0 {
			return -1
		}
		if e := &t.entries[at]; e.hash == h && bytes.Equal(e.name, name) {
			return at
		}
	}
}

// link enters an entry into the index, which has room.
func (t *TopK) link(at int32) {
	mask := uint64(len(t.index) - 1)
	i := t.entries[at].hash.Lo & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = at + 1
}

// unlink takes an entry out of the index and closes the gap (Knuth, TAOCP 6.4,
// algorithm R), so that no mark of deletion is needed.
func (t *TopK) unlink(at int32) {
	mask := uint64(len(t.index) - 1)
	gap := t.entries[at].hash.Lo & mask
	for t.index[gap] != at+1 {
		gap = (gap + 1) & mask
	}
	for i := gap; ; {
		i = (i + 1) & mask
		next := t.index[i]
		if next == 0 {
			break
		}
		home := t.entries[next-1].hash.Lo & mask
		if (i-home)&mask >= (i-gap)&mask {
			t.index[gap] = next
			gap = i
		}
	}
	t.index[gap] = 0
}

// reindex makes an index of twice the size.
func (t *TopK) reindex() {
	const least = 16
	t.index = make([]int32, max(least, 2*len(t.index)))
	for i := range t.entries {
		t.link(int32(i))
	}
}

// Sorted returns a copy of its items, the highest count first, equal counts by
// name.
func (t *TopK) Sorted() []Entry {
	out := make([]Entry, len(t.entries))
	for i := range t.entries {
		e := &t.entries[i]
		out[i] = Entry{Hash: e.hash, Count: e.count, Name: string(e.name)}
	}
	slices.SortFunc(out, compareEntries)
	return out
}

// compareEntries orders by count, the highest first, then by name, then by hash.
func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Hash.Hi, b.Hash.Hi), cmp.Compare(a.Hash.Lo, b.Hash.Lo))
}

// Clone returns a copy.
func (t *TopK) Clone() *TopK {
	c := *t
	c.heap, c.index, c.entries = slices.Clone(t.heap), slices.Clone(t.index), slices.Clone(t.entries)
	for i := range c.entries {
		c.entries[i].name = bytes.Clone(c.entries[i].name)
	}
	return &c
}

// Reset empties the list and keeps its memory.
func (t *TopK) Reset() {
	clear(t.index)
	t.entries, t.heap, t.min = t.entries[:0], t.heap[:0], 0
}
