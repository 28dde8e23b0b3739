package sketches

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/axiomhq/hyperloglog"
	"pgregory.net/rapid"
)

// TestViewersAreTheLibrarys builds both from the same hashes and compares what
// they hold and what they answer, at each step as long as there are tokens (S1).
func TestViewersAreTheLibrarys(t *testing.T) {
	v, sparse, dense := NewViewers(1), hyperloglog.New14(), hyperloglog.NewNoSparse()
	for i, h := range randomHashes(200_000, 1) {
		v.AddHash(h)
		sparse.InsertHash(h)
		dense.InsertHash(h)
		n := i + 1
		if n > MaxTokens+50 && n%10_000 != 0 {
			continue
		}
		if v.Dense() != (n > MaxTokens) {
			t.Fatalf("%d users: dense is %v", n, v.Dense())
		}
		library := sparse
		if v.Dense() {
			library = dense
		}
		if got, want := v.Number().Value, library.Estimate(); got != want {
			t.Fatalf("%d users: estimate %d, the library's %d", n, got, want)
		}
		if got, want := v.appendLibrary(nil), marshal(t, library); !bytes.Equal(got, want) {
			t.Fatalf("%d users: the state is not the library's", n)
		}
	}
}

// TestSketchIsOneOfTheLibrary: it answers, goes on counting and merges as such.
func TestSketchIsOneOfTheLibrary(t *testing.T) {
	hashes := randomHashes(10_000, 2)
	for _, n := range []int{0, 1, 12, 13, MaxTokens, MaxTokens + 1, 5000} {
		v := viewersOf(1, hashes[:n])
		s, err := v.Sketch()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := s.Estimate(), v.Number().Value; got != want {
			t.Errorf("%d users: the sketch says %d, viewers %d", n, got, want)
		}
		for _, h := range hashes[n:] {
			s.InsertHash(h)
		}
		other := hyperloglog.NewNoSparse()
		if err := other.Merge(s); err != nil {
			t.Fatal(err)
		}
		if got, want := marshal(t, other), marshal(t, hyperloglog.NewNoSparse(), hashes...); !bytes.Equal(got, want) {
			t.Errorf("%d users as a sketch, and the rest added: not the registers of all", n)
		}
	}
}

func viewersOf(key KeyID, hashes []uint64) *Viewers {
	v := NewViewers(key)
	for _, h := range hashes {
		v.AddHash(h)
	}
	return v
}

// state is all that a sketch says of itself, to be compared.
func state(t rapid.TB, v *Viewers) string {
	b, err := v.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%v %v %d %x", v.Number(), v.Dense(), v.Len(), b)
}

// TestMergeInEveryPairing merges every form with every form, at every overlap,
// and compares with counting all their users in one sketch (S2, S7).
func TestMergeInEveryPairing(t *testing.T) {
	sizes := []int{0, 1, 6, 12, 13, 500, 1023, 1024, 1025, 3000, 50_000}
	all := randomHashes(100_000, 3)
	for _, a := range sizes {
		for _, b := range sizes {
			for _, shift := range slices.Compact([]int{0, a / 2, a}) { // b is within a, overlaps, is apart
				ha, hb := all[:a], all[shift:shift+b]
				want := state(t, viewersOf(1, append(slices.Clone(ha), hb...)))
				va, vb := viewersOf(1, ha), viewersOf(1, hb)
				before := state(t, vb)
				for range 2 { // the second time changes nothing
					if err := va.Merge(vb); err != nil {
						t.Fatal(err)
					}
					if state(t, va) != want {
						t.Errorf("%d and %d users, shifted by %d: not the union", a, b, shift)
					}
				}
				if state(t, vb) != before {
					t.Errorf("%d and %d users, shifted by %d: the argument changed", a, b, shift)
				}
			}
		}
		v := viewersOf(1, all[:a])
		before := state(t, v)
		if err := v.Merge(v); err != nil || state(t, v) != before {
			t.Errorf("%d users merged with themselves: %v", a, err)
		}
	}
}

// TestMergeLaws: commutative, associative, idempotent, for any crowds (S2).
func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawCrowd(t), drawCrowd(t), drawCrowd(t)
		merged := func(parts ...*Viewers) *Viewers {
			sum := NewViewers(1)
			for _, p := range parts {
				if err := sum.Merge(p); err != nil {
					t.Fatal(err)
				}
			}
			return sum
		}
		va, vb, vc := viewersOf(1, a), viewersOf(1, b), viewersOf(1, c)
		want := state(t, viewersOf(1, slices.Concat(a, b, c)))
		for name, v := range map[string]*Viewers{
			"in order":        merged(va, vb, vc),
			"backwards":       merged(vc, vb, va),
			"left first":      merged(merged(va, vb), vc),
			"right first":     merged(va, merged(vb, vc)),
			"each twice":      merged(va, va, vb, vc, vb, vc),
			"sum with a part": merged(merged(va, vb, vc), vb),
		} {
			if state(t, v) != want {
				t.Errorf("%s: not the union of all", name)
			}
		}
	})
}

// TestViewersOverTheOracle adds in every way, to sketches that are used again and
// again, and holds them against exact sets (S2).
func TestViewersOverTheOracle(t *testing.T) {
	const sketches = 3
	rapid.Check(t, func(t *rapid.T) {
		var got [sketches]*Viewers
		var want [sketches]*crowd
		for i := range got {
			got[i], want[i] = NewViewers(1), newCrowd()
		}
		touched := 0
		pick := func(t *rapid.T) int {
			touched = rapid.IntRange(0, sketches-1).Draw(t, "sketch")
			return touched
		}
		t.Repeat(map[string]func(*rapid.T){
			"hash": func(t *rapid.T) {
				i, h := pick(t), drawHash(t)
				got[i].AddHash(h)
				want[i].add(h)
			},
			"hashes": func(t *rapid.T) {
				i, hashes := pick(t), drawCrowd(t)
				for _, h := range hashes {
					got[i].AddHash(h)
				}
				want[i].add(hashes...)
			},
			"tokens": func(t *rapid.T) {
				i, hashes := pick(t), drawCrowd(t)
				var tokens []uint32
				for _, h := range hashes {
					tokens = append(tokens, Token(h))
				}
				got[i].AddTokens(tokens)
				want[i].add(hashes...)
			},
			"registers": func(t *rapid.T) {
				i, hashes := pick(t), randomHashes(2000, rapid.Uint64().Draw(t, "seed"))
				got[i].AddRegisters(viewersOf(1, hashes).Registers())
				want[i].add(hashes...)
			},
			"merge": func(t *rapid.T) {
				j, i := pick(t), pick(t)
				if err := got[i].Merge(got[j]); err != nil {
					t.Fatal(err)
				}
				want[i].add(slices.Collect(maps.Keys(want[j].users))...)
				compareWithCrowd(t, got[j], want[j])
			},
			"reset": func(t *rapid.T) {
				i := pick(t)
				got[i].Reset()
				want[i] = newCrowd()
			},
			"": func(t *rapid.T) {
				compareWithCrowd(t, got[touched], want[touched])
			},
		})
	})
}

func compareWithCrowd(t *rapid.T, v *Viewers, c *crowd) {
	tokens := c.tokens
	if len(tokens) > MaxTokens {
		if !v.Dense() || v.Len() != 0 || v.Tokens() != nil || len(v.AppendTokens(nil)) != 0 {
			t.Fatalf("%d tokens: not dense, or dense with tokens", len(tokens))
		}
		if !bytes.Equal(v.Registers(), c.regs) {
			t.Fatalf("%d users: registers differ", len(c.users))
		}
		return
	}
	got := v.Tokens()
	if v.Dense() || v.Registers() != nil || v.Len() != len(tokens) || len(got) != len(tokens) {
		t.Fatalf("%d tokens, want %d; dense %v", len(got), len(tokens), v.Dense())
	}
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Fatal("tokens out of order, or one twice")
	}
	for _, token := range got {
		if !tokens[token] {
			t.Fatalf("token %#x is nobody's", token)
		}
	}
	want := Number{Value: uint64(len(tokens)), Low: uint64(len(tokens)), High: uint64(len(tokens)), Method: MethodExact}
	if len(tokens) > MaxInline {
		want.Method = MethodHLL
	}
	if v.Number() != want {
		t.Fatalf("%+v, want %+v", v.Number(), want)
	}
}

// TestTwoKeysNeverMerge, in any forms (S7).
func TestTwoKeysNeverMerge(t *testing.T) {
	hashes := randomHashes(3000, 4)
	for _, a := range []int{0, 5, 100, 3000} {
		for _, b := range []int{0, 5, 100, 3000} {
			va, vb := viewersOf(1, hashes[:a]), viewersOf(2, hashes[:b])
			before, argument := state(t, va), state(t, vb)
			if err := va.Merge(vb); !errors.Is(err, ErrKey) {
				t.Errorf("%d and %d users of two keys: %v", a, b, err)
			}
			if state(t, va) != before || state(t, vb) != argument {
				t.Errorf("%d and %d users of two keys: refused, and yet changed", a, b)
			}
		}
	}
	v := viewersOf(7, hashes)
	if v.Reset(); v.Key() != 7 || v.Len() != 0 || v.Dense() {
		t.Error("Reset forgets the key, or does not forget the users")
	}
}

// TestWarmViewersAllocateNothing: queries use one for thousands of parts.
func TestWarmViewersAllocateNothing(t *testing.T) {
	var lists [][]uint32
	for i := range 100 {
		lists = append(lists, viewersOf(1, randomHashes(10*i, uint64(i))).Tokens())
	}
	dense, tokens := viewersOf(1, randomHashes(5000, 1)), viewersOf(1, randomHashes(300, 1))
	v, buf := NewViewers(1), make([]uint32, 0, 2*MaxTokens)
	use := func() {
		v.Reset()
		for _, list := range lists[:5] {
			v.AddTokens(list)
		}
		buf = v.AppendTokens(buf[:0])
		for _, list := range lists {
			v.AddTokens(list)
		}
		v.Number()
		v.Reset()
		v.AddTokens(lists[50])
		v.AddRegisters(dense.Registers())
		if err := errors.Join(v.Merge(dense), v.Merge(tokens)); err != nil {
			t.Fatal(err)
		}
		v.Number()
	}
	use()
	if n := testing.AllocsPerRun(10, use); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if most := 4*2*2*MaxTokens + RegisterCount; v.Bytes() > most {
		t.Errorf("holds on to %d bytes, more than %d", v.Bytes(), most)
	}
}
