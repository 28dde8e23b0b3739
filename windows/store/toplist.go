package store

import (
	"encoding/binary"

	"tidemark/windows"
)

// topItems is how many items a stored list holds; a series of at most so many has
// no list: its rows are as quickly read. Part of the format.
const topItems = 1000

// topItem is one item of a list.
type topItem struct {
	id              uint32
	events, reached uint64
	short           bool // see record
}

// topList is the items of a series in one part with the highest counts: highest
// first, equal counts by id.
type topList struct {
	items []topItem
	// What an item that is not listed has at most.
	maxEvents, maxReached uint64
}

// A stored list. Part of the format:
//
//	uvarint(version) uvarint(n) uvarint(max events) uvarint(max reached)
//	[uvarint(highest events − max events)]
//	n × (id(4, little-endian) uvarint(d<<2 | short<<1 | unequal)
//	[zigzag varint(reached − events), if unequal])
//
// d is how far the events are below those of the item before; of the first it is 0.
const topVersion = 1

func appendTopList(dst []byte, l *topList) []byte {
	dst = binary.AppendUvarint(dst, topVersion)
	dst = binary.AppendUvarint(dst, uint64(len(l.items)))
	dst = binary.AppendUvarint(dst, l.maxEvents)
	dst = binary.AppendUvarint(dst, l.maxReached)
	if len(l.items) == 0 {
		return dst
	}
	before := l.items[0].events
	dst = binary.AppendUvarint(dst, before-l.maxEvents)
	for _, it := range l.items {
		dst = binary.LittleEndian.AppendUint32(dst, it.id)
		d := (before - it.events) << shapeBits
		if it.short {
			d |= shapeShort
		}
		if it.reached == it.events {
			dst = binary.AppendUvarint(dst, d)
		} else {
			dst = binary.AppendUvarint(dst, d|shapeUnequal)
			dst = binary.AppendUvarint(dst, zigzag(int64(it.reached-it.events)))
		}
		before = it.events
	}
	return dst
}

// parseTopList reads a list into l, whose memory is used again.
func parseTopList(b []byte, l *topList) bool {
	*l = topList{items: l.items[:0]}
	d := decoder{b: b}
	if d.uint(topVersion) != topVersion {
		return false
	}
	n := d.uint(min(topItems, uint64(len(b))/5)) // each has at least five bytes
	l.maxEvents, l.maxReached = d.uint(1<<63), d.uint(1<<63)
	if n == 0 {
		return !d.bad && len(d.b) == 0
	}
	events := l.maxEvents + d.uint(1<<62)
	for i := range n {
		id := d.bytes(4)
		shape := d.uint(1 << 63)
		if d.bad || shape>>shapeBits > events-l.maxEvents || i == 0 && shape>>shapeBits != 0 {
			return false
		}
		events -= shape >> shapeBits
		it := topItem{id: binary.LittleEndian.Uint32(id), events: events, reached: events, short: shape&shapeShort != 0}
		if shape&shapeUnequal != 0 {
			z := d.uint(1<<64 - 1)
			if z == 0 {
				return false
			}
			it.reached += uint64(unzigzag(z))
		}
		l.items = append(l.items, it)
	}
	return !d.bad && len(d.b) == 0
}

// show writes the list into out, whose memory is used again.
func (l *topList) show(out *windows.TopList) {
	out.Items, out.Events, out.Reached = out.Items[:0], out.Events[:0], out.Reached[:0]
	for _, it := range l.items {
		out.Items = append(out.Items, it.id)
		out.Events = append(out.Events, it.events)
		out.Reached = append(out.Reached, it.reached)
	}
	out.MaxEvents, out.MaxReached = l.maxEvents, l.maxReached
}

// topBuilder finds the highest items of a series among all that are added, which
// come in the order of their ids.
type topBuilder struct {
	list  topList
	all   int    // that were added
	floor uint64 // no item below it is worth a look

	order, orderTmp []ordered // scratch
	sorted          []topItem
}

func (t *topBuilder) reset() {
	t.list = topList{items: t.list.items[:0]}
	t.all, t.floor = 0, 0
}

func (t *topBuilder) add(it topItem) {
	t.all++
	if it.events < t.floor {
		t.leave(it)
		return
	}
	t.list.items = append(t.list.items, it)
	if len(t.list.items) == 4*topItems {
		t.prune()
	}
}

func (t *topBuilder) leave(it topItem) {
	t.list.maxEvents = max(t.list.maxEvents, it.events)
	t.list.maxReached = max(t.list.maxReached, it.reached)
}

// prune sorts what is listed and leaves all but the highest. Equal counts stay in
// the order of ids: the sort is stable, and what was listed before has lower ids
// than what came since. Counts are few bytes, so sorting by them is few passes.
func (t *topBuilder) prune() {
	t.order = t.order[:0]
	for i, it := range t.list.items {
		t.order = append(t.order, ordered{key: ^rowKey(it.events), at: uint32(i)})
	}
	t.orderTmp = sortRows(t.order, t.orderTmp)
	t.sorted = t.sorted[:0]
	for i, o := range t.order {
		if i < topItems {
			t.sorted = append(t.sorted, t.list.items[o.at])
		} else {
			t.leave(t.list.items[o.at])
		}
	}
	t.list.items, t.sorted = t.sorted, t.list.items
	if len(t.list.items) == topItems {
		t.floor = t.list.items[topItems-1].events
	}
}

// long reports whether the list is worth storing: a short one is not.
func (t *topBuilder) long() bool { return t.all > topItems }

// finish ends the list, which is valid until reset.
func (t *topBuilder) finish() *topList {
	t.prune()
	return &t.list
}

func zigzag(x int64) uint64   { return uint64(x)<<1 ^ uint64(x>>63) }
func unzigzag(z uint64) int64 { return int64(z>>1) ^ -int64(z&1) }
