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
	formatVersion = 1
	magic         = "tidemkJL" // part of the format
	fixedHeader   = 80         // bytes before the offsets; part of the format
)

// header is what a segment begins with.
type header struct {
	id       windows.LogID // of the journal
	sequence uint64        // of the segment
	base     int64         // position of its first group
	sealed   int64         // bytes of groups that were synced before the segment had its name
	floor    int64         // the highest stamp before it, Unix ms
	offsets  []int64       // of each partition, the first one in it
}

// size returns how many bytes the header takes.
func (h *header) size() int64 { return fixedHeader + 8*int64(len(h.offsets)) }

// encode returns the header's bytes.
func (h *header) encode() []byte {
	b := make([]byte, h.size())
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], formatVersion)
	binary.LittleEndian.PutUint32(b[16:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[20:], uint32(len(h.offsets)))
	copy(b[24:], h.id[:])
	binary.LittleEndian.PutUint64(b[40:], h.sequence)
	binary.LittleEndian.PutUint64(b[48:], uint64(h.base))
	binary.LittleEndian.PutUint64(b[56:], uint64(h.sealed))
	binary.LittleEndian.PutUint64(b[64:], uint64(h.floor))
	// Bytes 72 to 80 are kept for what comes, and are 0.
	for i, o := range h.offsets {
		binary.LittleEndian.PutUint64(b[fixedHeader+8*i:], uint64(o))
	}
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[16:], castagnoli))
	return b
}

// headerSize returns how many bytes the header takes that b begins with; b must
// have fixedHeader bytes of it.
func headerSize(b []byte) (int64, error) {
	if len(b) < fixedHeader || string(b[:8]) != magic {
		return 0, errors.New("it does not begin like a segment")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return 0, fmt.Errorf("it has format %d, and this program knows %d", v, formatVersion)
	}
	size, partitions := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:])
	if partitions == 0 || partitions > MaxPartitions || size != fixedHeader+8*partitions {
		return 0, fmt.Errorf("its header says %d partitions in %d bytes", partitions, size)
	}
	return int64(size), nil
}

// decodeHeader takes apart a header that is all of b.
func decodeHeader(b []byte) (header, error) {
	size, err := headerSize(b)
	if err != nil {
		return header{}, err
	}
	if int64(len(b)) != size {
		return header{}, errors.New("its header is cut short")
	}
	if crc32.Checksum(b[16:], castagnoli) != binary.LittleEndian.Uint32(b[12:]) {
		return header{}, errors.New("the checksum of its header does not fit")
	}
	h := header{
		sequence: binary.LittleEndian.Uint64(b[40:]),
		base:     int64(binary.LittleEndian.Uint64(b[48:])),
		sealed:   int64(binary.LittleEndian.Uint64(b[56:])),
		floor:    int64(binary.LittleEndian.Uint64(b[64:])),
		offsets:  make([]int64, (size-fixedHeader)/8),
	}
	copy(h.id[:], b[24:40])
	least := min(h.base, h.sealed, h.floor, math.MaxInt64-h.base-h.sealed)
	for i := range h.offsets {
		h.offsets[i] = int64(binary.LittleEndian.Uint64(b[fixedHeader+8*i:]))
		least = min(least, h.offsets[i])
	}
	if least < 0 {
		return header{}, errors.New("a number of its header is out of range")
	}
	return h, nil
}

// follows says what is wrong with h as the header of the segment after that of p.
func (h *header) follows(p *header) error {
	switch {
	case h.id != p.id:
		return errors.New("it belongs to another journal than the segment before it")
	case len(h.offsets) != len(p.offsets):
		return errors.New("it has another number of partitions than the segment before it")
	case h.sequence != p.sequence+1:
		return fmt.Errorf("segment %d is missing", p.sequence+1)
	case h.base <= p.base || h.floor < p.floor:
		return errors.New("its header does not follow on from the segment before it")
	}
	for i := range h.offsets {
		if h.offsets[i] < p.offsets[i] {
			return errors.New("its offsets do not follow on from the segment before it")
		}
	}
	return nil
}
