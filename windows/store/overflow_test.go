package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tidemark/sketches"
	"tidemark/windows"
)

// What no slot was left for is rolled up too: the count of every item lies within
// what rows and tables say, and where they say that they have all of it, it is
// exact; no item outside a heap has more than the heap's least.
func TestOverflowIsRolledUp(t *testing.T) {
	const partitions, items = 2, 40
	type key struct {
		minute    windows.Minute
		typ, item string
	}
	truth := make(map[key]uint64)
	r := rand.New(rand.NewPCG(4, 4))
	o := memOptions(partitions)
	s := open(t, o)
	begin(t, s)
	feeders := make([]*feeder, partitions)
	offsets := make([]int64, partitions)
	for p := range feeders {
		feeders[p] = newFeeder(p, feederConfig{limits: windows.Limits{Items: 12, Values: 4}, dims: []string{"country"}})
	}
	for round := range 16 {
		p := round % partitions
		var events []windows.Event
		for range 120 {
			// Some minutes have few items, and do not overflow.
			m := worldFirst + windows.Minute(r.IntN(90)/6*6)
			n := items
			if m%4 == 0 {
				n = 4
			}
			typ, item := []string{"view", "like"}[r.IntN(2)], fmt.Sprint("item", r.IntN(n))
			events = append(events, recordOf(offsets[p], m, typ, item, r.IntN(50), []string{"DE", "AT"}[r.IntN(2)]))
			offsets[p]++
			truth[key{m, typ, item}]++
		}
		feeders[p].add(t, events)
		feeders[p].end(t, offsets[p])
		if err := s.Apply(feeders[p].seals[len(feeders[p].seals)-1]); err != nil {
			t.Fatal(err)
		}
		if round%5 == 4 {
			if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := snapshot(t, s)
	exact, bounded := 0, 0
	for _, r := range []windows.Range{{From: worldFirst, To: worldFirst + 120}, {From: worldFirst, To: worldFirst + 60}, {From: worldFirst + 15, To: worldFirst + 45}, {From: worldFirst + 6, To: worldFirst + 7}} {
		for _, typ := range []string{"view", "like"} {
			for i := range items {
				item := fmt.Sprint("item", i)
				var want uint64
				for k, count := range truth {
					if r.Contains(k.minute) && k.typ == typ && k.item == item {
						want += count
					}
				}
				low, high := itemBounds(t, n, r, windows.Series{Type: typ}, item)
				if want < low || want > high {
					t.Errorf("%v %s %s: %d events, said to be %d to %d", r, typ, item, want, low, high)
				}
				if low == high {
					exact++
				} else {
					bounded++
				}
			}
		}
	}
	if exact == 0 || bounded == 0 {
		t.Errorf("%d counts are exact, %d bounded", exact, bounded)
	}
	if short := shortRows(t, n); short == 0 {
		t.Error("no row is short")
	}
}

// itemBounds adds up what the parts of a range say of an item.
func itemBounds(t *testing.T, n *Snapshot, r windows.Range, s windows.Series, item string) (low, high uint64) {
	t.Helper()
	id, stored, err := n.ID(item)
	if err != nil {
		t.Fatal(err)
	}
	steps, _ := n.Plan([]windows.Minute{r.From, r.To})
	for _, at := range steps {
		rows := make(map[windows.Part]windows.Row)
		if stored {
			if err := n.Rows(at, s, windows.Item, id, func(p windows.Part, row windows.Row) error {
				rows[p] = row
				low += row.Events
				high += row.Events
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		overflow := make(map[windows.Part]uint64)
		if err := n.Rows(at, s, windows.Overflow, 0, func(p windows.Part, row windows.Row) error {
			overflow[p] = row.Events
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := n.Sketches(at, s, func(p windows.Part, table *sketches.CountMin, _ *sketches.TopK) error {
			row, has := rows[p]
			if has && !row.Short {
				return nil
			}
			hash := testHasher.Item([]byte(item))
			high += min(overflow[p], uint64(table.Estimate(windows.SketchKey(testHasher, s, hash))))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return low, high
}

func shortRows(t *testing.T, n *Snapshot) int {
	t.Helper()
	short := 0
	for l := levelQuarter; l < levelCount; l++ {
		for _, s := range n.Series() {
			if err := n.Scan(windows.Stretch{Level: l, Range: allTime.Range}, s, func(_ windows.Part, _ uint32, row windows.Row) error {
				if row.Short {
					short++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return short
}

// Heaps that are merged still say how much an item has at most that is not in them.
func TestMergedHeapBoundsWhatIsNotInIt(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		const k = 4
		truth := make(map[string]uint64)
		merging := mergedTables{typ: 1, key: testHasher.KeyID()}
		for range 1 + r.IntN(4) {
			table, heap := sketches.NewCountMin(testHasher.KeyID()), sketches.NewTopK(testHasher.KeyID(), k)
			for range r.IntN(60) {
				item := fmt.Sprint(r.IntN(1 + r.IntN(12)))
				h := testHasher.Item([]byte(item))
				heap.Offer(h, table.Add(h.Lo, 1), []byte(item))
				truth[item]++
			}
			if err := merging.add(typeTables{table: table, heap: heap}); err != nil {
				t.Fatal(err)
			}
		}
		merged := merging.finish()
		in := make(map[string]uint32)
		for _, e := range merged.heap.Sorted() {
			in[e.Name] = e.Count
		}
		for item, n := range truth {
			if count, ok := in[item]; ok && uint64(count) < n {
				t.Fatalf("%s: the heap has %d, it was %d", item, count, n)
			} else if !ok && n > uint64(merged.heap.Min()) {
				t.Fatalf("%s is not in the heap, and has %d; the least there is %d", item, n, merged.heap.Min())
			}
			if est := merged.table.Estimate(testHasher.Item([]byte(item)).Lo); uint64(est) < n {
				t.Fatalf("%s: the table says %d, it was %d", item, est, n)
			}
		}
	}
}
