package store

import (
	"encoding/binary"
	"math"

	"tidemark/sketches"
	"tidemark/windows"
)

// partKind says how a part came to be. The numbers are part of the format.
type partKind uint8

const (
	partSeal partKind = iota // a seal: its minutes, and what of them was late for a level already rolled up
	partRoll                 // one start of a level, merged from the level below
	partFold                 // one start of a level, merged from parts of that level
	partKinds
)

// part is a catalogue row: what a part is, and which starts it has blocks of.
type part struct {
	number uint32
	kind   partKind
	key    sketches.KeyID
	seal   sealed // of kind partSeal
	// starts of each level, ascending. Of the level ever these are the days that are
	// in its one period.
	starts [levelCount][]presence
}

// sealed is the row of a seal: with those of its partition it forms a chain.
type sealed struct {
	windows.Identity
	seq  uint64 // 1 for the first seal of a partition, then one more each
	from windows.Pair
	r    int64
	h    windows.Mark
}

// empty reports whether the part has no blocks left.
func (p *part) empty() bool {
	for _, s := range p.starts {
		if len(s) > 0 {
			return false
		}
	}
	return true
}

// The row of a part. Part of the format:
//
//	uvarint(version) uvarint(kind) key id(8, little-endian)
//	of a seal: log(16) uvarint(partition) uvarint(seq) E(8, little-endian)
//	  uvarint each: from F, from S, to F, to S, R, offset of H; hash of H(8, little-endian)
//	for each level that it has: uvarint(level+1) uvarint(n)
//	  n × uvarint((start − start before)<<5 | info)
//	0
const partVersion = 1

func (p *part) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, partVersion)
	dst = binary.AppendUvarint(dst, uint64(p.kind))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.key))
	if p.kind == partSeal {
		s := &p.seal
		dst = append(dst, s.Log[:]...)
		dst = binary.AppendUvarint(dst, uint64(s.Partition))
		dst = binary.AppendUvarint(dst, s.seq)
		dst = binary.LittleEndian.AppendUint64(dst, s.E)
		dst = appendPair(dst, s.from)
		dst = appendPair(dst, s.To)
		dst = appendMark(binary.AppendUvarint(dst, uint64(s.r)), s.h)
	}
	for l, starts := range p.starts {
		if len(starts) == 0 {
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(l)+1)
		dst = binary.AppendUvarint(dst, uint64(len(starts)))
		var before windows.Minute
		for _, s := range starts {
			dst = binary.AppendUvarint(dst, uint64(s.start-before)<<presenceBits|uint64(s.info))
			before = s.start
		}
	}
	return append(dst, 0)
}

// parsePart reads the row of a part from its key and value.
func parsePart(key, value []byte) (*part, error) {
	if len(key) != 5 {
		return nil, damaged(key, "not the key of a part")
	}
	p := &part{number: binary.BigEndian.Uint32(key[1:])}
	d := decoder{b: value}
	if v := d.uint(math.MaxInt); v != partVersion && !d.bad {
		return nil, damaged(key, "version %d of a part; this build knows %d", v, partVersion)
	}
	p.kind = partKind(d.uint(uint64(partKinds) - 1))
	p.key = sketches.KeyID(d.uint64())
	if p.kind == partSeal {
		s := &p.seal
		copy(s.Log[:], d.bytes(len(s.Log)))
		s.Partition = int(d.uint(MaxPartitions - 1))
		s.seq = d.uint(math.MaxUint64)
		s.E = d.uint64()
		s.from, s.To = d.pair(), d.pair()
		s.r = int64(d.uint(math.MaxInt64))
		s.h = d.mark()
	}
	for before := uint64(0); !d.bad; {
		l := d.uint(levelCount)
		if l == 0 {
			break
		}
		n := d.uint(uint64(len(d.b))) // each start has at least one byte
		if d.bad || n == 0 || l <= before {
			d.bad = true
			break
		}
		starts := make([]presence, 0, n)
		var at uint64
		for i := range n {
			x := d.uint(uint64(windows.MaxMinute) << presenceBits)
			step := x >> presenceBits
			at += step
			if d.bad || at >= uint64(windows.MaxMinute) || i > 0 && step == 0 {
				d.bad = true
				break
			}
			starts = append(starts, presence{start: windows.Minute(at), info: presenceInfo(x & (1<<presenceBits - 1))})
		}
		p.starts[l-1], before = starts, l
	}
	if d.bad || len(d.b) > 0 {
		return nil, damaged(key, "not the row of a part")
	}
	return p, nil
}

func appendPair(dst []byte, p windows.Pair) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(p.F)), uint64(p.S))
}

func appendMark(dst []byte, m windows.Mark) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, uint64(m.Offset)), m.Hash)
}

// decoder reads the fields of a value from its front. Once something does not fit
// it is bad, and gives zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uint(limit uint64) uint64 {
	x, rest, ok := uvarint(d.b)
	if d.bad || !ok || x > limit {
		d.bad = true
		return 0
	}
	d.b = rest
	return x
}

func (d *decoder) bytes(n int) []byte {
	if d.bad || n > len(d.b) {
		d.bad = true
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) uint64() uint64 {
	if b := d.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) string() string { return string(d.bytes(int(d.uint(uint64(len(d.b)))))) }

func (d *decoder) strings() []string {
	n := d.uint(uint64(len(d.b))) // each has at least one byte
	var out []string
	for range n {
		out = append(out, d.string())
		if d.bad {
			return nil
		}
	}
	return out
}

func (d *decoder) mark() windows.Mark {
	return windows.Mark{Offset: int64(d.uint(math.MaxInt64)), Hash: d.uint64()}
}

func (d *decoder) pair() windows.Pair {
	return windows.Pair{F: windows.Minute(d.uint(uint64(windows.MaxMinute))), S: int64(d.uint(math.MaxInt64))}
}
