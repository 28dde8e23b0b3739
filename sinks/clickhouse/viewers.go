package clickhouse

import (
	"fmt"
	"slices"

	"tidemark/sketches"
)

// viewers is a viewers sketch in the form of the columns: tokens and their registers,
// or registers alone; of registers those that are not zero.
type viewers struct {
	tokens    []uint32
	registers []register
	dense     bool
}

// suffixBits is how many bits of a token's 25 follow those of the register.
const suffixBits = sketches.SparsePrecision - sketches.Precision

// fromZeroSuffix is where the numbers of tokens begin whose suffix is zero.
const fromZeroSuffix = 1 << sketches.SparsePrecision

// columnToken returns a token as the column has it: a number below 2^26, which the
// codec T64 packs into 26 bits, where 32 bits that look random would stay 32.
func columnToken(token uint32) (uint32, error) {
	const suffix = 1<<suffixBits - 1
	if token&1 == 0 {
		if index := token >> 1; index < fromZeroSuffix && index&suffix != 0 {
			return index, nil
		}
		return 0, fmt.Errorf("%#x is no token", token)
	}
	index, zeros := token>>(32-sketches.Precision), token>>1&63
	if token>>7&suffix != 0 || zeros == 0 || zeros+suffixBits > sketches.MaxRank {
		return 0, fmt.Errorf("%#x is no token", token)
	}
	return fromZeroSuffix + index<<6 + zeros, nil
}

// setTokens makes v those of a list of different tokens.
func (v *viewers) setTokens(tokens []uint32) error {
	v.tokens, v.registers, v.dense = v.tokens[:0], v.registers[:0], false
	for _, t := range tokens {
		c, err := columnToken(t)
		if err != nil {
			return err
		}
		v.tokens = append(v.tokens, c)
		v.registers = append(v.registers, newRegister(sketches.RegisterOf(t)))
	}
	// Of several of one register the highest is the last.
	slices.Sort(v.registers)
	kept := v.registers[:0]
	for i, r := range v.registers {
		if i+1 == len(v.registers) || v.registers[i+1].index() != r.index() {
			kept = append(kept, r)
		}
	}
	v.registers = kept
	return nil
}

// setRegisters makes v those of registers.
func (v *viewers) setRegisters(r sketches.Registers) error {
	v.tokens, v.registers, v.dense = v.tokens[:0], v.registers[:0], true
	if err := r.Valid(); err != nil {
		return err
	}
	for i, rank := range r {
		if rank != 0 {
			v.registers = append(v.registers, newRegister(uint32(i), rank))
		}
	}
	return nil
}
