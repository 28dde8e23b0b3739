package sketches

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func itemName(i uint64) []byte { return strconv.AppendUint([]byte("item-"), i, 10) }

// checkTopK looks inside: no item twice, each found, the heap in order, Min true.
func checkTopK(t rapid.TB, top *TopK) {
	seen := make(map[string]bool)
	for i := range top.entries {
		e := &top.entries[i]
		id := fmt.Sprint(e.hash, string(e.name))
		if seen[id] {
			t.Fatalf("%s is there twice", id)
		}
		seen[id] = true
		if at := top.find(e.hash, e.name); at != int32(i) {
			t.Fatalf("%s stands at %d and is found at %d", id, i, at)
		}
	}
	held := make(map[int32]bool)
	for i, x := range top.heap {
		held[x.entry] = true
		if x.key > top.entries[x.entry].count {
			t.Fatalf("a key of %d for a count of %d", x.key, top.entries[x.entry].count)
		}
		if i > 0 && top.heap[(i-1)/2].key > x.key {
			t.Fatalf("place %d is less than its parent", i)
		}
	}
	if len(held) != len(top.entries) || len(top.entries) > top.K() {
		t.Fatalf("%d entries, %d in the heap, at most %d", len(top.entries), len(held), top.K())
	}
	least := uint32(0)
	if sorted := top.Sorted(); len(sorted) == top.K() {
		least = sorted[len(sorted)-1].Count
	}
	if top.Min() != least {
		t.Fatalf("Min is %d, the least is %d", top.Min(), least)
	}
}

// TestTopKOverTheOracle offers rising counts of items whose hashes meet, some of
// them equal, and holds the list against all that was offered (S6).
func TestTopKOverTheOracle(t *testing.T) {
	type item struct {
		hash Hash128
		name string
	}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom([]int{1, 2, 3, 10, 40}).Draw(t, "k")
		top, last := NewTopK(1, k), make(map[item]uint32)
		t.Repeat(map[string]func(*rapid.T){
			"offer": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "offers") {
					// Many homes are shared in the index, whose size is a small power of two.
					h := Hash128{Lo: 64 * rapid.Uint64Range(0, 5).Draw(t, "lo"), Hi: rapid.Uint64Range(0, 3).Draw(t, "hi")}
					it := item{h, rapid.SampledFrom([]string{"", "a", "b", "ab"}).Draw(t, "name")}
					last[it] += uint32(rapid.IntRange(0, 9).Draw(t, "more"))
					name := []byte(it.name)
					top.Offer(h, last[it], name)
					for i := range name {
						name[i] = '!' // the list has a copy
					}
				}
			},
			"lower": func(*rapid.T) { // changes nothing
				for _, e := range top.Sorted() {
					top.Offer(e.Hash, e.Count/2, []byte(e.Name))
				}
			},
			"reset": func(*rapid.T) {
				top.Reset()
				clear(last)
			},
			"": func(t *rapid.T) {
				checkTopK(t, top)
				sorted := top.Sorted()
				if !slices.IsSortedFunc(sorted, compareEntries) || len(sorted) != min(k, len(last)) || top.Len() != len(sorted) {
					t.Fatalf("%d items of %d offered", len(sorted), len(last))
				}
				inside := make(map[item]bool)
				for _, e := range sorted {
					it := item{e.Hash, e.Name}
					inside[it] = true
					if e.Count != last[it] {
						t.Fatalf("%v has %d, want %d", it, e.Count, last[it])
					}
				}
				for it, count := range last {
					if !inside[it] && count > top.Min() {
						t.Fatalf("%v with %d is outside, and the least inside is %d", it, count, top.Min())
					}
				}
			},
		})
	})
}

func TestClonesLeadTheirOwnLives(t *testing.T) {
	top, table := smallTopK(), smallCountMin()
	before, cells := top.Sorted(), *table
	top2, table2 := top.Clone(), table.Clone()
	if !slices.Equal(top2.Sorted(), before) || *table2 != cells {
		t.Fatal("not a copy")
	}
	for i := range uint32(5) {
		top2.Offer(Hash128{Lo: uint64(i)}, 5000+i, []byte("new"))
		table2.Add(uint64(i), 9)
	}
	checkTopK(t, top2)
	checkTopK(t, top)
	if !slices.Equal(top.Sorted(), before) || *table != cells {
		t.Error("the original changed")
	}
}

func TestSortedBreaksTiesByName(t *testing.T) {
	top := NewTopK(1, 10)
	for i, name := range []string{"b", "B", "é", "a", "", "ab", "c"} {
		top.Offer(Hash128{Lo: uint64(i)}, 5, []byte(name))
	}
	top.Offer(Hash128{Lo: 99}, 6, []byte("z"))
	var got []string
	for _, e := range top.Sorted() {
		got = append(got, e.Name)
	}
	if want := []string{"z", "", "B", "a", "ab", "b", "c", "é"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTopKIsExactWithExactCounts: then it is the ranking, but for ties at its end.
func TestTopKIsExactWithExactCounts(t *testing.T) {
	hashes, events := zipfStream(300_000, 50_000, 1.1, 2)
	counts := make([]uint32, len(hashes))
	top := NewTopK(testHasher.KeyID(), 1000)
	for _, item := range events {
		counts[item]++
		top.Offer(hashes[item], counts[item], itemName(item))
	}
	checkTopK(t, top)
	slices.SortFunc(counts, func(a, b uint32) int { return int(b) - int(a) })
	for i, e := range top.Sorted() {
		if e.Count != counts[i] {
			t.Fatalf("place %d has %d, want %d", i, e.Count, counts[i])
		}
	}
}

// TestTopKRecall feeds the list from a Count-Min table of more items than a row
// has counters, as windows without a slot to spare do.
func TestTopKRecall(t *testing.T) {
	hashes, events := zipfStream(1_500_000, 300_000, 1.05, 3)
	counts := make([]uint32, len(hashes))
	table, top := NewCountMin(testHasher.KeyID()), NewTopK(testHasher.KeyID(), 1000)
	for _, item := range events {
		counts[item]++
		if n := table.Add(hashes[item].Lo, 1); n > top.Min() {
			top.Offer(hashes[item], n, itemName(item))
		}
	}
	checkTopK(t, top)
	listed := make(map[string]uint32)
	for _, e := range top.Sorted() {
		listed[e.Name] = e.Count
	}
	order := make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(counts[b]) - int(counts[a]) })
	for _, k := range []int{10, 100, 1000} {
		found := 0
		for _, item := range order[:k] {
			count, ok := listed[string(itemName(uint64(item)))]
			if !ok {
				continue
			}
			found++
			if count < counts[item] || uint64(count-counts[item]) > table.Error() {
				t.Errorf("item %d: %d for a count of %d, off by more than %d", item, count, counts[item], table.Error())
			}
		}
		recall := float64(found) / float64(k)
		t.Logf("recall of the first %d: %.3f", k, recall)
		if recall < 0.99 {
			t.Errorf("recall of the first %d is %.3f", k, recall)
		}
	}
}

func TestWarmTopKAllocatesNothing(t *testing.T) {
	top := NewTopK(1, 100)
	names := make([][]byte, 500)
	for i := range names {
		names[i] = itemName(uint64(i))
	}
	use := func() {
		top.Reset()
		for i, name := range names {
			top.Offer(testHasher.Item(name), uint32(i), name)
		}
	}
	use()
	if n := testing.AllocsPerRun(10, use); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if top.Len() != 100 || top.Key() != 1 {
		t.Errorf("%d items of key %s", top.Len(), top.Key())
	}
}

func TestTopKOfNoSensibleSize(t *testing.T) {
	for _, k := range []int{-1, 0, MaxK + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a TopK of %d", k)
				}
			}()
			NewTopK(1, k)
		}()
	}
}
