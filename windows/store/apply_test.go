package store

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

var allTime = windows.Stretch{Range: windows.Range{To: windows.MaxMinute}}

// stored reads everything that a snapshot has, by Scan.
func stored(tb testing.TB, n *Snapshot) *windowstest.Merged {
	tb.Helper()
	var m windowstest.Merged
	for _, s := range n.Series() {
		err := n.Scan(allTime, s, func(p windows.Part, item uint32, r windows.Row) error {
			name := ""
			if r.Kind == windows.Item {
				var err error
				if name, err = n.Name(item); err != nil {
					return err
				}
			}
			m.Add(p.Start, s, r.Kind, name, r)
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return &m
}

// sealedRows is what seals say, by their contents.
func sealedRows(seals []*windows.Seal) *windowstest.Merged {
	var m windowstest.Merged
	for _, s := range seals {
		for _, p := range s.Partials {
			m.AddContent(&p.Content)
		}
	}
	return &m
}

func snapshot(tb testing.TB, s *Store) *Snapshot {
	tb.Helper()
	n, err := s.Snapshot()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := n.Close(); err != nil {
			tb.Error(err)
		}
	})
	return n
}

// drawEvents draws the records of a partition: few minutes, items and users, so
// that everything meets, and now and then many users at once.
func drawEvents(t *rapid.T, offset int64) []windows.Event {
	n := rapid.IntRange(1, 25).Draw(t, "records")
	var events []windows.Event
	for range n {
		m := windows.Minute(rapid.IntRange(1000, 1000+rapid.SampledFrom([]int{1, 3, 3000}).Draw(t, "spread")).Draw(t, "minute"))
		typ := rapid.SampledFrom([]string{"view", "like", "Ж"}).Draw(t, "type")
		item := rapid.SampledFrom([]string{"a", "A", "b", "c", "d", "e", "f", "a\x00b", "\u202e", "item"}).Draw(t, "item")
		country := rapid.SampledFrom([]string{"DE", "AT", "FR", "IT"}).Draw(t, "country")
		users := rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 1, 15, 40, 1300}).Draw(t, "users")
		for range users {
			user := rapid.IntRange(-1, 3000).Draw(t, "user")
			e := recordOf(offset, m, typ, item, user, country)
			if users == 1300 { // drawing each would be slow
				e = recordOf(offset, m, typ, item, int(offset)%2000, country)
			}
			events = append(events, e)
			offset++
		}
	}
	return events
}

// Whatever is sealed is read back, by Scan and key by key, bit for bit: from
// several partitions, in several seals, with windows that overflow.
func TestWhatIsSealedIsReadBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		partitions := rapid.IntRange(1, 3).Draw(rt, "partitions")
		options := testOptions("store", partitions)
		options.FS = vfs.NewMem()
		s, err := Open(options)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.Close() }()
		begin(t, s)
		limits := windows.Limits{Items: rapid.SampledFrom([]int{3, 20, 1000}).Draw(rt, "items"), Values: rapid.IntRange(1, 5).Draw(rt, "values")}
		var seals []*windows.Seal
		for number := range partitions {
			src := newFeeder(number, feederConfig{limits: limits, dims: []string{"country"}})
			offset := int64(0)
			for range rapid.IntRange(1, 3).Draw(rt, "seals") {
				events := drawEvents(rt, offset)
				src.add(t, events)
				offset += int64(len(events))
				src.end(t, offset)
			}
			seals = append(seals, src.seals...)
		}
		for _, seal := range seals {
			if err := s.Apply(seal); err != nil {
				t.Fatal(err)
			}
		}
		check(rt, t, s, seals)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(options); err != nil {
			t.Fatal(err)
		}
		check(rt, t, s, seals)
	})
}

// check holds everything that a snapshot says against the seals.
func check(rt *rapid.T, t *testing.T, s *Store, seals []*windows.Seal) {
	n, err := s.Snapshot()
	if err != nil {
		rt.Fatal(err)
	}
	defer n.Close()
	want := sealedRows(seals)
	if diff := want.Diff(stored(t, n)); diff != "" {
		rt.Fatal(diff)
	}
	checkRows(rt, n, seals)
	checkRowsOf(rt, n)
	checkLists(rt, n)
	checkOutcomes(rt, n, seals)
	checkSketches(rt, n, seals)
}

// checkRows asks for each key on its own.
func checkRows(rt *rapid.T, n *Snapshot, seals []*windows.Seal) {
	for _, seal := range seals {
		for _, p := range seal.Partials {
			at := windows.Stretch{Range: windows.Range{From: p.Minute(), To: p.Minute() + 1}}
			series := p.Series()
			for i, r := range p.Each {
				id := uint32(0)
				if r.Kind == windows.Item {
					var ok bool
					var err error
					if id, ok, err = n.ID(string(r.Item)); err != nil || !ok {
						rt.Fatalf("item %q: %v, %v", r.Item, ok, err)
					}
				}
				found := false
				err := n.Rows(at, series[i], r.Kind, id, func(part windows.Part, row windows.Row) error {
					tokens := slices.Sorted(slices.Values(r.Tokens))
					found = found || row.Events == r.Events && row.Reached == r.Reached &&
						slices.Equal(row.Tokens, tokens) && slices.Equal(row.Registers, r.Registers) && part.Start == p.Minute()
					return nil
				})
				if err != nil || !found {
					rt.Fatalf("minute %d, %+v, kind %d, item %q: not found as it was sealed: %v", p.Minute(), series[i], r.Kind, r.Item, err)
				}
			}
		}
	}
	for _, absent := range []string{"zzz", "", "aa"} {
		if id, ok, err := n.ID(absent); ok || err != nil || id != 0 {
			rt.Fatalf("ID(%q) = %d, %v, %v", absent, id, ok, err)
		}
	}
	if err := n.Rows(allTime, windows.Series{Type: "never"}, windows.Site, 0, func(windows.Part, windows.Row) error { return errors.New("a row") }); err != nil {
		rt.Fatal(err)
	}
}

// checkRowsOf holds many items at once against each on its own.
func checkRowsOf(rt *rapid.T, n *Snapshot) {
	type found struct {
		p           windows.Part
		i           int
		events      uint64
		tokens, reg int
	}
	items := rapid.SliceOfDistinct(rapid.Uint32Range(firstItem, 14), func(x uint32) uint32 { return x }).Draw(rt, "items")
	slices.Sort(items)
	for _, s := range n.Series() {
		var want, got []found
		for i, item := range items {
			if err := n.Rows(allTime, s, windows.Item, item, func(p windows.Part, r windows.Row) error {
				want = append(want, found{p, i, r.Events, len(r.Tokens), len(r.Registers)})
				return nil
			}); err != nil {
				rt.Fatal(err)
			}
		}
		if err := n.RowsOf(allTime, s, items, func(i int, p windows.Part, r windows.Row) error {
			got = append(got, found{p, i, r.Events, len(r.Tokens), len(r.Registers)})
			return nil
		}); err != nil {
			rt.Fatal(err)
		}
		compare := func(a, b found) int {
			return cmp.Or(cmp.Compare(a.p.Start, b.p.Start), cmp.Compare(a.p.ID, b.p.ID), cmp.Compare(a.i, b.i))
		}
		slices.SortFunc(want, compare)
		if !slices.Equal(got, want) {
			rt.Fatalf("%+v, items %v: %v, want %v", s, items, got, want)
		}
	}
}

// checkLists holds the lists against scans.
func checkLists(rt *rapid.T, n *Snapshot) {
	for _, s := range n.Series() {
		type key struct {
			p    windows.Part
			item uint32
		}
		want := make(map[key][2]uint64)
		if err := n.Scan(allTime, s, func(p windows.Part, item uint32, r windows.Row) error {
			if r.Kind == windows.Item {
				want[key{p, item}] = [2]uint64{r.Events, r.Reached}
			}
			return nil
		}); err != nil {
			rt.Fatal(err)
		}
		if err := n.Lists(allTime, s, func(p windows.Part, l windows.TopList) error {
			for i, item := range l.Items {
				if want[key{p, item}] != [2]uint64{l.Events[i], l.Reached[i]} || i > 0 && l.Events[i-1] < l.Events[i] {
					return fmt.Errorf("item %d of part %v: %d, %d", item, p, l.Events[i], l.Reached[i])
				}
				delete(want, key{p, item})
			}
			return nil
		}); err != nil {
			rt.Fatal(err)
		}
		if len(want) > 0 {
			rt.Fatalf("%+v: not in the lists: %v", s, want)
		}
	}
}

func checkOutcomes(rt *rapid.T, n *Snapshot, seals []*windows.Seal) {
	var want, got []windows.OutcomeCount
	for _, s := range seals {
		for _, p := range s.Partials {
			want = book(want, p.Outcomes())
		}
	}
	if err := n.Outcomes(allTime, func(_ windows.Part, o windows.OutcomeCount) error {
		got = book(got, []windows.OutcomeCount{o})
		return nil
	}); err != nil {
		rt.Fatal(err)
	}
	if !slices.Equal(want, got) || !slices.Equal(want, n.store.Outcomes(testLog)) {
		rt.Fatalf("outcomes %v, of the log %v, want %v", got, n.store.Outcomes(testLog), want)
	}
}

func checkSketches(rt *rapid.T, n *Snapshot, seals []*windows.Seal) {
	want := 0
	for _, seal := range seals {
		for _, p := range seal.Partials {
			for _, s := range p.Series() {
				if s.Dimension != "" {
					continue
				}
				table, heap, ok := p.Sketch(s)
				if !ok {
					continue
				}
				want++
				encoded, err := table.AppendBinary(nil)
				if err != nil {
					rt.Fatal(err)
				}
				found := false
				at := windows.Stretch{Range: windows.Range{From: p.Minute(), To: p.Minute() + 1}}
				if err := n.Sketches(at, s, func(_ windows.Part, t *sketches.CountMin, h *sketches.TopK) error {
					again, err := t.AppendBinary(nil)
					found = found || string(again) == string(encoded) && slices.Equal(h.Sorted(), heap.Sorted())
					return err
				}); err != nil || !found {
					rt.Fatalf("table of %+v not found: %v", s, err)
				}
			}
		}
	}
	got := 0
	for _, s := range n.Series() {
		if s.Dimension != "" {
			continue
		}
		if err := n.Sketches(allTime, s, func(windows.Part, *sketches.CountMin, *sketches.TopK) error {
			got++
			return nil
		}); err != nil {
			rt.Fatal(err)
		}
	}
	if got != want {
		rt.Fatalf("%d tables, want %d", got, want)
	}
}

// A window large enough that its list is stored, and its tokens are in every form.
func TestLargeWindowIsReadBack(t *testing.T) {
	s := open(t, testOptions(t.TempDir(), 1))
	begin(t, s)
	src := newFeeder(0, feederConfig{})
	r := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(r, 1.2, 1, 20_000)
	var events []windows.Event
	for i := range 100_000 {
		events = append(events, recordOf(int64(i), 5_000_000, "view", fmt.Sprint("item", zipf.Uint64()), r.IntN(50_000)))
	}
	src.add(t, events)
	src.end(t, int64(len(events)))
	if err := s.Apply(src.seals[0]); err != nil {
		t.Fatal(err)
	}
	n := snapshot(t, s)
	if diff := sealedRows(src.seals).Diff(stored(t, n)); diff != "" {
		t.Fatal(diff)
	}
	lists := 0
	if err := n.Lists(allTime, windows.Series{Type: "view"}, func(_ windows.Part, l windows.TopList) error {
		lists++
		if len(l.Items) != topItems || l.MaxEvents == 0 || l.MaxEvents > l.Events[topItems-1] {
			t.Errorf("%d items, the last has %d, the others at most %d", len(l.Items), l.Events[len(l.Items)-1], l.MaxEvents)
		}
		return nil
	}); err != nil || lists != 1 {
		t.Fatal(lists, err)
	}
	// What is not listed has at most the bound; what is has its count.
	var list windows.TopList
	if err := n.Lists(allTime, windows.Series{Type: "view"}, func(_ windows.Part, l windows.TopList) error {
		list = windows.TopList{Items: slices.Clone(l.Items), Events: slices.Clone(l.Events), Reached: slices.Clone(l.Reached), MaxEvents: l.MaxEvents, MaxReached: l.MaxReached}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	highest := uint64(0)
	if err := n.Scan(allTime, windows.Series{Type: "view"}, func(_ windows.Part, item uint32, r windows.Row) error {
		if r.Kind != windows.Item {
			return nil
		}
		if i := slices.Index(list.Items, item); i >= 0 {
			if list.Events[i] != r.Events || list.Reached[i] != r.Reached {
				t.Errorf("item %d has %d events, listed %d", item, r.Events, list.Events[i])
			}
			return nil
		}
		highest = max(highest, r.Events)
		if r.Reached > list.MaxReached {
			t.Errorf("item %d reached %d, bound %d", item, r.Reached, list.MaxReached)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if highest != list.MaxEvents {
		t.Errorf("the bound is %d, the highest that is not listed has %d", list.MaxEvents, highest)
	}
}

// Four partitions seal at once; they share names, new and known.
func TestPartitionsApplyAtOnce(t *testing.T) {
	const partitions = 4
	s := open(t, testOptions(t.TempDir(), partitions))
	begin(t, s)
	var all []*windows.Seal
	sources := make([]*feeder, partitions)
	for p := range partitions {
		sources[p] = newFeeder(p, feederConfig{})
		r := rand.New(rand.NewPCG(uint64(p), 7))
		for seal := range 10 {
			var events []windows.Event
			for i := range 3000 {
				events = append(events, recordOf(int64(seal*3000+i), windows.Minute(100+seal), "view", fmt.Sprint("item", r.IntN(500*(seal+1))), r.IntN(100)))
			}
			sources[p].add(t, events)
			sources[p].end(t, int64(seal*3000+3000))
		}
		all = append(all, sources[p].seals...)
	}
	var wg sync.WaitGroup
	for _, src := range sources {
		wg.Go(func() {
			for _, seal := range src.seals {
				if err := s.Apply(seal); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := snapshot(t, s)
	if diff := sealedRows(all).Diff(stored(t, n)); diff != "" {
		t.Fatal(diff)
	}
	// Each name has one id, and each id one name.
	seen := make(map[uint32]bool)
	if err := n.Items("", func(id uint32, name string) bool {
		back, err := n.Name(id)
		if err != nil || back != name || seen[id] {
			t.Errorf("id %d: %q, %q, %v", id, name, back, err)
		}
		seen[id] = true
		return true
	}); err != nil || len(seen) == 0 {
		t.Fatal(len(seen), err)
	}
}
