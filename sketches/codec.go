package sketches

import (
	"encoding/binary"
	"fmt"
)

// Every encoding begins with the same header of 16 bytes and fills the rest of
// its buffer. Numbers are little-endian; "uvarint" is encoding/binary's. All the
// constants here are part of the format.
//
//	offset  bytes
//	0       2      "TS"
//	2       1      format: 1
//	3       1      kind: 1 viewers, 2 Count-Min, 3 top-k
//	4       1      precision: p of viewers, log2 of a Count-Min's width, else 0
//	5       1      p' of viewers, rows of a Count-Min, else 0
//	6       1      hash: 1 SipHash-2-4 of users, 2 XXH3-128 of items
//	7       1      form, see below
//	8       8      key id
//
// Viewers:
//
//	form 0  tokens, 4 bytes each, ascending, at most 1,024
//	form 1  16,384 registers, a byte each, at most 51
//
// A Count-Min has its total (8 bytes), then its four rows:
//
//	form 0  how many counters are not 0 (uvarint), and of each how many 0 come
//	        before it and its value (uvarint twice)
//	form 1  65,536 counters of a byte each; then, for each that is 255, its value
//	        (uvarint)
//	form 2  the same with 2 bytes and 65,535
//	form 3  65,536 counters of 4 bytes each
//
// A top-k, form 0: k (4 bytes), how many items (4), then the items from the
// highest on: count (4), hash (8 and 8, Lo first), length of the name (uvarint),
// name.
const (
	headerSize = 16
	format     = 1

	kindViewers  = 1
	kindCountMin = 2
	kindTopK     = 3

	hashUser = 1
	hashItem = 2

	formTokens    = 0
	formRegisters = 1
	formSparse    = 0
	formBytes     = 1
	formPairs     = 2
	formWords     = 3
)

// header is what an encoding says of itself before its content.
type header struct {
	kind, precision, second, hash, form byte
	key                                 KeyID
}

func (h header) append(b []byte) []byte {
	b = append(b, 'T', 'S', format, h.kind, h.precision, h.second, h.hash, h.form)
	return binary.LittleEndian.AppendUint64(b, uint64(h.key))
}

// decodeHeader reads a header that must be want but for its form and its key,
// and returns the content behind it.
func decodeHeader(b []byte, want header) (h header, content []byte, err error) {
	switch {
	case len(b) < headerSize:
		return h, nil, malformed("%d bytes, a header has %d", len(b), headerSize)
	case b[0] != 'T' || b[1] != 'S':
		return h, nil, malformed("begins with %q", b[:2])
	case b[2] != format:
		return h, nil, malformed("format %d; this program knows %d", b[2], format)
	}
	h = header{kind: b[3], precision: b[4], second: b[5], hash: b[6], form: b[7], key: KeyID(binary.LittleEndian.Uint64(b[8:]))}
	want.form, want.key = h.form, h.key
	if h != want {
		return h, nil, malformed("kind, precisions, hash are %d, want %d", b[3:7], want.append(nil)[3:7])
	}
	return h, b[headerSize:], nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// reader takes an encoding's content apart. Its first failure stays: whatever is
// read after it is 0.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(format, args...)
	}
	r.b = nil
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.fail("%d bytes left of %d", len(r.b), n)
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uvarint returns the next number, which must be at most limit.
func (r *reader) uvarint(limit uint64) uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 && uint64(r.b[0]) <= limit { // nearly always
		x := uint64(r.b[0])
		r.b = r.b[1:]
		return x
	}
	x, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.fail("a number is cut short, too long or padded")
		return 0
	}
	if x > limit {
		r.fail("number %d, at most %d", x, limit)
		return 0
	}
	r.b = r.b[n:]
	return x
}

// end returns the first failure, or one if anything is left.
func (r *reader) end() error {
	if len(r.b) > 0 {
		r.fail("%d bytes behind its end", len(r.b))
	}
	return r.err
}
