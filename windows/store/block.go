package store

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"tidemark/sketches"
)

// A block holds rows of one start of one part, ascending. Part of the format:
//
//	row     = head events shape [reached] body
//	head    = uvarint(item − item of the row before, <<1) within a series, or
//	          uvarint(item<<1 | 1) uvarint(series − series of the row before);
//	          the row before the first is (0, 0)
//	events  = uvarint
//	shape   = uvarint(n<<2 | short<<1 | unequal)
//	reached = zigzag varint(reached − events), if unequal
//	body    = n tokens, little-endian, ascending; n = denseShape: the registers
const (
	blockRows  = 64   // rows of a block at most
	blockBytes = 4096 // size from which no row is added
	denseShape = sketches.MaxTokens + 1

	shapeUnequal = 1 // reached is not events
	shapeShort   = 2 // events of the item may be missing: they are in the Count-Min table
	shapeBits    = 2
)

// record is a row as it lies in a block.
type record struct {
	key     rowKey
	events  uint64
	reached uint64
	short   bool
	tokens  []byte // 4 bytes each
	dense   []byte // registers, instead of tokens
}

var errBlock = errors.New("not a block of rows")

// blockReader goes through the rows of a block. The zero value is at the end.
type blockReader struct {
	rest []byte
	key  rowKey
	any  bool
}

func newBlockReader(block []byte) blockReader { return blockReader{rest: block} }

// next reads the next row into r, whose slices then point into the block. It
// returns false at the end, and an error where the bytes are no row.
func (b *blockReader) next(r *record) (bool, error) {
	if len(b.rest) == 0 {
		return false, nil
	}
	head, rest, ok := uvarint(b.rest)
	if !ok {
		return false, errBlock
	}
	series, item := uint64(b.key.series()), head>>1
	if head&1 != 0 {
		var d uint64
		if d, rest, ok = uvarint(rest); !ok || d > math.MaxUint32 || d == 0 && b.any {
			return false, errBlock
		}
		series += d
	} else {
		if !b.any || item == 0 || item > math.MaxUint32 {
			return false, errBlock
		}
		item += uint64(b.key.item())
	}
	if series > math.MaxUint32 || item > math.MaxUint32 {
		return false, errBlock
	}
	var shape uint64
	if r.events, rest, ok = uvarint(rest); !ok {
		return false, errBlock
	}
	if shape, rest, ok = uvarint(rest); !ok {
		return false, errBlock
	}
	r.reached = r.events
	if shape&shapeUnequal != 0 {
		var z uint64
		if z, rest, ok = uvarint(rest); !ok || z == 0 {
			return false, errBlock
		}
		r.reached += uint64(unzigzag(z))
	}
	r.short = shape&shapeShort != 0
	n := shape >> shapeBits
	r.tokens, r.dense = nil, nil
	switch {
	case n > denseShape:
		return false, errBlock
	case n == denseShape:
		if len(rest) < sketches.RegisterCount {
			return false, errBlock
		}
		r.dense, rest = rest[:sketches.RegisterCount:sketches.RegisterCount], rest[sketches.RegisterCount:]
	default:
		size := 4 * int(n)
		if len(rest) < size {
			return false, errBlock
		}
		r.tokens, rest = rest[:size:size], rest[size:]
	}
	r.key = makeRowKey(uint32(series), uint32(item))
	b.key, b.rest, b.any = r.key, rest, true
	return true, nil
}

// blockWriter packs rows, which come ascending, into blocks.
type blockWriter struct {
	emit func(last rowKey, block []byte) error // block is valid during the call
	buf  []byte
	last rowKey
	rows int
}

// room ends the block if a row of this size does not belong into it any more.
func (w *blockWriter) room(size int) error {
	if w.rows > 0 && (w.rows == blockRows || len(w.buf)+size > blockBytes) {
		return w.flush()
	}
	return nil
}

// flush hands out the rows that wait.
func (w *blockWriter) flush() error {
	if w.rows == 0 {
		return nil
	}
	err := w.emit(w.last, w.buf)
	w.buf, w.last, w.rows = w.buf[:0], 0, 0
	return err
}

// put adds a row with tokens in the form of record: the tokens ascending, no two
// the same.
func (w *blockWriter) put(r *record) error {
	n := len(r.tokens) / 4
	if r.dense != nil {
		n = denseShape
	}
	if err := w.room(len(r.tokens) + len(r.dense)); err != nil {
		return err
	}
	w.head(r.key, r.events, r.reached, r.short, n)
	w.buf = append(w.buf, r.tokens...)
	w.buf = append(w.buf, r.dense...)
	return nil
}

// putTokens is put for tokens as numbers.
func (w *blockWriter) putTokens(key rowKey, events, reached uint64, short bool, tokens []uint32) error {
	if err := w.room(4 * len(tokens)); err != nil {
		return err
	}
	w.head(key, events, reached, short, len(tokens))
	for _, t := range tokens {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, t)
	}
	return nil
}

func (w *blockWriter) head(key rowKey, events, reached uint64, short bool, n int) {
	if d := key.series() - w.last.series(); d != 0 || w.rows == 0 {
		w.buf = binary.AppendUvarint(w.buf, uint64(key.item())<<1|1)
		w.buf = binary.AppendUvarint(w.buf, uint64(d))
	} else {
		w.buf = binary.AppendUvarint(w.buf, uint64(key.item()-w.last.item())<<1)
	}
	w.buf = binary.AppendUvarint(w.buf, events)
	shape := uint64(n) << shapeBits
	if short {
		shape |= shapeShort
	}
	if reached == events {
		w.buf = binary.AppendUvarint(w.buf, shape)
	} else {
		w.buf = binary.AppendUvarint(w.buf, shape|shapeUnequal)
		w.buf = binary.AppendUvarint(w.buf, zigzag(int64(reached-events)))
	}
	w.last, w.rows = key, w.rows+1
}

// uvarint reads a number from the front of b. Forms that are too long, or longer
// than they need be, are refused: a value has one encoding.
func uvarint(b []byte) (x uint64, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:], true
	}
	x, n := binary.Uvarint(b)
	if n <= 0 || b[n-1] == 0 {
		return 0, nil, false
	}
	return x, b[n:], true
}

// decodeTokens appends the tokens of a row to dst.
func decodeTokens(dst []uint32, tokens []byte) []uint32 {
	for len(tokens) >= 4 {
		dst = append(dst, binary.LittleEndian.Uint32(tokens))
		tokens = tokens[4:]
	}
	return dst
}

// registersValid reports whether all ranks are possible, eight at a time: a rank
// above MaxRank would make an estimate wrong.
func registersValid(regs []byte) bool {
	const ones = 0x0101010101010101
	const limit = (127 - sketches.MaxRank) * ones
	var bad uint64
	for ; len(regs) >= 8; regs = regs[8:] {
		x := binary.LittleEndian.Uint64(regs)
		bad |= x | (x&^(ones<<7) + limit)
	}
	return bits.OnesCount64(bad&(ones<<7)) == 0
}
