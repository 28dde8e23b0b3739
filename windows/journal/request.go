package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
)

// request is one call of Append on its way: its group, encoded but for what only
// the writer knows. Or it asks for a new segment, where the last one is old.
type request struct {
	buf      []byte // room for header and table, then the records
	reserved int    // how much room
	sum      uint32 // checksum of the records
	count    uint32
	shares   []share
	index    []int32 // partition -> 1 + its share; zero but while encoding
	stamp    int64   // given by the writer

	// olderThan asks for a new segment if the last one begins before that, Unix ms.
	olderThan int64

	done chan error // gets the outcome, once
}

// maxPooled is the largest buffer that is kept for the next request.
const maxPooled = 1 << 20

// pool keeps requests for the next ones. Each journal has its own, since a request
// has a channel, and those of a synctest bubble may not leave it.
type pool struct{ free sync.Pool }

func (p *pool) get() *request {
	if r, ok := p.free.Get().(*request); ok {
		return r
	}
	return &request{done: make(chan error, 1)}
}

// put gives a request back. Nobody else may hold it.
func (p *pool) put(r *request) {
	if cap(r.buf) <= maxPooled {
		p.free.Put(r)
	}
}

// roll reports whether the request asks for a new segment.
func (r *request) roll() bool { return r.olderThan != 0 }

// size returns how many bytes the request's group takes at most.
func (r *request) size() int64 { return int64(len(r.buf)) }

// encode takes the records over, by copying them.
func (r *request) encode(records []Record, partitions int, salt uint32) error {
	if cap(r.index) < partitions {
		r.index = make([]int32, partitions)
	}
	r.index, r.shares = r.index[:partitions], r.shares[:0]
	defer func() {
		for _, s := range r.shares {
			r.index[s.partition] = 0
		}
	}()
	size := 0
	for i := range records {
		p := records[i].Partition
		if p < 0 || p >= partitions {
			return fmt.Errorf("a record is for partition %d of %d", p, partitions)
		}
		if r.index[p] == 0 {
			r.shares = append(r.shares, share{partition: uint32(p)})
			r.index[p] = int32(len(r.shares))
		}
		r.shares[r.index[p]-1].count++
		size += len(records[i].Payload) + binary.MaxVarintLen16 + binary.MaxVarintLen32
		if size > maxGroup {
			break
		}
	}
	r.reserved = groupHeader + maxShare*len(r.shares)
	if size += r.reserved; size > maxGroup {
		return fmt.Errorf("%w: at most %d bytes are taken at once", ErrTooLarge, maxGroup)
	}
	if cap(r.buf) < size {
		r.buf = make([]byte, 0, size)
	}
	b := r.buf[:r.reserved]
	for i := range records {
		b = binary.AppendUvarint(b, uint64(records[i].Partition))
		b = binary.AppendUvarint(b, uint64(len(records[i].Payload)))
		b = append(b, records[i].Payload...)
	}
	r.buf, r.count = b, uint32(len(records))
	r.sum = crc32.Update(salt, castagnoli, b[r.reserved:])
	return nil
}

// frame completes the group for its position and returns it. next are the offsets
// to come, which it advances.
func (r *request) frame(position, synced, stamp int64, next []int64) []byte {
	var few [4 * maxShare]byte
	table := few[:0]
	for i := range r.shares {
		s := &r.shares[i]
		s.first = next[s.partition]
		next[s.partition] += int64(s.count)
		table = appendShare(table, *s)
	}
	r.stamp = stamp
	start := r.reserved - len(table) - groupHeader
	copy(r.buf[start+groupHeader:], table)
	g := group{position: position, synced: synced, stamp: stamp, count: r.count, shares: r.shares, records: r.buf[r.reserved:]}
	g.putHeader(r.buf[start:], r.sum)
	return r.buf[start:]
}

// answer fills in what the journal gave the records.
func (r *request) answer(records []Record) {
	// The table's counts are used up as offsets are handed out; it is not needed again.
	for i := range r.shares {
		r.index[r.shares[i].partition] = int32(i) + 1
	}
	for i := range records {
		s := &r.shares[r.index[records[i].Partition]-1]
		records[i].Offset, records[i].Stamp = s.first, r.stamp
		s.first++
	}
	for _, s := range r.shares {
		r.index[s.partition] = 0
	}
}
