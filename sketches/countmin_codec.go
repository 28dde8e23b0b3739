package sketches

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AppendBinary appends the encoding of c, in the shorter of its two forms. The
// error is always nil; it is there for encoding.BinaryAppender.
func (c *CountMin) AppendBinary(b []byte) ([]byte, error) {
	h := header{kind: kindCountMin, precision: widthBits, second: Rows, hash: hashItem, form: formSparse, key: c.key}
	start := len(b)
	b = binary.LittleEndian.AppendUint64(h.append(b), c.total)
	content := len(b)
	for r := range c.cells {
		if b = appendSparse(b, &c.cells[r]); len(b)-content > 4*Rows*Width {
			h.form = formFull
			b = binary.LittleEndian.AppendUint64(h.append(b[:start]), c.total)
			return c.appendFull(b), nil
		}
	}
	return b, nil
}

func appendSparse(b []byte, row *[Width]uint32) []byte {
	used := 0
	for _, n := range row {
		if n != 0 {
			used++
		}
	}
	b = binary.AppendUvarint(b, uint64(used))
	gap := uint64(0)
	for _, n := range row {
		if n == 0 {
			gap++
			continue
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, gap), uint64(n))
		gap = 0
	}
	return b
}

func (c *CountMin) appendFull(b []byte) []byte {
	for r := range c.cells {
		for _, n := range c.cells[r] {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
	}
	return b
}

// DecodeCountMin reads what AppendBinary wrote, and keeps nothing of b. Errors
// wrap ErrMalformed.
func DecodeCountMin(b []byte) (*CountMin, error) {
	c, err := decodeCountMin(b)
	if err != nil {
		return nil, fmt.Errorf("count-min: %w", err)
	}
	return c, nil
}

func decodeCountMin(b []byte) (*CountMin, error) {
	h, content, err := decodeHeader(b, header{kind: kindCountMin, precision: widthBits, second: Rows, hash: hashItem})
	if err != nil {
		return nil, err
	}
	// The table is of one size, so there is nothing here to be made large.
	c := NewCountMin(h.key)
	r := reader{b: content}
	c.total = r.uint64()
	for i := range c.cells {
		if h.form == formFull {
			r.full(&c.cells[i])
		} else {
			r.sparse(&c.cells[i])
		}
		// An update raises a counter of each row by at most what it adds.
		if sum := sumRow(&c.cells[i]); sum > c.total {
			r.fail("row %d sums to %d, more than the total %d", i, sum, c.total)
		}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return c, nil
}

func (r *reader) full(row *[Width]uint32) {
	b := r.take(4 * Width)
	for ; len(b) > 0; b = b[4:] {
		row[Width-len(b)/4] = binary.LittleEndian.Uint32(b)
	}
}

func (r *reader) sparse(row *[Width]uint32) {
	at := uint64(0)
	for left := r.uvarint(Width); left > 0 && r.err == nil; left-- {
		at += r.uvarint(Width)
		n := r.uvarint(math.MaxUint32)
		if n == 0 || at >= Width {
			r.fail("counter %d of a row of %d is %d", at, Width, n)
			return
		}
		row[at] = uint32(n)
		at++
	}
}

func sumRow(row *[Width]uint32) uint64 {
	var sum uint64
	for _, n := range row {
		sum += uint64(n)
	}
	return sum
}
