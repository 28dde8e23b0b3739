package sketches

import (
	"math/bits"
	"slices"
)

// TokenSet is a set of tokens: open addressing with linear probing, at most three
// quarters full. The zero value is empty and ready. Reset keeps the memory, so
// that a pool of sets stops allocating; it costs what the set held, not what the
// set ever grew to. Not safe for concurrent use.
type TokenSet struct {
	// slots is the table in use, a power of two; 0 is a free slot, since no token
	// is 0. Beyond its length, up to its capacity, all is 0 as well.
	slots []uint32
	n     uint32
	shift uint32 // 32 − log2(len(slots))
}

// minSlots is the smallest table.
const minSlots = 32

// setRoom is room for the tokens of any set that is on its way to registers, and
// for the one more that AppendTo wants.
const setRoom = MaxTokens + addStep + 1

// Len returns how many tokens the set holds.
func (s *TokenSet) Len() int { return int(s.n) }

// Bytes returns the memory that the set holds on to.
func (s *TokenSet) Bytes() int { return 4 * cap(s.slots) }

// Add puts a token into the set and reports whether it was new.
func (s *TokenSet) Add(token uint32) bool {
	if int(s.n)*4 >= len(s.slots)*3 {
		s.grow(int(s.n) + 1)
	}
	return s.put(token)
}

// put is Add where there is room.
func (s *TokenSet) put(token uint32) bool {
	slots := s.slots
	mask := uint32(len(slots) - 1)
	for i := token * hashFactor >> s.shift; ; i++ {
		p := &slots[i&mask]
		if *p == token {
			return false
		}
		if *p == 0 {
			*p = token
			s.n++
			return true
		}
	}
}

// putSome is put of a list.
func (s *TokenSet) putSome(tokens []uint32) {
	slots, shift, n := s.slots, s.shift&31, s.n
	mask := uint32(len(slots) - 1)
	for _, t := range tokens {
		i := t * hashFactor >> shift & mask
		for slots[i] != t {
			if slots[i] == 0 {
				slots[i] = t
				n++
				break
			}
			i = (i + 1) & mask
		}
	}
	s.n = n
}

// hashFactor spreads tokens over a table by the high bits of the product: 2³²
// divided by the golden ratio (Knuth, TAOCP 6.4). Tokens are random already.
const hashFactor = 0x9e3779b1

// Touch reads the slot at which the search for a token begins, and nothing else:
// see CountMin.Touch.
func (s *TokenSet) Touch(token uint32) uint32 {
	if len(s.slots) == 0 {
		return 0
	}
	return s.slots[token*hashFactor>>s.shift]
}

// AppendTo appends the tokens to dst, in no order. It wants room for one more
// than there are.
func (s *TokenSet) AppendTo(dst []uint32) []uint32 {
	if s.n == 0 {
		return dst
	}
	// Every slot is written, and the free ones are written over: whether a slot is
	// free is a coin toss, which a jump would lose half the time.
	n := len(dst)
	dst = slices.Grow(dst, int(s.n)+1)
	dst = dst[:n+int(s.n)+1]
	for _, t := range s.slots {
		dst[n] = t
		if t != 0 {
			n++
		}
	}
	return dst[:n]
}

// Reset empties the set.
func (s *TokenSet) Reset() {
	if s.n == 0 {
		return
	}
	clear(s.slots)
	s.n = 0
	s.use(minSlots)
}

// use makes the first size slots, all of them free, the table.
func (s *TokenSet) use(size int) {
	s.slots = s.slots[:size]
	s.shift = uint32(32 - bits.TrailingZeros(uint(size)))
}

// reserve makes room for n tokens in all.
func (s *TokenSet) reserve(n int) {
	if n*4 > len(s.slots)*3 {
		s.grow(n)
	}
}

// grow makes the table large enough for n tokens.
func (s *TokenSet) grow(n int) {
	size := max(minSlots, 2*len(s.slots))
	for n*4 > size*3 {
		size *= 2
	}
	if size > cap(s.slots) {
		old := s.slots
		s.slots, s.n = make([]uint32, size), 0
		s.use(size)
		for _, t := range old {
			if t != 0 {
				s.put(t)
			}
		}
		return
	}
	// The memory is there from an earlier life, so growing in greater steps costs
	// none. The tokens step aside, in place of a scheme for enlarging a probed
	// table within itself.
	size = min(4*size, cap(s.slots))
	var aside [setRoom]uint32
	tokens := s.AppendTo(aside[:0])
	clear(s.slots)
	s.use(size)
	s.n = 0
	s.putSome(tokens)
}
