package sketches

import (
	"encoding/binary"
	"fmt"
)

// AppendBinary appends the encoding of t: the same items give the same bytes. The
// error is always nil; it is there for encoding.BinaryAppender.
func (t *TopK) AppendBinary(b []byte) ([]byte, error) {
	b = header{kind: kindTopK, hash: hashItem, key: t.key}.append(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(t.k))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(t.entries)))
	for _, e := range t.Sorted() {
		b = binary.LittleEndian.AppendUint32(b, e.Count)
		b = binary.LittleEndian.AppendUint64(b, e.Hash.Lo)
		b = binary.LittleEndian.AppendUint64(b, e.Hash.Hi)
		b = binary.AppendUvarint(b, uint64(len(e.Name)))
		b = append(b, e.Name...)
	}
	return b, nil
}

// DecodeTopK reads what AppendBinary wrote, and keeps nothing of b. Errors wrap
// ErrMalformed.
func DecodeTopK(b []byte) (*TopK, error) {
	t, err := decodeTopK(b)
	if err != nil {
		return nil, fmt.Errorf("top-k: %w", err)
	}
	return t, nil
}

func decodeTopK(b []byte) (*TopK, error) {
	h, content, err := decodeHeader(b, header{kind: kindTopK, hash: hashItem})
	if err != nil {
		return nil, err
	}
	r := reader{b: content}
	k, n := r.uint32(), r.uint32()
	if h.form != 0 || k < 1 || k > MaxK || n > k {
		r.fail("form %d, %d items of %d", h.form, n, k)
	}
	if r.err != nil {
		return nil, r.err
	}
	t := NewTopK(h.key, int(k))
	var last Entry
	for i := range n {
		e := Entry{Count: r.uint32(), Hash: Hash128{Lo: r.uint64(), Hi: r.uint64()}}
		name := r.take(int(r.uvarint(uint64(len(r.b)))))
		e.Name = string(name)
		if r.err != nil {
			return nil, r.err
		}
		if i > 0 && compareEntries(last, e) >= 0 || t.find(e.Hash, name) >= 0 {
			return nil, malformed("item %q with %d behind %q with %d", e.Name, e.Count, last.Name, last.Count)
		}
		t.Offer(e.Hash, e.Count, name)
		last = e
	}
	return t, r.end()
}
