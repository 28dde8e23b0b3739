package sketches

import "math/bits"

const (
	// Precision is p of the HyperLogLog registers: there are 2^p.
	Precision = 14
	// SparsePrecision is p' of tokens: how many leading bits of a hash they keep.
	SparsePrecision = 25
	// RegisterCount is the number of registers of a dense sketch, a byte each.
	RegisterCount = 1 << Precision
	// MaxInline is the largest number of different tokens that is called exact,
	// and that needs no memory of its own.
	MaxInline = 12
	// MaxTokens is the largest number of different tokens that stay tokens. With
	// one more a sketch is dense, everywhere and whatever it was merged from.
	MaxTokens = 1024
	// MaxRank is the highest rank that a register can hold.
	MaxRank = 64 - Precision + 1
)

// suffixBits is how many bits of a token lie between p and p'.
const suffixBits = SparsePrecision - Precision

// Token returns the 32-bit form of a user's hash, which is what the library
// github.com/axiomhq/hyperloglog (p = 14, p' = 25) keeps in its sparse lists:
// the leading 25 bits of the hash and, where those do not hold the rank, also
// the rank. It is never 0.
func Token(hash uint64) uint32 {
	index := uint32(hash >> (64 - SparsePrecision))
	if index&(1<<suffixBits-1) != 0 {
		return index << 1
	}
	zeros := bits.LeadingZeros64(hash<<SparsePrecision|(1<<SparsePrecision-1)) + 1
	return index<<7 | uint32(zeros)<<1 | 1
}

// RegisterOf returns the register that a token belongs to, below RegisterCount,
// and its rank, at most MaxRank if the token is one.
func RegisterOf(token uint32) (index uint32, rank uint8) {
	if token&1 == 1 {
		return token >> (32 - Precision), uint8(token>>1&63) + suffixBits
	}
	// Behind the register's number follow the leading zeros of the suffix. The
	// low bit set ends the count where a number that is no token has none.
	const unused = 32 - SparsePrecision - 1
	index = token >> (suffixBits + 1) & (RegisterCount - 1)
	return index, uint8(bits.LeadingZeros32(token<<(unused+Precision)|1)) + 1
}

// Expand returns a hash whose token this is, for the library's InsertHash.
func Expand(token uint32) uint64 {
	if token&1 == 1 {
		zeros := token >> 1 & 63
		return uint64(token>>7)<<(64-SparsePrecision) | 1<<(64-SparsePrecision)>>zeros
	}
	return uint64(token>>1)<<(64-SparsePrecision) | 1
}

// ValidToken reports whether some hash has this token. What comes from outside
// is asked; the sketches themselves take tokens as they are.
func ValidToken(token uint32) bool { return Token(Expand(token)) == token }
