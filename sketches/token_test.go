package sketches

import (
	"bytes"
	"math/bits"
	"testing"

	"github.com/axiomhq/hyperloglog"
	"pgregory.net/rapid"
)

// TestTokenKeepsTheRegister: what a token says of its hash is what the hash says.
func TestTokenKeepsTheRegister(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHash(t)
		token := Token(h)
		index, rank := RegisterOf(token)
		if index != uint32(h>>(64-Precision)) {
			t.Errorf("hash %#x: register %d", h, index)
		}
		if want := bits.LeadingZeros64(h<<Precision|1<<(Precision-1)) + 1; int(rank) != want {
			t.Errorf("hash %#x: rank %d, want %d", h, rank, want)
		}
		if token == 0 || !ValidToken(token) {
			t.Errorf("hash %#x: token %#x is none", h, token)
		}
		if got := Token(Expand(token)); got != token {
			t.Errorf("hash %#x: token %#x expands to the hash of token %#x", h, token, got)
		}
	})
}

// TestTokenIsTheLibrarys puts one hash into the library, and what the token
// expands to as well: the same bytes (S1).
func TestTokenIsTheLibrarys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHash(t)
		for _, make := range []func() *hyperloglog.Sketch{hyperloglog.New14, hyperloglog.NewNoSparse} {
			want := marshal(t, make(), h)
			if got := marshal(t, make(), Expand(Token(h))); !bytes.Equal(got, want) {
				t.Fatalf("hash %#x and its token expanded differ in the library", h)
			}
		}
		v := NewViewers(1)
		v.AddHash(h)
		if got, want := v.appendLibrary(nil), marshal(t, hyperloglog.New14(), h); !bytes.Equal(got, want) {
			t.Fatalf("hash %#x: token %#x is not the library's", h, v.Tokens())
		}
	})
}

// marshal returns the library's state after the hashes, its list compact.
func marshal(t rapid.TB, s *hyperloglog.Sketch, hashes ...uint64) []byte {
	for _, h := range hashes {
		s.InsertHash(h)
	}
	s.Estimate()
	b, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNumbersThatAreNoToken must not lead anything astray: they come from bytes
// that nobody checked.
func TestNumbersThatAreNoToken(t *testing.T) {
	for _, token := range []uint32{0, 1, 2 << 25, 1<<32 - 1, 41<<1 | 1, 1 << 26, 1<<13 | 3, 1<<18 | 1} {
		if ValidToken(token) {
			t.Errorf("%#x: valid", token)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		index, _ := RegisterOf(rapid.Uint32().Draw(t, "token"))
		if index >= RegisterCount {
			t.Fatalf("register %d", index)
		}
	})
}
