package store

import "github.com/zeebo/xxh3"

// nameHash stands for a name in the cache: 96 bits of its XXH3 under a seed that
// this process drew, so that nobody can choose names that meet. Among 10⁹ names
// two meet with a probability of 10⁻¹¹.
type nameHash struct {
	lo uint64
	hi uint32
}

func hashName(name []byte, seed uint64) nameHash {
	h := xxh3.Hash128Seed(name, seed)
	return nameHash{lo: h.Lo, hi: uint32(h.Hi)}
}

const (
	minCacheSlots = 1 << 8
	// maxCacheSlots bounds one generation: 16 MB, 786,432 names.
	maxCacheSlots = 1 << 20
)

// idCache remembers ids by the hashes of their names. It is bounded: names enter
// the young generation; when that is full it becomes the old one, whose names are
// then forgotten unless they were asked for again. So what is in use stays, without
// a list to keep.
type idCache struct {
	young, old idTable
	// forgot counts how often names may have been forgotten.
	forgot uint64
}

// idTable is a hash table with open addressing; an id of 0 marks a free slot.
type idTable struct {
	slots []idSlot
	used  int
}

type idSlot struct {
	hash nameHash
	id   uint32
}

// get returns the id of a name, and whether it was found in the old generation:
// then it is worth a put.
func (c *idCache) get(h nameHash) (id uint32, aged bool) {
	if id = c.young.get(h); id != 0 {
		return id, false
	}
	id = c.old.get(h)
	return id, id != 0
}

// put remembers an id, which is not 0.
func (c *idCache) put(h nameHash, id uint32) {
	if 4*c.young.used >= 3*maxCacheSlots {
		if c.old.used > 0 {
			c.forgot++
		}
		c.young, c.old = c.old, c.young
		clear(c.young.slots)
		c.young.used = 0
	}
	c.young.put(h, id)
}

func (t *idTable) get(h nameHash) uint32 {
	if len(t.slots) == 0 {
		return 0
	}
	mask := uint64(len(t.slots) - 1)
	for i := h.lo & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.id == 0 || s.hash == h {
			return s.id
		}
	}
}

func (t *idTable) put(h nameHash, id uint32) {
	if 4*t.used >= 3*len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	i := h.lo & mask
	for t.slots[i].id != 0 {
		if t.slots[i].hash == h {
			return
		}
		i = (i + 1) & mask
	}
	t.slots[i] = idSlot{hash: h, id: id}
	t.used++
}

func (t *idTable) grow() {
	old := t.slots
	t.slots = make([]idSlot, max(minCacheSlots, 2*len(old)))
	mask := uint64(len(t.slots) - 1)
	for _, s := range old {
		if s.id == 0 {
			continue
		}
		i := s.hash.lo & mask
		for t.slots[i].id != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// touch reads the slot where a name would be, so that a batch of them is in the
// CPU's cache when it is asked for.
func (c *idCache) touch(h nameHash) uint32 {
	if len(c.young.slots) == 0 {
		return 0
	}
	return c.young.slots[h.lo&uint64(len(c.young.slots)-1)].id
}
