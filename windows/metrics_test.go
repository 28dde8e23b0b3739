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
		series := Series{Type: "view"}
		if damaged { // a table that has lost what was counted, as a bad row would
			p.open[5].series[0].countMin.Reset()
		}
		seal := p.Cut(Pair{F: 6, S: 1})
		table, heap, ok := seal.Partials[0].Sketch(series)
		if !ok || heap.Len() == 0 {
			t.Fatalf("3,000 items found 2,000 slots: sketch %v, %d items in the heap", ok, heap.Len())
		}
		under := testutil.ToFloat64(m.under)
		if checks := testutil.ToFloat64(m.checks); checks != checkedPerTable {
			t.Errorf("%v items were checked, want %d", checks, checkedPerTable)
		}
		if damaged && (under == 0 || table != nil) {
			t.Errorf("a damaged table: %v items found below their count, table still used: %v", under, table != nil)
		}
		if !damaged && (under != 0 || table == nil) {
			t.Errorf("a sound table: %v items found below their count, table used: %v", under, table != nil)
		}
	}
}
