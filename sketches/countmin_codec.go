package sketches

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// cellBytes is how many bytes a counter has in the forms that list all of them.
// All ones say that the counter is larger, and stands behind the row.
var cellBytes = [...]int{formBytes: 1, formPairs: 2, formWords: 4}

// AppendBinary appends the encoding of c, in the shortest of its forms. The error
// is always nil; it is there for encoding.BinaryAppender.
func (c *CountMin) AppendBinary(b []byte) ([]byte, error) {
	h := header{kind: kindCountMin, precision: widthBits, second: Rows, hash: hashItem, form: c.shortest(), key: c.key}
	b = binary.LittleEndian.AppendUint64(h.append(b), c.total)
	for r := range c.cells {
		row := &c.cells[r]
		switch h.form {
		case formSparse:
			b = appendSparse(b, row)
		case formBytes:
			var cells []byte
			b, cells = extend(b, Width)
			for i, n := range row {
				cells[i] = byte(min(n, math.MaxUint8))
			}
			b = appendAbove(b, row, math.MaxUint8)
		case formPairs:
			var cells []byte
			b, cells = extend(b, 2*Width)
			for i, n := range row {
				binary.LittleEndian.PutUint16(cells[2*i:], uint16(min(n, math.MaxUint16)))
			}
			b = appendAbove(b, row, math.MaxUint16)
		default:
			var cells []byte
			b, cells = extend(b, 4*Width)
			for i, n := range row {
				binary.LittleEndian.PutUint32(cells[4*i:], n)
			}
		}
	}
	return b, nil
}

// extend makes b longer by n bytes, and returns these too.
func extend(b []byte, n int) (all, end []byte) {
	all = slices.Grow(b, n)[:len(b)+n]
	return all, all[len(b):]
}

// shortest returns the form that takes the fewest bytes, about.
func (c *CountMin) shortest() byte {
	sizes := [...]int{formBytes: Rows * Width, formPairs: 2 * Rows * Width, formWords: 4 * Rows * Width}
	for r := range c.cells {
		for _, n := range c.cells[r] {
			if n == 0 {
				continue
			}
			size := (bits.Len32(n) + 6) / 7 // as a uvarint
			sizes[formSparse] += 1 + size
			if n >= math.MaxUint8 {
				sizes[formBytes] += size
			}
			if n >= math.MaxUint16 {
				sizes[formPairs] += size
			}
		}
	}
	form := 0
	for f, size := range sizes {
		if size < sizes[form] {
			form = f
		}
	}
	return byte(form)
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

// appendAbove appends the counters that the limit stands for.
func appendAbove(b []byte, row *[Width]uint32, limit uint32) []byte {
	for _, n := range row {
		if n >= limit {
			b = binary.AppendUvarint(b, uint64(n))
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
	if int(h.form) >= len(cellBytes) {
		return nil, malformed("form %d", h.form)
	}
	// The table is of one size, so there is nothing here to be made large.
	c := NewCountMin(h.key)
	r := reader{b: content}
	c.total = r.uint64()
	for i := range c.cells {
		row := &c.cells[i]
		if h.form == formSparse {
			r.sparse(row)
		} else {
			r.cells(row, cellBytes[h.form])
		}
		var sum uint64
		for _, n := range row {
			sum += uint64(n)
		}
		// An update raises a counter of each row by at most what it adds.
		if sum > c.total {
			r.fail("row %d sums to %d, more than the total %d", i, sum, c.total)
		}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return c, nil
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

// cells reads a row of counters of so many bytes each, and the larger ones.
func (r *reader) cells(row *[Width]uint32, size int) {
	b := r.take(size * Width)
	if b == nil {
		return
	}
	switch size {
	case 1:
		for i, n := range b {
			row[i] = uint32(n)
		}
	case 2:
		for i := range row {
			row[i] = uint32(binary.LittleEndian.Uint16(b[2*i:]))
		}
	default:
		for i := range row {
			row[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		return
	}
	limit := uint32(1)<<(8*size) - 1
	for i, n := range row {
		if n != limit {
			continue
		}
		larger := uint32(r.uvarint(math.MaxUint32))
		if larger < limit {
			r.fail("counter %d is %d; it need not stand behind its row", i, larger)
			return
		}
		row[i] = larger
	}
}
