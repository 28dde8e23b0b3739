package sketches

import (
	"encoding/binary"
	"fmt"
)

// AppendBinary appends the encoding of v. Equal states give equal bytes. The
// error is always nil; it is there for encoding.BinaryAppender.
func (v *Viewers) AppendBinary(b []byte) ([]byte, error) {
	h := header{kind: kindViewers, precision: Precision, second: SparsePrecision, hash: hashUser, form: formTokens, key: v.key}
	if v.dense {
		h.form = formRegisters
		return append(h.append(b), v.regs...), nil
	}
	b = h.append(b)
	for _, t := range v.Tokens() {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	return b, nil
}

// DecodeViewers reads what AppendBinary wrote, and keeps nothing of b. Errors
// wrap ErrMalformed.
func DecodeViewers(b []byte) (*Viewers, error) {
	v, err := decodeViewers(b)
	if err != nil {
		return nil, fmt.Errorf("viewers: %w", err)
	}
	return v, nil
}

func decodeViewers(b []byte) (*Viewers, error) {
	h, content, err := decodeHeader(b, header{kind: kindViewers, precision: Precision, second: SparsePrecision, hash: hashUser})
	if err != nil {
		return nil, err
	}
	if h.form == formRegisters {
		if err := Registers(content).Valid(); err != nil {
			return nil, err
		}
		v := NewViewers(h.key)
		v.AddRegisters(content)
		return v, nil
	}
	if h.form != formTokens {
		return nil, malformed("form %d", h.form)
	}
	if len(content)%4 != 0 || len(content) > 4*MaxTokens {
		return nil, malformed("%d bytes of tokens", len(content))
	}
	tokens := make([]uint32, 0, MaxTokens)
	var last uint32
	for ; len(content) > 0; content = content[4:] {
		t := binary.LittleEndian.Uint32(content)
		if t <= last || !ValidToken(t) {
			return nil, malformed("token %#x behind %#x", t, last)
		}
		tokens = append(tokens, t)
		last = t
	}
	v := NewViewers(h.key)
	v.AddTokens(tokens)
	return v, nil
}
