package clickhouse

import (
	"fmt"

	"tidemark/sketches"
)

// Viewers of a row are numbers below 2^27, a set of tokens or of registers:
//
//	0 register(14) 0 suffix(11)    a token; its rank follows from the suffix, which is not zero
//	0 register(14) 1 zeros(11)     a token whose suffix is zero, and behind it so many zeros, up to the first one
//	1 000000 register(14) rank(6)  a register that is not zero
//
// A union of such sets is one, by the same operation for both; where a register is in
// it several times the highest rank counts. The codec T64 packs them into the bits they
// differ in, where 32 bits that look random would stay 32; and SQL takes register and
// rank out of them.
const (
	// suffixBits is how many bits of a token's 25 follow those of the register.
	suffixBits  = sketches.SparsePrecision - sketches.Precision
	rankBits    = 6
	isRegister  = 1 << (sketches.SparsePrecision + 1)
	suffixZero  = 1 << suffixBits
	suffixShift = suffixBits + 1
)

// tokenNumber returns a token as the column has it.
func tokenNumber(token uint32) (uint32, error) {
	const suffix = 1<<suffixBits - 1
	if token&1 == 0 {
		if index := token >> 1; index < 1<<sketches.SparsePrecision && index&suffix != 0 {
			return index>>suffixBits<<suffixShift | index&suffix, nil
		}
		return 0, fmt.Errorf("%#x is no token", token)
	}
	index, zeros := token>>(32-sketches.Precision), token>>1&63
	if token>>7&suffix != 0 || zeros == 0 || zeros+suffixBits > sketches.MaxRank {
		return 0, fmt.Errorf("%#x is no token", token)
	}
	return index<<suffixShift | suffixZero | zeros, nil
}

// appendTokens appends the numbers of tokens.
func appendTokens(dst, tokens []uint32) ([]uint32, error) {
	for _, t := range tokens {
		n, err := tokenNumber(t)
		if err != nil {
			return nil, err
		}
		dst = append(dst, n)
	}
	return dst, nil
}

// appendRegisters appends the numbers of registers.
func appendRegisters(dst []uint32, r sketches.Registers) ([]uint32, error) {
	if err := r.Valid(); err != nil {
		return nil, err
	}
	for i, rank := range r {
		if rank != 0 {
			dst = append(dst, isRegister|uint32(i)<<rankBits|uint32(rank))
		}
	}
	return dst, nil
}
