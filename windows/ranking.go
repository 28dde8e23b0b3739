package windows

import (
	"cmp"
	"slices"
)

// ranking keeps the items of a type that have a slot and the highest counts,
// while they are counted: every item whose count is above floor is listed. The
// list is pruned to topK when it is four times as long, so an event costs one
// comparison.
type ranking struct {
	floor uint32
	keys  []key
}

// rank lists the slot, whose count has just passed the floor.
func (c *Content) rank(r *ranking, s *slot) {
	s.meta |= metaHot
	r.keys = append(r.keys, key{hash: s.hash, check: s.meta >> checkShift})
	if len(r.keys) < 4*topK {
		return
	}
	// Higher counts first. Ties are broken by hash: which of the items at the
	// floor stay must not depend on anything but the log.
	slices.SortFunc(r.keys, func(a, b key) int {
		sa, _ := c.find(a)
		sb, _ := c.find(b)
		if sa.count != sb.count {
			return cmp.Compare(sb.count, sa.count)
		}
		return cmp.Compare(a.hash, b.hash)
	})
	for _, k := range r.keys[topK:] {
		s, _ := c.find(k)
		s.meta &^= metaHot // it is listed again when it passes the floor
	}
	last, _ := c.find(r.keys[topK-1])
	r.floor = last.count
	r.keys = r.keys[:topK]
}

// Ranked calls yield for items of a type's series that have a slot, in no order:
// all whose count is above floor, which is returned. So the k highest are among
// them as soon as k of them have more than floor.
func (c *Content) Ranked(s Series, yield func(r Row)) (floor uint64) {
	st := c.lookup(s)
	if st == nil {
		return 0
	}
	var scratch []uint32
	for _, k := range st.ranking.keys {
		sl, i := c.find(k)
		r := c.row(Item, c.name(c.entries[c.refs[i]]), sl, scratch)
		if sl.meta&metaForm == formSet {
			scratch = r.Tokens[:0]
		}
		yield(r)
	}
	return uint64(st.ranking.floor)
}
