package clickhouse

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/sinks"
	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// engineSeals has real partitions count a stream and seal it, a few minutes each.
func engineSeals(t *testing.T, events []windowstest.Event, partitions int, limits windows.Limits, epoch uint64) (seals []*sinks.Seal) {
	t.Helper()
	h := sketches.NewHasher(sketches.Key{7})
	for n, records := range windowstest.Split(h, events, partitions, time.Now().UnixMilli()) {
		p := windows.NewPartition(windows.PartitionConfig{
			Number: n, Position: windows.Position{E: epoch + uint64(n)}, Hasher: h, Limits: limits, Dimensions: []string{"country"},
			Judge: &windowstest.Judge{Generation: 1 << 20, MaxLateness: -1},
			Look:  func(int64) int64 { return 0 }, Memory: 100_000, History: true,
		})
		cut := func(to windows.Pair) error {
			s := p.Cut(to)
			p.Stored()
			out := &sinks.Seal{Identity: s.Identity, From: s.From, R: s.R, Items: s.Items, Bytes: 1 << 20}
			for _, part := range s.Partials {
				out.Partials = append(out.Partials, part)
			}
			seals = append(seals, out)
			return nil
		}
		for some := range slices.Chunk(records, 1000) {
			if err := p.Add(some, cut); err != nil {
				t.Fatal(err)
			}
		}
		for to, ok := p.End(int64(len(events))); ok; to, ok = p.End(int64(len(events))) {
			if err := cut(to); err != nil {
				t.Fatal(err)
			}
		}
	}
	return seals
}

var engineStream = windowstest.Shape{
	Seed: 3, Events: 30_000, Items: 3000, Users: 5000, Start: time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC), Span: 3 * time.Hour,
	Late: 0.1, LateBy: 2 * time.Hour, Duplicates: 0.02, IDs: true, OddNames: true, Types: []string{"view", "like"},
	Dims: [][]string{{"DE", "AT", "CH", ""}},
}

// CH5 with seals of the engine whose windows have too few slots: what had none is
// in a row of the kind other, so sums are right.
func TestSumsOfTheEngine(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	events := engineStream.Stream()
	for _, seals := range slices.Collect(slices.Chunk(engineSeals(t, events, 3, windows.Limits{Items: 60, Values: 2}, 1), 5)) {
		if err := s.Deliver(t.Context(), seals); err != nil {
			t.Fatal(err)
		}
	}
	type sum struct {
		Hour time.Time `ch:"hour"`
		Type string    `ch:"type"`
	}
	want, wantDE, duplicates := make(map[sum]uint64), make(map[sum]uint64), uint64(0)
	seen := make(map[string]bool)
	for _, e := range events {
		if seen[e.ID] {
			duplicates++
			continue
		}
		seen[e.ID] = true
		k := sum{time.UnixMilli(e.Time).UTC().Truncate(time.Hour), e.Type}
		want[k]++
		if e.Dims[0] != "" {
			wantDE[k]++
		}
	}
	type row struct {
		sum
		Events uint64 `ch:"n"`
	}
	for dimension, want := range map[string]map[sum]uint64{"": want, "country": wantDE} {
		got := make(map[sum]uint64)
		for _, r := range query[row](t, w, "SELECT hour, type, sum(events) AS n FROM {{.}}.item_hours_exact WHERE dimension = '"+dimension+"' GROUP BY hour, type") {
			got[r.sum] = r.Events
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("dimension %q (-want +got):\n%s", dimension, diff)
		}
	}
	for _, c := range []struct{ what, sql string }{
		{"rows of the kind other", "SELECT count() FROM {{.}}.item_minutes_exact WHERE kind = 'other' AND dimension = ''"},
		{"rows of the rest of a dimension", "SELECT count() FROM {{.}}.item_minutes_exact WHERE rest = 'value'"},
		{"duplicates by item", "SELECT sum(events) FROM {{.}}.item_minutes_exact WHERE dimension = '(outcome)' AND value = 'duplicate'"},
	} {
		if one[uint64](t, w, c.sql) == 0 {
			t.Errorf("no %s", c.what)
		}
	}
	if n := one[uint64](t, w, "SELECT sum(records) FROM {{.}}.outcomes_exact WHERE outcome = 'duplicate'"); n != duplicates {
		t.Errorf("%d duplicates, want %d", n, duplicates)
	}
	if n := one[uint64](t, w, "SELECT sum(records) FROM {{.}}.outcomes_exact"); n != uint64(len(events)) {
		t.Errorf("outcomes sum to %d, want %d", n, len(events))
	}
}

// The highest items of each minute, by the view and by the plain definition.
func TestTopMinutes(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	events := engineStream.Stream()
	if err := s.Deliver(t.Context(), engineSeals(t, events, 3, windows.Limits{Items: 1 << 20, Values: 100}, 1)); err != nil {
		t.Fatal(err)
	}
	minute := engineStream.Start.Add(90 * time.Minute)
	counts, seen := make(map[string]uint64), make(map[string]bool)
	for _, e := range events {
		if !seen[e.ID] && e.Type == "view" && time.UnixMilli(e.Time).UTC().Truncate(time.Minute).Equal(minute) {
			counts[e.Item]++
		}
		seen[e.ID] = true
	}
	var want []string
	for _, item := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return int(counts[b]) - int(counts[a])
		}
		if a < b {
			return -1
		}
		return 1
	}) {
		if len(want) < 100 {
			want = append(want, fmt.Sprintf("%d %q", counts[item], item))
		}
	}
	var got []string
	type row struct {
		Item   string `ch:"item"`
		Events uint64 `ch:"events"`
	}
	for _, r := range query[row](t, w, "SELECT item, events FROM {{.}}.top_minutes WHERE minute = '"+minute.Format(time.DateTime)+"' AND type = 'view' AND dimension = '' ORDER BY place") {
		got = append(got, fmt.Sprintf("%d %q", r.Events, r.Item))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("top of a minute (-want +got):\n%s", diff)
	}
}

// The same history counted again in a new folder: both are there, neither in the
// place of the other, until one is dropped.
func TestSameHistoryTwice(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	events := engineStream.Stream()
	total := func() uint64 {
		return one[uint64](t, w, "SELECT sum(events) FROM {{.}}.item_minutes_exact WHERE dimension = ''")
	}
	if err := s.Deliver(t.Context(), engineSeals(t, events, 3, windows.Limits{Items: 100, Values: 2}, 1)); err != nil {
		t.Fatal(err)
	}
	once := total()
	if err := s.Deliver(t.Context(), engineSeals(t, events, 3, windows.Limits{Items: 100, Values: 2}, 1001)); err != nil {
		t.Fatal(err)
	}
	if n := total(); n != 2*once {
		t.Errorf("%d events after the second, want %d", n, 2*once)
	}
	for _, table := range []string{"item_minutes", "outcomes", "seals"} {
		w.exec(t, "DELETE FROM {{.}}."+table+" WHERE epoch IN (1, 2, 3)")
	}
	if n := total(); n != once {
		t.Errorf("%d events after the first was dropped, want %d", n, once)
	}
}
