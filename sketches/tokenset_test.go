package sketches

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTokenSetIsASet holds a set, emptied and used again, against a map.
func TestTokenSetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s TokenSet
		want := make(map[uint32]bool)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				token := Token(drawHash(t))
				if fresh := s.Add(token); fresh == want[token] {
					t.Fatalf("Add(%#x) = %v", token, fresh)
				}
				want[token] = true
				s.Touch(token)
			},
			"addCrowd": func(t *rapid.T) {
				for _, h := range drawCrowd(t) {
					s.Add(Token(h))
					want[Token(h)] = true
				}
			},
			"putSome": func(t *rapid.T) {
				var tokens []uint32
				for _, h := range drawCrowd(t) {
					tokens = append(tokens, Token(h))
					want[Token(h)] = true
				}
				s.reserve(s.Len() + len(tokens))
				s.putSome(tokens)
			},
			"reset": func(*rapid.T) {
				s.Reset()
				clear(want)
			},
			"": func(t *rapid.T) {
				if s.Len() != len(want) {
					t.Fatalf("%d tokens, want %d", s.Len(), len(want))
				}
				got := s.AppendTo([]uint32{7})
				if got[0] != 7 || len(got) != 1+len(want) {
					t.Fatalf("%d tokens appended, want %d", len(got)-1, len(want))
				}
				for _, token := range got[1:] {
					if !want[token] {
						t.Fatalf("%#x was never added", token)
					}
				}
				if got = got[1:]; len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(want) {
					t.Fatal("a token is there twice")
				}
				if 4*s.Len() > 3*len(s.slots) && s.Len() > 0 {
					t.Fatalf("%d tokens in %d slots", s.Len(), len(s.slots))
				}
				for _, beyond := range s.slots[len(s.slots):cap(s.slots)] {
					if beyond != 0 {
						t.Fatal("memory kept for later is not clean")
					}
				}
			},
		})
	})
}

// TestTokenSetIsAsLargeAsItMustBe: memory follows what is in it, and Reset what
// was in it last, not the largest it ever was.
func TestTokenSetIsAsLargeAsItMustBe(t *testing.T) {
	var s TokenSet
	if s.Bytes() != 0 {
		t.Errorf("an empty set takes %d bytes", s.Bytes())
	}
	for i, h := range randomHashes(MaxTokens, 1) {
		s.Add(Token(h))
		if n := i + 1; s.Bytes() > max(4*minSlots, 4*4*n) {
			t.Fatalf("%d tokens take %d bytes", n, s.Bytes())
		}
	}
	s.Reset()
	for _, h := range randomHashes(13, 1) {
		s.Add(Token(h))
	}
	if len(s.slots) > 128 {
		t.Errorf("13 tokens after a Reset use %d slots, all of which the next Reset clears", len(s.slots))
	}
}
