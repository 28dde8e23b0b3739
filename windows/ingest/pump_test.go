package ingest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/journal"
)

func openJournal(t testing.TB, partitions int) *journal.Journal {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: t.TempDir(), Partitions: partitions, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// pumped reads all that is in the journal, in the order of partition and offset.
func pumped(t testing.TB, j *journal.Journal, from []int64, dimensions ...string) []event {
	t.Helper()
	if from == nil {
		from = make([]int64, j.Partitions())
	}
	r, err := j.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var events []event
	p := NewPump(PumpConfig{Reader: r, From: from, Hasher: hasher, Dimensions: dimensions, Submit: func(_ context.Context, partition int, b windows.Batch) error {
		for _, e := range b.Events {
			events = append(events, copied(e, partition))
		}
		b.Release()
		return nil
	}})
	if err := p.Run(t.Context(), j.Ends()); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if a.partition != b.partition {
			return a.partition - b.partition
		}
		return int(a.Offset - b.Offset)
	})
	return events
}

func TestPumpReadsFromAnyOffset(t *testing.T) {
	j := openJournal(t, 3)
	var records []journal.Record
	for i := range 3000 {
		s := stored{item: []byte{byte(i), byte(i >> 8), 1}, typ: []byte("view"), kid: hasher.KeyID(), user: uint64(i), hasUser: true}
		records = append(records, journal.Record{Partition: i % 3, Payload: s.append(nil)})
	}
	for part := range slices.Chunk(records, 70) {
		if err := j.Append(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range [][]int64{{0, 0, 0}, {10, 999, 500}, {1000, 1000, 999}, {1000, 1000, 1000}} {
		events := pumped(t, j, from)
		i := 0
		for p, o := range from {
			for ; o < 1000; o++ {
				e := events[i]
				if e.partition != p || e.Offset != o || e.User != uint64(3*int(o)+p) || e.Stamp != records[3*int(o)+p].Stamp || e.Time != e.Stamp {
					t.Fatalf("from %v: event %d of %d is %+v, want partition %d offset %d", from, i, len(events), e, p, o)
				}
				i++
			}
		}
		if i != len(events) {
			t.Errorf("from %v: %d events, want %d", from, len(events), i)
		}
	}
}

// fed is a reader of payloads; at their end it waits.
type fed struct {
	payloads [][]byte
	at       int64
}

func (f *fed) Next(ctx context.Context, b *journal.Batch) error {
	if f.at == int64(len(f.payloads)) {
		<-ctx.Done()
		return ctx.Err()
	}
	b.Records = append(b.Records[:0], journal.Record{Offset: f.at, Stamp: stamp, Payload: f.payloads[f.at]})
	f.at++
	return nil
}

func TestPumpedEvents(t *testing.T) {
	other := sketches.NewHasher(sketches.Key{9}).KeyID()
	whole := stored{
		time: 77, hasTime: true, kid: hasher.KeyID(), user: 1, id: 2, owner: 3, hasUser: true, hasID: true, hasOwner: true,
		item: []byte("a"), typ: []byte("like"), info: windows.Info{Title: []byte("T"), URL: []byte("U")}, hasWatched: true, botKnown: true,
		dims: []storedDim{{[]byte("gone"), []byte("x")}, {[]byte("country"), []byte("DE")}},
	}
	bare := stored{item: []byte("b"), typ: []byte("view")}
	old := stored{time: 7, hasTime: true, history: true, item: []byte("b"), typ: []byte("view")}
	foreign := stored{item: []byte("c"), typ: []byte("view"), kid: other, id: 5, hasID: true}
	tests := []struct {
		payload []byte
		want    event
	}{
		{whole.append(nil), event{
			Event: windows.Event{Stamp: stamp, Time: 77, ItemHash: hasher.Item([]byte("a")), User: 1, HasUser: true, ID: 2, HasID: true},
			item:  "a", typ: "like", title: "T", url: "U", dims: []string{"", "DE"},
		}},
		{bare.append(nil), event{Event: windows.Event{Stamp: stamp, Time: stamp, ItemHash: hasher.Item([]byte("b"))}, item: "b", typ: "view"}},
		{old.append(nil), event{Event: windows.Event{Stamp: stamp, Time: 7, History: true, ItemHash: hasher.Item([]byte("b"))}, item: "b", typ: "view"}},
		{foreign.append(nil), event{Event: windows.Event{Stamp: stamp, Outcome: windows.Malformed, Reason: "kid: unknown key"}}},
		{(&stored{reason: []byte(reasonJSON)}).append(nil), event{Event: windows.Event{Stamp: stamp, Outcome: windows.Malformed, Reason: reasonJSON}}},
		{[]byte("?"), event{Event: windows.Event{Stamp: stamp, Outcome: windows.Malformed, Reason: reasonStored}}},
	}
	f := &fed{}
	for _, tt := range tests {
		f.payloads = append(f.payloads, tt.payload)
	}
	p := NewPump(PumpConfig{Reader: f, From: []int64{0}, Hasher: hasher, Dimensions: []string{"device", "country"}, Submit: func(_ context.Context, partition int, b windows.Batch) error {
		for _, e := range b.Events {
			want := tests[e.Offset].want
			want.Offset = e.Offset
			want.Hash = journal.Record{Offset: e.Offset, Stamp: stamp, Payload: tests[e.Offset].payload}.Hash()
			if d := cmp.Diff(want, copied(e, partition), cmp.AllowUnexported(event{})); d != "" {
				t.Error(d)
			}
		}
		b.Release()
		return nil
	}})
	if err := p.Run(t.Context(), []int64{int64(len(tests))}); err != nil {
		t.Fatal(err)
	}
	f.payloads = append(f.payloads, []byte("\x02\x00"))
	if err := p.Run(t.Context(), nil); !errors.Is(err, ErrVersion) {
		t.Errorf("a record of a later build: %v", err)
	}
}

// A pump with nothing to read, or whose batches nobody releases, waits; and ends.
func TestPumpWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := stored{item: []byte("a"), typ: []byte("view")}
		f := &fed{payloads: slices.Repeat([][]byte{s.append(nil)}, 2*chunks)}
		var held []func()
		p := NewPump(PumpConfig{Reader: f, From: []int64{0}, Hasher: hasher, Submit: func(_ context.Context, _ int, b windows.Batch) error {
			held = append(held, b.Release)
			return nil
		}})
		done := make(chan error)
		go func() { done <- p.Run(ctx, nil) }()
		synctest.Wait()
		if len(held) != chunks {
			t.Errorf("%d batches are under way, want %d", len(held), chunks)
		}
		first := held
		held = nil
		for _, release := range first {
			release()
		}
		synctest.Wait()
		if len(held) != chunks || f.at != int64(len(f.payloads)) {
			t.Errorf("%d batches, %d of %d records", len(held), f.at, len(f.payloads))
		}
		for _, release := range held {
			release()
		}
		synctest.Wait() // for the journal now
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}
