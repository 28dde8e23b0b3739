package sketches

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// plainCountMin is the table without conservative update, by its definition, and
// the exact counts: what a CountMin lies between.
type plainCountMin struct {
	rows   [Rows]map[uint16]uint64
	counts map[uint64]uint64
	total  uint64
}

func newPlain() *plainCountMin {
	p := &plainCountMin{counts: make(map[uint64]uint64)}
	for r := range p.rows {
		p.rows[r] = make(map[uint16]uint64)
	}
	return p
}

func (p *plainCountMin) add(h uint64, n uint32) {
	p.counts[h] += uint64(n)
	p.total += uint64(n)
	for r := range p.rows {
		p.rows[r][uint16(h>>(16*r))] += uint64(n)
	}
}

func (p *plainCountMin) estimate(h uint64) uint64 {
	least := uint64(math.MaxUint64)
	for r := range p.rows {
		least = min(least, p.rows[r][uint16(h>>(16*r))])
	}
	return least
}

// drawMeeting draws hashes that meet in one row or another all the time.
func drawMeeting(t *rapid.T) uint64 {
	var h uint64
	for range Rows {
		h = h<<16 | rapid.Uint64Range(0, 3).Draw(t, "index")
	}
	return h
}

// compare holds S4 and S5 for everything that was added, and what was not.
func (p *plainCountMin) compare(t *rapid.T, c *CountMin) {
	if c.Total() != p.total {
		t.Fatalf("total %d, want %d", c.Total(), p.total)
	}
	for _, h := range append(hashesOf(p.counts), drawMeeting(t)) {
		got := uint64(c.Estimate(h))
		if low := min(p.counts[h], math.MaxUint32); got < low {
			t.Fatalf("hash %#x: %d, below its count of %d", h, got, low)
		}
		if high := min(p.estimate(h), math.MaxUint32); got > high {
			t.Fatalf("hash %#x: %d, above the plain table's %d", h, got, high)
		}
	}
	for r := range Rows {
		var sum uint64
		for _, n := range c.Row(r) {
			sum += uint64(n)
		}
		if sum > c.Total() {
			t.Fatalf("row %d sums to %d of a total of %d", r, sum, c.Total())
		}
	}
}

func hashesOf(counts map[uint64]uint64) []uint64 {
	var out []uint64
	for h := range counts {
		out = append(out, h)
	}
	return out
}

// TestCountMinIsBetweenTheCountAndThePlainTable, alone and merged (S4, S5, S7).
func TestCountMinIsBetweenTheCountAndThePlainTable(t *testing.T) {
	tables := [3]*CountMin{NewCountMin(1), NewCountMin(1), NewCountMin(1)}
	rapid.Check(t, func(t *rapid.T) {
		plain, sum := [2]*plainCountMin{newPlain(), newPlain()}, newPlain()
		for _, c := range tables {
			c.Reset()
		}
		large := rapid.Bool().Draw(t, "large")
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			i, h, n := rapid.IntRange(0, 1).Draw(t, "table"), drawMeeting(t), uint32(1)
			if large {
				n = rapid.Uint32().Draw(t, "n")
			}
			if got, want := tables[i].Add(h, n), tables[i].Estimate(h); got != want {
				t.Fatalf("Add returns %d, Estimate %d", got, want)
			}
			plain[i].add(h, n)
			sum.add(h, n)
		}
		plain[0].compare(t, tables[0])
		plain[1].compare(t, tables[1])
		for _, c := range tables[:2] {
			if err := tables[2].Merge(c); err != nil {
				t.Fatal(err)
			}
		}
		sum.compare(t, tables[2])
		plain[0].compare(t, tables[0])
		plain[1].compare(t, tables[1])
	})
}

// TestUpdateIsConservative: an item raises only the counters that its own estimate
// needs, where the plain update raises those of its neighbours, too.
func TestUpdateIsConservative(t *testing.T) {
	const often, seldom = 0, 1<<16 | 1<<32 | 1<<48 // meet in row 0
	c := NewCountMin(1)
	for range 5 {
		c.Add(often, 1)
	}
	for range 3 {
		c.Add(seldom, 1)
	}
	if got := c.Row(0)[0]; got != 5 {
		t.Errorf("the counter of both is %d, want 5", got)
	}
	if a, b := c.Estimate(often), c.Estimate(seldom); a != 5 || b != 3 {
		t.Errorf("%d and %d, want 5 and 3", a, b)
	}
}

func TestCountMinSaturates(t *testing.T) {
	c := NewCountMin(1)
	c.Add(5, math.MaxUint32-1)
	if got := c.Add(5, 1); got != math.MaxUint32 {
		t.Errorf("%d", got)
	}
	if got := c.Add(5, 1000); got != math.MaxUint32 {
		t.Errorf("%d after more", got)
	}
	if err := c.Merge(c); err != nil || c.Estimate(5) != math.MaxUint32 || c.Total() != 2*(math.MaxUint32+1000) {
		t.Errorf("doubled: %d of %d, %v", c.Estimate(5), c.Total(), err)
	}
}

func TestCountMinOfTwoKeys(t *testing.T) {
	a, b := NewCountMin(1), NewCountMin(2)
	a.Add(1, 1)
	b.Add(1, 1)
	if err := a.Merge(b); !errors.Is(err, ErrKey) || a.Estimate(1) != 1 || a.Total() != 1 {
		t.Errorf("%v, estimate %d of %d", err, a.Estimate(1), a.Total())
	}
	if a.Key() != 1 {
		t.Errorf("key %s", a.Key())
	}
}

func TestTouchChangesNothing(t *testing.T) {
	c := NewCountMin(1)
	c.Add(1<<48|2<<32|3<<16|4, 7)
	if got := c.Touch(1<<48 | 2<<32 | 3<<16 | 4); got != 7 {
		t.Errorf("%d", got)
	}
	if c.Total() != 7 || c.Touch(0) != 0 {
		t.Error("Touch counts")
	}
}

// zipfStream returns n events over so many items: their hashes, by item, and the
// item of each event.
func zipfStream(n int, items uint64, s float64, seed uint64) (hashes []Hash128, events []uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	zipf := rand.NewZipf(rng, s, 1, items-1)
	for i := range items {
		hashes = append(hashes, testHasher.Item(itemName(i)))
	}
	for range n {
		events = append(events, zipf.Uint64())
	}
	return hashes, events
}

// TestCountMinError asks every item of a stream, those of the tail too (S4). It
// also breaks a row, to see that this would be noticed.
func TestCountMinError(t *testing.T) {
	const parts = 4
	hashes, events := zipfStream(1_000_000, 200_000, 1.1, 1)
	counts := make([]uint32, len(hashes))
	sum := NewCountMin(testHasher.KeyID())
	for part := range parts { // the bound holds of tables added
		c := NewCountMin(testHasher.KeyID())
		for _, item := range events[part*len(events)/parts : (part+1)*len(events)/parts] {
			c.Add(hashes[item].Lo, 1)
			counts[item]++
		}
		if err := sum.Merge(c); err != nil {
			t.Fatal(err)
		}
	}
	if want := uint64(math.Ceil(math.E / 65536 * 1_000_000)); sum.Error() != want {
		t.Errorf("Error() is %d, want %d", sum.Error(), want)
	}
	check := func() (below, above int) {
		for i, h := range hashes {
			switch got := sum.Estimate(h.Lo); {
			case got < counts[i]:
				below++
			case uint64(got-counts[i]) > sum.Error():
				above++
			}
		}
		return below, above
	}
	below, above := check()
	if share := float64(above) / float64(len(hashes)); below > 0 || share > math.Exp(-Rows) {
		t.Errorf("%d estimates below the count, %.2f %% above it by more than %d", below, 100*share, sum.Error())
	}
	clear(sum.Row(2))
	if below, _ := check(); below < len(hashes)/10 {
		t.Errorf("with an empty row only %d estimates are below the count", below)
	}
}
