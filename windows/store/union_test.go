package store

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tidemark/sketches"
)

// A union says what sketches.Viewers says of the same rows, in any form.
func TestUnionIsWhatViewersSay(t *testing.T) {
	var u union
	rapid.Check(t, func(t *rapid.T) {
		u.reset()
		v := sketches.NewViewers(0)
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			n := rapid.SampledFrom([]int{0, 1, 2, 5, 13, 300, 1024}).Draw(t, "tokens")
			seed := rapid.Uint32Range(0, 1<<20).Draw(t, "seed")
			var tokens []uint32
			for i := range n {
				tokens = append(tokens, sketches.Token(uint64(seed+uint32(i)*rapid.SampledFrom([]uint32{1, 7}).Draw(t, "stride"))*0x9e3779b97f4a7c15))
			}
			slices.Sort(tokens)
			tokens = slices.Compact(tokens)
			r := record{}
			if rapid.IntRange(0, 9).Draw(t, "dense") == 0 {
				regs := sketches.NewRegisters()
				regs.AddTokens(tokens)
				r.dense = regs
				v.AddRegisters(regs)
			} else {
				for _, token := range tokens {
					r.tokens = binary.LittleEndian.AppendUint32(r.tokens, token)
				}
				v.AddTokens(tokens)
			}
			u.add(&r)
		}
		u.settle()
		if u.dense != v.Dense() || u.dense && !slices.Equal(u.regs, v.Registers()) || !u.dense && !slices.Equal(u.tokens, v.AppendTokens(nil)) {
			t.Fatalf("dense %v with %d tokens, want %v with %d", u.dense, len(u.tokens), v.Dense(), v.Len())
		}
	})
}
