package windows

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tidemark/sketches"
)

// testPartition is one whose windows have few slots.
func testPartition(items int, m *Metrics) (*Partition, sketches.Hasher) {
	h := sketches.NewHasher(sketches.Key{7})
	return NewPartition(PartitionConfig{
		Hasher: h, Limits: Limits{Items: items, Values: 10}, Judge: keepAll{},
		Look: func(o int64) int64 { return o }, Memory: 1 << 40, History: true, Metrics: m,
	}), h
}

// addItems counts each of n items once more than the one before, all in minute 5.
func addItems(t *testing.T, p *Partition, h sketches.Hasher, n int) {
	t.Helper()
	var events []Event
	for i := range n {
		for range i%7 + 1 {
			name := fmt.Appendf(nil, "item-%d", i)
			events = append(events, Event{
				Offset: int64(len(events)), Time: Minute(5).UnixMilli(), Item: name, Type: viewType,
				ItemHash: h.Item(name), User: h.User(fmt.Appendf(nil, "u%d", len(events))), HasUser: true,
			})
		}
	}
	if err := p.Add(events, func(Pair) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedCountMinTableIsCaught(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		m := NewMetrics(prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
		p, h := testPartition(2000, m)
		addItems(t, p, h, 3000)
		w := p.open[5]
		st := w.types[0]
		if st.heap.Len() == 0 || st.overflow == 0 {
			t.Fatalf("3,000 items found 2,000 slots, and %d events and %d items overflowed", st.overflow, st.heap.Len())
		}
		tables := w.countMins()
		if damaged {
			clear(tables[st].Row(2))
		}
		m.check(&w.Content, tables)
		under := testutil.ToFloat64(m.under)
		if checks := testutil.ToFloat64(m.checks); checks != checkedPerTable {
			t.Errorf("%v items were checked, want %d", checks, checkedPerTable)
		}
		if table := tables[st]; damaged && (under == 0 || table != nil) {
			t.Errorf("a broken row: %v items found below their count, table still used: %v", under, table != nil)
		} else if !damaged && (under != 0 || table == nil) {
			t.Errorf("a sound table: %v items found below their count, table used: %v", under, table != nil)
		}
		_, heap, ok := w.seal(tables).Sketch(Series{Type: "view"})
		if !ok || heap.Len() == 0 {
			t.Errorf("sealed: sketch %v, %d items in the heap", ok, heap.Len())
		}
	}
}
