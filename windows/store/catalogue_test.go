package store

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tidemark/windows"
)

// The catalogue against a map; and copies that later changes leave alone.
func TestCatalogueIsAMapThatCanBeShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c catalogue
		model := make(map[entry]bool)
		type shared struct {
			c    catalogue
			want []entry
		}
		var copies []shared
		all := func(c *catalogue, r windows.Range) (out []entry) {
			c.each(levelHour, r, func(e entry) bool {
				out = append(out, e)
				return true
			})
			return out
		}
		sorted := func() []entry {
			var out []entry
			for e := range model {
				out = append(out, e)
			}
			slices.Sort(out)
			return out
		}
		base := windows.Minute(rapid.IntRange(0, 70_000_000).Draw(t, "base"))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1: // a run, so that pages fill
				start := base + windows.Minute(rapid.IntRange(0, 3000).Draw(t, "start"))
				number := uint32(rapid.IntRange(1, 3).Draw(t, "part"))
				for i := range windows.Minute(rapid.SampledFrom([]int{1, 10, 3000}).Draw(t, "run")) {
					at := presence{start + i, presenceInfo((start + i + windows.Minute(number)) % 32)}
					c.add(levelHour, at, number)
					model[makeEntry(at.start, number, at.info)] = true
				}
			case 2:
				if have := sorted(); len(have) > 0 {
					from := rapid.IntRange(0, len(have)-1).Draw(t, "from")
					for _, e := range have[from:min(len(have), from+rapid.IntRange(1, 2500).Draw(t, "count"))] {
						c.remove(levelHour, e.start(), e.part())
						delete(model, e)
					}
				}
				c.remove(levelHour, base+99_999, 7) // never there
			case 3:
				floor := base + windows.Minute(rapid.IntRange(0, 4000).Draw(t, "floor"))
				c.cut(levelHour, floor)
				for e := range model {
					if e.start() < floor {
						delete(model, e)
					}
				}
			case 4:
				copies = append(copies, shared{c.share(), sorted()})
			}
		}
		everything := windows.Range{To: 1<<32 - 1}
		if got, want := all(&c, everything), sorted(); !slices.Equal(got, want) {
			t.Fatalf("%d entries, want %d", len(got), len(want))
		}
		for i := range copies {
			if got := all(&copies[i].c, everything); !slices.Equal(got, copies[i].want) {
				t.Fatalf("copy %d: %d entries, want %d", i, len(got), len(copies[i].want))
			}
		}
		r := windows.Range{From: base + windows.Minute(rapid.IntRange(0, 3000).Draw(t, "from"))}
		r.To = r.From + windows.Minute(rapid.IntRange(0, 3000).Draw(t, "length"))
		var want []entry
		for _, e := range sorted() {
			if r.Contains(e.start()) {
				want = append(want, e)
			}
		}
		if got := all(&c, r); !slices.Equal(got, want) || c.any(levelHour, r) != (len(want) > 0) {
			t.Fatalf("in %v: %v, want %v", r, got, want)
		}
	})
}

func TestPresenceSaysHowManyRowsThereAre(t *testing.T) {
	for _, rows := range []uint64{0, 1, 2, 4, 5, 16, 17, 1000, 1 << 28} {
		for _, overflowed := range []bool{false, true} {
			i := makePresenceInfo(rows, overflowed)
			if got := i.rows(); got < rows || got >= 4*rows && rows > 0 || i.overflowed() != overflowed || i.counted() != (rows > 0) || i >= 1<<presenceBits {
				t.Errorf("%d rows, %v: %d, says %d", rows, overflowed, i, got)
			}
		}
	}
}
