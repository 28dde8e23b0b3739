package sketches

import (
	"encoding/binary"
	"fmt"

	"github.com/axiomhq/hyperloglog"
)

// Sketch returns its state as a sketch of the library, for whoever speaks that:
// one of New14 that has the same tokens, or of NewNoSparse with the same registers.
func (v *Viewers) Sketch() (*hyperloglog.Sketch, error) {
	s := hyperloglog.New14()
	if err := s.UnmarshalBinary(v.appendLibrary(nil)); err != nil {
		return nil, fmt.Errorf("viewers as a library sketch: %w", err)
	}
	return s, nil
}

// appendLibrary appends what the library's MarshalBinary writes for this state,
// tokens in its compact form: an empty set of fresh ones, then all of them as
// differences.
func (v *Viewers) appendLibrary(b []byte) []byte {
	const version, bias, asList, asRegisters = 2, 0, 1, 0
	if v.dense {
		b = append(b, version, Precision, bias, asRegisters)
		b = binary.BigEndian.AppendUint32(b, RegisterCount)
		return append(b, v.regs...)
	}
	tokens := v.Tokens()
	var list []byte
	var last uint32
	for _, t := range tokens {
		list = binary.AppendUvarint(list, uint64(t-last))
		last = t
	}
	b = append(b, version, Precision, bias, asList)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(tokens)))
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
	return append(b, list...)
}
