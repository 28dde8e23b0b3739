package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"tidemark/windows"
)

const (
	groupHeader = 40        // bytes; part of the format
	maxGroup    = 192 << 20 // bytes of a whole group; part of the format
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// saltOf is what the checksums of a journal's groups begin with. Its id is not
// known outside, so nobody can send a payload that looks like a group of it, and
// groups of another journal are none of this one.
func saltOf(id windows.LogID) uint32 { return crc32.Checksum(id[:], castagnoli) }

// share is the part of a group that belongs to one partition.
type share struct {
	partition uint32
	count     uint32
	first     int64 // offset of the first of its records
}

// maxShare is how many bytes a share takes at most.
const maxShare = binary.MaxVarintLen16 + binary.MaxVarintLen64 + binary.MaxVarintLen32

// group is one group of the log, decoded but for its records.
type group struct {
	position int64 // of its first byte
	synced   int64 // position up to which the log was synced when it was written
	stamp    int64 // Unix ms
	count    uint32
	size     int // bytes, header included
	shares   []share
	records  []byte
}

// end returns the position behind the group.
func (g *group) end() int64 { return g.position + int64(g.size) }

// putHeader writes the header of the group whose table and records follow it in b.
// The checksum begins with the records: whoever appends has summed those up, side
// by side with others, before the writer knows the rest.
func (g *group) putHeader(b []byte, recordsSum uint32) {
	table := len(b) - len(g.records)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-groupHeader))
	binary.LittleEndian.PutUint64(b[8:], uint64(g.position))
	binary.LittleEndian.PutUint64(b[16:], uint64(g.synced))
	binary.LittleEndian.PutUint64(b[24:], uint64(g.stamp))
	binary.LittleEndian.PutUint32(b[32:], g.count)
	binary.LittleEndian.PutUint32(b[36:], uint32(len(g.shares)))
	binary.LittleEndian.PutUint32(b, crc32.Update(recordsSum, castagnoli, b[4:table]))
}

// appendShare appends one entry of the table.
func appendShare(b []byte, s share) []byte {
	b = binary.AppendUvarint(b, uint64(s.partition))
	b = binary.AppendUvarint(b, uint64(s.first))
	return binary.AppendUvarint(b, uint64(s.count))
}

// errNoGroup: there is no group at the position, or not all of it.
var errNoGroup = errors.New("no whole group")

// decoder takes groups of one journal apart. It is not safe for concurrent use.
type decoder struct {
	salt       uint32
	partitions int
	shares     []share // of the group last decoded
}

// size returns how long the group is whose header b begins with, if that could be
// the header of the group at the position.
func (d *decoder) size(b []byte, position int64) (int, bool) {
	if len(b) < groupHeader {
		return 0, false
	}
	body := binary.LittleEndian.Uint32(b[4:])
	return groupHeader + int(body), body <= maxGroup-groupHeader && binary.LittleEndian.Uint64(b[8:]) == uint64(position)
}

// decode takes apart the group at the position, which b begins with. It returns
// errNoGroup unless it is there, whole. Any other error means that it was written
// like this, which can't be. The group is valid until the next one is decoded, and
// as long as b is.
func (d *decoder) decode(b []byte, position int64) (group, error) {
	size, ok := d.size(b, position)
	if !ok || size > len(b) {
		return group{}, errNoGroup
	}
	b = b[:size]
	g := group{
		position: position,
		synced:   int64(binary.LittleEndian.Uint64(b[16:])),
		stamp:    int64(binary.LittleEndian.Uint64(b[24:])),
		count:    binary.LittleEndian.Uint32(b[32:]),
		size:     size,
	}
	shares, table, err := d.table(b)
	if err != nil {
		// The table says where the records begin, so it is needed to check the sum.
		return group{}, errNoGroup
	}
	g.shares, g.records = shares, b[table:]
	sum := crc32.Update(d.salt, castagnoli, g.records)
	if crc32.Update(sum, castagnoli, b[4:table]) != binary.LittleEndian.Uint32(b) {
		return group{}, errNoGroup
	}
	if g.synced < 0 || g.synced > position || g.stamp < 0 {
		return group{}, fmt.Errorf("a group says that %d was synced, and has the stamp %d", g.synced, g.stamp)
	}
	return g, nil
}

// table reads the shares of the group b, and returns where they end.
func (d *decoder) table(b []byte) ([]share, int, error) {
	n := binary.LittleEndian.Uint32(b[36:])
	if n > uint32(d.partitions) {
		return nil, 0, errNoGroup
	}
	d.shares = d.shares[:0]
	at := groupHeader
	for range n {
		var v [3]uint64
		for i := range v {
			x, w := binary.Uvarint(b[at:])
			if w <= 0 {
				return nil, 0, errNoGroup
			}
			v[i], at = x, at+w
		}
		if v[0] >= uint64(d.partitions) || v[1] > math.MaxInt64 || v[2] > math.MaxUint32 {
			return nil, 0, errNoGroup
		}
		d.shares = append(d.shares, share{partition: uint32(v[0]), first: int64(v[1]), count: uint32(v[2])})
	}
	return d.shares, at, nil
}

// take reads the records of a group, of which next are the offsets to come; it
// advances them. Records from the offsets from on are appended to into, their
// payloads pointing into the group; with from nil, none are: they are only checked.
func (g *group) take(next, from []int64, into []Record) ([]Record, error) {
	for _, s := range g.shares {
		if next[s.partition] != s.first {
			return into, fmt.Errorf("partition %d goes on at offset %d, where %d was to come", s.partition, s.first, next[s.partition])
		}
	}
	b, read, told := g.records, uint32(0), uint64(0)
	for ; len(b) > 0; read++ {
		partition, length, w := recordHead(b)
		if w == 0 || partition >= uint64(len(next)) || length > uint64(len(b)-w) {
			return into, fmt.Errorf("record %d of a group of %d can't be read", read, g.count)
		}
		end := w + int(length)
		offset := next[partition]
		next[partition]++
		if from != nil && offset >= from[partition] {
			into = append(into, Record{Partition: int(partition), Offset: offset, Stamp: g.stamp, Payload: b[w:end:end]})
		}
		b = b[end:]
	}
	for _, s := range g.shares {
		if next[s.partition] != s.first+int64(s.count) {
			return into, fmt.Errorf("partition %d has %d records in a group that says %d", s.partition, next[s.partition]-s.first, s.count)
		}
		told += uint64(s.count)
	}
	if told != uint64(g.count) || read != g.count {
		return into, fmt.Errorf("a group that says %d records has %d, and %d by its table", g.count, read, told)
	}
	return into, nil
}

// recordHead reads what stands before a payload, in w bytes; w is 0 where it can't.
func recordHead(b []byte) (partition, length uint64, w int) {
	partition, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, 0, 0
	}
	length, m := binary.Uvarint(b[n:])
	if m <= 0 {
		return 0, 0, 0
	}
	return partition, length, n + m
}
