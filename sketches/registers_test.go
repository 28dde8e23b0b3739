package sketches

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/axiomhq/hyperloglog"
	"pgregory.net/rapid"
)

// drawRegisters draws registers of any content: even ones that no users would
// leave behind.
func drawRegisters(t *rapid.T) Registers {
	r := NewRegisters()
	switch rapid.IntRange(0, 2).Draw(t, "content") {
	case 0: // one rank throughout
		rank := rapid.ByteRange(0, MaxRank).Draw(t, "rank")
		for i := range r {
			r[i] = rank
		}
	case 1: // any
		limit := rapid.Uint64Range(1, MaxRank+1).Draw(t, "ranks")
		for i, h := range randomHashes(len(r), rapid.Uint64().Draw(t, "seed")) {
			r[i] = byte(h % limit)
		}
	default: // of a crowd
		n := rapid.SampledFrom([]int{0, 1, 100, 5000, 100_000}).Draw(t, "users")
		for _, h := range randomHashes(n, rapid.Uint64().Draw(t, "seed")) {
			r.AddToken(Token(h))
		}
	}
	for range rapid.IntRange(0, 5).Draw(t, "odd ones") {
		r[rapid.IntRange(0, RegisterCount-1).Draw(t, "at")] = rapid.ByteRange(0, MaxRank).Draw(t, "odd")
	}
	return r
}

// TestUnionIsTheLargerOfEach holds every implementation against the definition.
func TestUnionIsTheLargerOfEach(t *testing.T) {
	implementations := map[string]func(dst, src *[RegisterCount]byte){"chosen": union, "words": unionWords}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRegisters(t), drawRegisters(t)
		want := NewRegisters()
		for i := range want {
			want[i] = max(a[i], b[i])
		}
		for name, f := range implementations {
			// One byte off, so that no word and no vector is aligned.
			dst, src := append(Registers{9}, a...)[1:], append(Registers{9}, b...)[1:]
			f((*[RegisterCount]byte)(dst), (*[RegisterCount]byte)(src))
			if !bytes.Equal(dst, want) {
				t.Errorf("%s: not the larger of each two", name)
			}
			if !bytes.Equal(src, b) {
				t.Errorf("%s: changes its source", name)
			}
		}
	})
}

// TestUnionStaysInside: registers are 16 KiB among others.
func TestUnionStaysInside(t *testing.T) {
	around := bytes.Repeat([]byte{1}, RegisterCount+512)
	src := Registers(bytes.Repeat([]byte{2}, RegisterCount))
	Registers(around[256 : 256+RegisterCount]).Merge(src)
	for i, x := range around {
		if inside := i >= 256 && i < 256+RegisterCount; inside != (x == 2) {
			t.Fatalf("byte %d of 256 + %d + 256 is %d", i, RegisterCount, x)
		}
	}
}

// TestEstimateIsTheLibrarys, whatever the registers say (S1).
func TestEstimateIsTheLibrarys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRegisters(t)
		if got, want := r.Estimate(), libraryOf(t, r).Estimate(); got != want {
			t.Fatalf("estimate %d, the library's %d", got, want)
		}
	})
}

func libraryOf(t rapid.TB, r Registers) *hyperloglog.Sketch {
	s := hyperloglog.NewNoSparse()
	b := binary.BigEndian.AppendUint32([]byte{2, Precision, 0, 0}, RegisterCount)
	if err := s.UnmarshalBinary(append(b, r...)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAddSetAndTokensAreAddToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, list, set := NewRegisters(), NewRegisters(), NewRegisters()
		var tokens []uint32
		var s TokenSet
		for _, h := range append(drawCrowd(t), drawHash(t)) {
			one.AddToken(Token(h))
			tokens = append(tokens, Token(h))
			s.Add(Token(h))
		}
		list.AddTokens(tokens)
		set.AddSet(&s)
		if !bytes.Equal(one, list) || !bytes.Equal(one, set) {
			t.Fatal("three ways to add the same tokens differ")
		}
	})
}

func TestValidRegisters(t *testing.T) {
	r := NewRegisters()
	r[RegisterCount-1] = MaxRank
	if err := r.Valid(); err != nil {
		t.Error(err)
	}
	high := NewRegisters()
	high[5] = MaxRank + 1
	for name, bad := range map[string]Registers{"short": r[1:], "long": append(r, 0), "none": nil, "too high": high} {
		if err := bad.Valid(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
