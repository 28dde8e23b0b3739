package sketches

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// codec is what the three kinds have in common, for one table of tests.
type codec interface {
	AppendBinary([]byte) ([]byte, error)
}

var decoders = map[string]func([]byte) (codec, error){
	"viewers":   func(b []byte) (codec, error) { return orNil(DecodeViewers(b)) },
	"count-min": func(b []byte) (codec, error) { return orNil(DecodeCountMin(b)) },
	"top-k":     func(b []byte) (codec, error) { return orNil(DecodeTopK(b)) },
}

// orNil makes of a nil pointer a nil interface.
func orNil[T codec](c T, err error) (codec, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

func encode(t testing.TB, c codec) []byte {
	b, err := c.AppendBinary([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	after, ok := bytes.CutPrefix(b, []byte("before"))
	if !ok {
		t.Fatal("AppendBinary overwrites what it appends to")
	}
	return after
}

// smallCountMin has little in it and is encoded sparse.
func smallCountMin() *CountMin {
	c := NewCountMin(0x0102030405060708)
	c.Add(0, 1)
	c.Add(math.MaxUint64, 300)
	c.Add(0x0005_0004_0003_0002, 2)
	return c
}

// fullCountMin has something in every counter: about n, and more in some.
func fullCountMin(n uint32) *CountMin {
	c := NewCountMin(5)
	for i := range uint64(Width) {
		c.Add(i|i<<16|i<<32|i<<48, n+uint32(i%7))
	}
	for i := range uint64(100) {
		c.Add(i|i<<16|i<<32|i<<48, n<<i%20)
	}
	return c
}

func smallTopK() *TopK {
	t := NewTopK(3, 4)
	t.Offer(Hash128{1, 2}, 7, []byte("a"))
	t.Offer(Hash128{1, 2}, 7, []byte(""))
	t.Offer(Hash128{3, 4}, 900, []byte("é"))
	return t
}

// wellFormed is an encoding of each kind in each form.
func wellFormed(t testing.TB) map[string][][]byte {
	out := map[string][][]byte{
		"count-min": {encode(t, NewCountMin(1)), encode(t, smallCountMin()), encode(t, fullCountMin(3)), encode(t, fullCountMin(500)), encode(t, fullCountMin(1<<24))},
		"top-k":     {encode(t, NewTopK(1, 1)), encode(t, smallTopK())},
	}
	for _, n := range []int{0, 1, 12, 13, MaxTokens, MaxTokens + 1, 9000} {
		out["viewers"] = append(out["viewers"], encode(t, viewersOf(9, randomHashes(n, 1))))
	}
	return out
}

// TestDecodeOfEncode gives the same sketch back, and the same bytes (S8).
func TestDecodeOfEncode(t *testing.T) {
	for kind, blobs := range wellFormed(t) {
		for i, b := range blobs {
			c, err := decoders[kind](slices.Clone(b))
			if err != nil {
				t.Errorf("%s %d: %v", kind, i, err)
				continue
			}
			if !bytes.Equal(encode(t, c), b) {
				t.Errorf("%s %d: encodes to other bytes", kind, i)
			}
		}
	}
}

func TestViewersSurviveTheirEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := viewersOf(KeyID(rapid.Uint64().Draw(t, "key")), append(drawCrowd(t), drawHash(t)))
		b, err := v.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeViewers(b)
		if err != nil {
			t.Fatal(err)
		}
		clear(b) // it keeps nothing of the bytes
		if state(t, got) != state(t, v) || got.Key() != v.Key() {
			t.Fatal("another sketch")
		}
	})
}

func TestCountMinSurvivesItsEncoding(t *testing.T) {
	for name, test := range map[string]struct {
		c    *CountMin
		most int // bytes
	}{
		"sparse":        {smallCountMin(), 64},
		"bytes":         {fullCountMin(3), Rows*Width + 4000},
		"edge of bytes": {fullCountMin(math.MaxUint8 - 3), 2*Rows*Width + 100},
		"pairs":         {fullCountMin(500), 2*Rows*Width + 4000},
		"edge of pairs": {fullCountMin(math.MaxUint16 - 3), 4*Rows*Width + 100},
		"words":         {fullCountMin(1 << 24), headerSize + 8 + 4*Rows*Width},
	} {
		b := encode(t, test.c)
		if len(b) > test.most {
			t.Errorf("%s: %d bytes, at most %d", name, len(b), test.most)
		}
		got, err := DecodeCountMin(b)
		if err != nil {
			t.Fatal(err)
		}
		clear(b)
		if *got != *test.c {
			t.Errorf("%s: another table", name)
		}
	}
}

func TestTopKSurvivesItsEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := NewTopK(KeyID(rapid.Uint64().Draw(t, "key")), rapid.IntRange(1, 20).Draw(t, "k"))
		for range rapid.IntRange(0, 40).Draw(t, "items") {
			name := rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "name")
			top.Offer(testHasher.Item(name), rapid.Uint32().Draw(t, "count"), name)
		}
		b, err := top.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeTopK(b)
		if err != nil {
			t.Fatal(err)
		}
		clear(b)
		checkTopK(t, got)
		if diff := cmp.Diff(top.Sorted(), got.Sorted()); diff != "" || got.K() != top.K() || got.Key() != top.Key() {
			t.Fatalf("another list: %s", diff)
		}
	})
}

// TestFormatNeverChanges pins an encoding of each kind: stored sketches have it.
func TestFormatNeverChanges(t *testing.T) {
	viewers := NewViewers(0x1122334455667788)
	viewers.AddHash(0xffffffffffffffff)
	viewers.AddHash(0)
	for kind, want := range map[string]struct {
		c   codec
		hex string
	}{
		"viewers":   {viewers, "545301010e190100887766554433221151000000feffff03"},
		"count-min": {smallCountMin(), "545301021004020008070605040302012f010000000000000300010102fcff03ac020300010202fbff03ac020300010302faff03ac020300010402f9ff03ac02"},
		"top-k":     {smallTopK(), "545301030000020003000000000000000400000003000000840300000300000000000000040000000000000002c3a907000000010000000000000002000000000000000007000000010000000000000002000000000000000161"},
	} {
		if got := hex.EncodeToString(encode(t, want.c)); got != want.hex {
			t.Errorf("%s:\n%s, want\n%s", kind, got, want.hex)
		}
	}
}

// malformedBlob is an encoding with something wrong.
type malformedBlob struct {
	kind, name string
	b          []byte
}

// malformedBlobs is the one table that feeds both the test and the fuzz seeds.
func malformedBlobs(t testing.TB) []malformedBlob {
	var out []malformedBlob
	add := func(kind, name string, b []byte) { out = append(out, malformedBlob{kind, name, b}) }
	patched := func(b []byte, at int, with ...byte) []byte {
		b = slices.Clone(b)
		copy(b[at:], with)
		return b
	}
	blobs := wellFormed(t)
	kinds := []string{"viewers", "count-min", "top-k"}
	for i, kind := range kinds {
		good := blobs[kind][1]
		add(kind, "nothing", nil)
		for _, n := range []int{1, headerSize - 1} {
			add(kind, "cut in the header", good[:n])
		}
		add(kind, "cut at the end", good[:len(good)-1])
		add(kind, "cut in the middle", good[:headerSize+(len(good)-headerSize)/2+1])
		add(kind, "a byte too many", append(slices.Clone(good), 0))
		add(kind, "magic", patched(good, 0, 'X'))
		add(kind, "magic, second byte", patched(good, 1, 's'))
		add(kind, "format 0", patched(good, 2, 0))
		add(kind, "format 2", patched(good, 2, 2))
		add(kind, "kind 0", patched(good, 3, 0))
		add(kind, "another kind", blobs[kinds[(i+1)%3]][1])
		add(kind, "precision", patched(good, 4, 13))
		add(kind, "second precision", patched(good, 5, 26))
		add(kind, "hash", patched(good, 6, 9))
		add(kind, "form 9", patched(good, 7, 9))
	}

	head := header{kind: kindViewers, precision: Precision, second: SparsePrecision, hash: hashUser}
	tokens := func(list ...uint32) []byte {
		b := head.append(nil)
		for _, x := range list {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	a, z := Token(1<<45), Token(math.MaxUint64)
	add("viewers", "tokens out of order", tokens(z, a))
	add("viewers", "a token twice", tokens(a, a))
	add("viewers", "token 0", tokens(0))
	add("viewers", "no token", tokens(41<<1|1))
	add("viewers", "rank of no hash", tokens(63<<1|1))
	add("viewers", "token above 25 bits", tokens(1<<30))
	many := viewersOf(0, randomHashes(MaxTokens, 1)).Tokens()
	many = append(many, many[MaxTokens-1]+2)
	add("viewers", "too many tokens", tokens(many...))
	dense := blobs["viewers"][6]
	add("viewers", "a register too high", patched(dense, headerSize+77, MaxRank+1))
	add("viewers", "a register too few", dense[:len(dense)-1])
	add("viewers", "a register too many", append(slices.Clone(dense), 0))
	add("viewers", "no registers", dense[:headerSize])
	add("viewers", "registers as tokens", patched(dense, 7, formTokens))

	head = header{kind: kindCountMin, precision: widthBits, second: Rows, hash: hashItem}
	sparse := func(total uint64, rest ...uint64) []byte {
		b := binary.LittleEndian.AppendUint64(head.append(nil), total)
		for _, x := range rest {
			b = binary.AppendUvarint(b, x)
		}
		return b
	}
	add("count-min", "three rows", sparse(0, 0, 0, 0))
	add("count-min", "five rows", sparse(0, 0, 0, 0, 0, 0))
	add("count-min", "more counters than a row has", sparse(9, Width+1))
	add("count-min", "more counters than there are bytes", sparse(9, Width))
	add("count-min", "behind the row's end", sparse(9, 1, Width, 1, 0, 0, 0))
	add("count-min", "behind the row's end, in two", sparse(9, 2, Width-1, 1, 0, 1, 0, 0, 0))
	add("count-min", "a gap that wraps", sparse(9, 1, math.MaxUint64, 1, 0, 0, 0))
	add("count-min", "a counter of 0", sparse(9, 1, 5, 0, 0, 0, 0))
	add("count-min", "a counter of 33 bits", sparse(1<<40, 1, 5, 1<<32, 0, 0, 0))
	add("count-min", "a row above the total", sparse(9, 2, 5, 5, 5, 5, 0, 0, 0))
	add("count-min", "a padded number", append(sparse(9, 0, 0, 0), 0x80, 0))
	add("count-min", "a number without end", append(sparse(9), bytes.Repeat([]byte{0xff}, 40)...))
	for form, full := range blobs["count-min"][2:] {
		name := []string{"bytes", "pairs", "words"}[form]
		add("count-min", name+", cut", full[:len(full)-4])
		add("count-min", name+", longer", append(slices.Clone(full), 1))
		add("count-min", name+", rows above the total", patched(full, headerSize, make([]byte, 8)...))
		add("count-min", name+", one more above than follow", patched(full, headerSize+8+4*Width/2-4, 0xff, 0xff, 0xff, 0xff))
	}
	above := blobs["count-min"][2]
	add("count-min", "bytes, what follows is not above", patched(above, headerSize+8+Width, 0xfe, 0x01))
	add("count-min", "form 4", patched(blobs["count-min"][1], 7, 4))

	head = header{kind: kindTopK, hash: hashItem}
	list := func(k, n uint32, items ...Entry) []byte {
		b := binary.LittleEndian.AppendUint32(head.append(nil), k)
		b = binary.LittleEndian.AppendUint32(b, n)
		for _, e := range items {
			b = binary.LittleEndian.AppendUint32(b, e.Count)
			b = binary.LittleEndian.AppendUint64(b, e.Hash.Lo)
			b = binary.LittleEndian.AppendUint64(b, e.Hash.Hi)
			b = append(binary.AppendUvarint(b, uint64(len(e.Name))), e.Name...)
		}
		return b
	}
	e, f := Entry{Hash128{1, 1}, 5, "e"}, Entry{Hash128{2, 2}, 4, "f"}
	lower := e
	lower.Count = 3
	add("top-k", "k 0", list(0, 0))
	add("top-k", "k too large", list(MaxK+1, 0))
	add("top-k", "more than k", list(1, 2, e, f))
	add("top-k", "a million items in no bytes", list(MaxK, MaxK))
	add("top-k", "fewer than it says", list(9, 2, e))
	add("top-k", "more than it says", list(9, 1, e, f))
	add("top-k", "out of order", list(9, 2, f, e))
	add("top-k", "an item twice", list(9, 2, e, e))
	add("top-k", "an item twice with another count", list(9, 3, e, f, lower))
	add("top-k", "form 1", patched(list(9, 1, e), 7, 1))
	name := list(9, 1, e)
	add("top-k", "a name longer than the rest", patched(name, len(name)-2, 2))
	add("top-k", "a name of 2⁶³ bytes", append(name[:len(name)-2:len(name)-2], 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01))
	return out
}

// TestDecodersRefuse what is malformed, and say so (S8).
func TestDecodersRefuse(t *testing.T) {
	for _, m := range malformedBlobs(t) {
		before := slices.Clone(m.b)
		c, err := decoders[m.kind](m.b)
		if !errors.Is(err, ErrMalformed) || c != nil {
			t.Errorf("%s, %s: %v, %v", m.kind, m.name, c, err)
		}
		if !bytes.Equal(m.b, before) {
			t.Errorf("%s, %s: its bytes changed", m.kind, m.name)
		}
	}
}

// TestDecodersAllocateLittle: a few bytes that promise much must not get it (S8).
func TestDecodersAllocateLittle(t *testing.T) {
	var before, after runtime.MemStats
	for _, m := range malformedBlobs(t) {
		runtime.ReadMemStats(&before)
		decoders[m.kind](m.b)
		runtime.ReadMemStats(&after)
		const one = 4*Rows*Width + 1<<16 // the largest sketch there is, and errors
		if got := after.TotalAlloc - before.TotalAlloc; got > one+4*uint64(len(m.b)) {
			t.Errorf("%s, %s: %d bytes for %d", m.kind, m.name, got, len(m.b))
		}
	}
}

func fuzzDecoder(f *testing.F, kind string) {
	const most = 300_000 // what is larger only makes the fuzzer slow
	for _, m := range malformedBlobs(f) {
		if m.kind == kind && len(m.b) < most {
			f.Add(m.b)
		}
	}
	for _, b := range wellFormed(f)[kind] {
		if len(b) < most {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decoders[kind](b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) || c != nil {
				t.Fatalf("%v, %v", c, err)
			}
			return
		}
		// What was taken is a sketch like any other: it can be used, and its
		// encoding gives it back.
		switch s := c.(type) {
		case *Viewers:
			if n := s.Number(); n.Low > n.Value || n.Value > n.High {
				t.Fatalf("%+v", n)
			}
			if err := viewersOf(s.Key(), randomHashes(2000, 1)).Merge(s); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Sketch(); err != nil {
				t.Fatal(err)
			}
		case *CountMin:
			s.Add(1, 1)
			s.Estimate(1)
		case *TopK:
			checkTopK(t, s)
			s.Offer(Hash128{7, 7}, math.MaxUint32, []byte("more"))
			checkTopK(t, s)
		}
		again, err := decoders[kind](encode(t, c))
		if err != nil {
			t.Fatalf("its own encoding is refused: %v", err)
		}
		if !bytes.Equal(encode(t, again), encode(t, c)) {
			t.Fatal("its encoding gives another sketch")
		}
	})
}

func FuzzDecodeViewers(f *testing.F)  { fuzzDecoder(f, "viewers") }
func FuzzDecodeCountMin(f *testing.F) { fuzzDecoder(f, "count-min") }
func FuzzDecodeTopK(f *testing.F)     { fuzzDecoder(f, "top-k") }
