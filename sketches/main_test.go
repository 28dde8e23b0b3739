package sketches

import (
	"math/bits"
	"math/rand/v2"

	"pgregory.net/rapid"
)

// testHasher hashes under a key that never changes, so that figures do not either.
var testHasher = NewHasher(Key{0: 1, 15: 16})

// randomHashes returns n hashes, the same for a seed.
func randomHashes(n int, seed uint64) []uint64 {
	rng := rand.New(rand.NewPCG(seed, 7))
	out := make([]uint64, n)
	for i := range out {
		out[i] = rng.Uint64()
	}
	return out
}

// drawHash draws a hash: any, or one with a long run of zeros somewhere, where the
// forms of a token and the highest ranks are.
func drawHash(t *rapid.T) uint64 {
	h := rapid.Uint64().Draw(t, "hash")
	if rapid.Bool().Draw(t, "zeros") {
		from := rapid.IntRange(0, 63).Draw(t, "from")
		n := rapid.IntRange(1, 64-from).Draw(t, "run")
		h &^= (1<<n - 1) << from
	}
	return h
}

// drawCrowd draws hashes of so many users as the forms of a sketch make interesting.
func drawCrowd(t *rapid.T) []uint64 {
	n := rapid.SampledFrom([]int{0, 1, 2, 11, 12, 13, 30, 250, 1000, 1023, 1024, 1025, 1400, 6000}).Draw(t, "users")
	// Few seeds, so that crowds meet again, and one is the beginning of another.
	return randomHashes(n, rapid.Uint64Range(0, 3).Draw(t, "crowd"))
}

// crowd is the exact account that Viewers are held against: who was there, and
// what that makes of registers by their definition.
type crowd struct {
	users  map[uint64]bool
	tokens map[uint32]bool
	regs   Registers
}

func newCrowd() *crowd {
	return &crowd{users: make(map[uint64]bool), tokens: make(map[uint32]bool), regs: NewRegisters()}
}

func (c *crowd) add(hashes ...uint64) {
	for _, h := range hashes {
		if c.users[h] {
			continue
		}
		c.users[h] = true
		c.tokens[Token(h)] = true
		rank := bits.LeadingZeros64(h<<Precision|1<<(Precision-1)) + 1
		r := &c.regs[h>>(64-Precision)]
		*r = max(*r, byte(rank))
	}
}
