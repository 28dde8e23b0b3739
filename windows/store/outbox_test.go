package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"tidemark/windows"
)

// text returns all that a seal says, whichever way it is kept.
func (w *Waiting) text(tb testing.TB) []byte {
	tb.Helper()
	partials := make([]outboxPartial, len(w.Partials))
	for i, p := range w.Partials {
		partials[i] = p
	}
	return textOf(tb, w.Items, partials)
}

func textOf(tb testing.TB, items []windows.ItemInfo, partials []outboxPartial) (text []byte) {
	tb.Helper()
	w := waitingWriter{emit: func(piece []byte) error {
		text = append(text, piece...)
		return nil
	}}
	if err := w.write(items, partials); err != nil {
		tb.Fatal(err)
	}
	return text
}

func sealText(tb testing.TB, s *windows.Seal) []byte {
	tb.Helper()
	partials := make([]outboxPartial, len(s.Partials))
	for i, p := range s.Partials {
		partials[i] = p
	}
	return textOf(tb, s.Items, partials)
}

// checkWaiting holds what waits for a sink against the seals that should.
func checkWaiting(tb testing.TB, s *Store, sink string, want []*windows.Seal) {
	tb.Helper()
	got, err := s.Oldest(sink, math.MaxInt)
	if err != nil {
		tb.Fatal(err)
	}
	byPartition := make(map[int][]*windows.Seal)
	for _, w := range want {
		byPartition[w.Partition] = append(byPartition[w.Partition], w)
	}
	for i, g := range got {
		next := byPartition[g.Partition]
		if len(next) == 0 {
			tb.Fatalf("%s: the seal of partition %d to %v does not wait", sink, g.Partition, g.To)
		}
		w := next[0]
		byPartition[g.Partition] = next[1:]
		if g.Identity != w.Identity || g.From != w.From || g.R != w.R || g.Settings != "as it was" {
			tb.Errorf("%s: %+v from %v, R %d, settings %q, want %+v from %v, R %d", sink, g.Identity, g.From, g.R, g.Settings, w.Identity, w.From, w.R)
		}
		if !bytes.Equal(g.text(tb), sealText(tb, w)) {
			tb.Errorf("%s: the seal of partition %d to %v comes out as another", sink, g.Partition, g.To)
		}
		for _, o := range byPartition {
			if len(o) > 0 && i+1 < len(got) && o[0].To.F < g.To.F && o[0].From.F < g.From.F {
				tb.Errorf("%s: %v comes before %v of partition %d", sink, g.To, o[0].To, o[0].Partition)
			}
		}
	}
	for p, left := range byPartition {
		if len(left) > 0 {
			tb.Errorf("%s: %d seals of partition %d are missing, the first to %v", sink, len(left), p, left[0].To)
		}
	}
	if b := s.Backlog(sink); b.Seals != len(want) || (b.Seals > 0) != (b.Bytes > 0) {
		tb.Errorf("%s: backlog %+v, want %d seals", sink, b, len(want))
	}
}

// ST8: whatever is applied, taken and marked, by whichever of several sinks, closed
// and opened, or cut off: what waits is what each does not have.
func TestOutbox(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 8))
		partitions := 1 + r.IntN(3)
		fs := vfs.NewCrashableMem()
		o := testOptions("store", partitions)
		o.FS = fs
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		begin(t, s)
		feeders, offsets := make([]*feeder, partitions), make([]int64, partitions)
		for p := range feeders {
			feeders[p] = newFeeder(p, feederConfig{dims: []string{"country"}, limits: windows.Limits{Items: 30, Values: 2}})
		}
		waiting := make(map[string][]*windows.Seal)
		for range 60 {
			switch r.IntN(8) {
			default:
				p := r.IntN(partitions)
				var events []windows.Event
				for range 1 + r.IntN(200) {
					event := recordOf(offsets[p], windows.Minute(100+r.IntN(3)), "view", fmt.Sprint("item", r.IntN(50)), r.IntN(3000), []string{"DE", "AT", "FR"}[r.IntN(3)])
					event.Info = &windows.Info{Title: fmt.Appendf(nil, "title %d", r.IntN(3))}
					events = append(events, event)
					offsets[p]++
				}
				feeders[p].add(t, events)
				feeders[p].end(t, offsets[p])
				for _, seal := range feeders[p].seals {
					if err := s.Apply(seal); err != nil {
						t.Fatal(err)
					}
					for sink := range waiting {
						waiting[sink] = append(waiting[sink], seal)
					}
				}
				feeders[p].seals = nil
			case 0:
				sink := []string{"a", "b"}[r.IntN(2)]
				if _, ok := waiting[sink]; !ok {
					// What waits for another is there for the new one too.
					for _, w := range waiting {
						waiting[sink] = slices.Clone(w)
					}
					if waiting[sink] == nil {
						waiting[sink] = []*windows.Seal{}
					}
				}
				if err := s.Subscribe(sink); err != nil {
					t.Fatal(err)
				}
				if have, err := s.Oldest(sink, math.MaxInt); err == nil && len(waiting) == 2 {
					waiting[sink] = seals(waiting, have)
				}
			case 1, 2:
				for sink, want := range waiting {
					some, err := s.Oldest(sink, r.IntN(20_000))
					if err != nil {
						t.Fatal(err)
					}
					var ids []windows.Identity
					for _, w := range some {
						ids = append(ids, w.Identity)
					}
					if len(want) > 0 != (len(some) > 0) {
						t.Fatalf("%d seals of %d", len(some), len(want))
					}
					if err := s.Done(sink, ids); err != nil {
						t.Fatal(err)
					}
					waiting[sink] = slices.DeleteFunc(slices.Clone(want), func(s *windows.Seal) bool { return slices.Contains(ids, s.Identity) })
				}
			case 3:
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if s, err = Open(o); err != nil {
					t.Fatal(err)
				}
			case 4:
				if r.IntN(4) > 0 {
					break
				}
				if err := s.Unsubscribe("b"); err != nil {
					t.Fatal(err)
				}
				delete(waiting, "b")
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(waiting)), s.Sinks()); diff != "" && len(waiting) > 0 {
				t.Fatalf("seed %d: sinks (-want +got):\n%s", seed, diff)
			}
			for sink, want := range waiting {
				checkWaiting(t, s, sink, want)
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		for sink, want := range waiting {
			// Nothing is left of what every sink has.
			var ids []windows.Identity
			for _, w := range want {
				ids = append(ids, w.Identity)
			}
			if err := s.Done(sink, ids); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.eachRow(prefixOutbox, func(key, _ []byte) error { return fmt.Errorf("%x is left", key) }); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// seals returns those of the seals in any list that are among some that wait.
func seals(of map[string][]*windows.Seal, some []*Waiting) []*windows.Seal {
	var out []*windows.Seal
	for _, w := range some {
		for _, list := range of {
			if i := slices.IndexFunc(list, func(s *windows.Seal) bool { return s.Identity == w.Identity }); i >= 0 {
				out = append(out, list[i])
				break
			}
		}
	}
	return out
}

// A large seal is in pieces, and comes back whole. What does not wait can't be marked.
func TestOutboxOfALargeSeal(t *testing.T) {
	o := testOptions("store", 1)
	o.FS = vfs.NewMem()
	s := open(t, o)
	begin(t, s)
	if err := s.Subscribe("a"); err != nil {
		t.Fatal(err)
	}
	f := newFeeder(0, feederConfig{})
	var events []windows.Event
	for i := range int64(120_000) {
		events = append(events, recordOf(i, windows.Minute(100+i%2), "view", fmt.Sprint("an item with a rather long name ", i/3), int(i)))
	}
	f.add(t, events)
	f.end(t, int64(len(events)))
	for _, seal := range f.seals {
		if err := s.Apply(seal); err != nil {
			t.Fatal(err)
		}
	}
	checkWaiting(t, s, "a", f.seals)
	if b := s.Backlog("a"); b.Bytes < 3*pieceBytes {
		t.Errorf("%d bytes: not in several pieces", b.Bytes)
	}
	id := f.seals[0].Identity
	if err := s.Done("b", []windows.Identity{id}); err == nil {
		t.Error("marked for a sink that is not subscribed")
	}
	if err := s.Done("a", []windows.Identity{id}); err != nil {
		t.Error(err)
	}
	if err := s.Done("a", []windows.Identity{id}); err == nil {
		t.Error("marked a seal that does not wait")
	}
	if got := s.Delivered("a"); !slices.Equal(got, []windows.Identity{id}) {
		t.Errorf("delivered %v, want %v", got, id)
	}
}

// Await waits for the next seal.
func TestAwait(t *testing.T) {
	o := testOptions("store", 1)
	o.FS = vfs.NewMem()
	s := open(t, o)
	begin(t, s)
	if err := s.Subscribe("a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := s.Await(ctx, "a"); err == nil || err.Error() != "enough" {
		t.Errorf("got %v", err)
	}
	came := make(chan error)
	go func() { came <- s.Await(t.Context(), "a") }()
	f := newFeeder(0, feederConfig{})
	f.add(t, []windows.Event{recordOf(0, 100, "view", "a", 1)})
	f.end(t, 1)
	if err := s.Apply(f.seals[0]); err != nil {
		t.Fatal(err)
	}
	if err := <-came; err != nil {
		t.Error(err)
	}
}

// A mark that the disk takes its time for keeps nobody waiting: not who asks how things
// stand, and not who reads.
func TestOutboxAnswersWhileItMarks(t *testing.T) {
	o := testOptions("store", 1)
	o.FS = vfs.NewMem()
	s := open(t, o)
	begin(t, s)
	if err := s.Subscribe("a"); err != nil {
		t.Fatal(err)
	}
	f := newFeeder(0, feederConfig{})
	f.add(t, []windows.Event{recordOf(0, 100, "view", "a", 1)})
	f.end(t, 1)
	if err := s.Apply(f.seals[0]); err != nil {
		t.Fatal(err)
	}
	reached, goOn := make(chan struct{}), make(chan struct{})
	s.hook = func(step string) {
		if step == "done.begin" {
			close(reached)
			<-goOn
		}
	}
	done := make(chan error)
	go func() { done <- s.Done("a", []windows.Identity{f.seals[0].Identity}) }()
	<-reached
	checkWaiting(t, s, "a", f.seals)
	if len(s.Delivered("a")) > 0 || s.Await(t.Context(), "a") != nil {
		t.Error("it is marked before it is written")
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
	checkWaiting(t, s, "a", nil)
}

// A row that is missing is noticed.
func TestOutboxDamage(t *testing.T) {
	for what, key := range map[string]func(at outboxAt) []byte{
		"a head in between": func(at outboxAt) []byte { return outboxKey(at, 2, 0) },
		"the last head":     func(at outboxAt) []byte { return outboxKey(at, 3, 0) },
		"a piece":           func(at outboxAt) []byte { return outboxKey(at, 1, 1) },
	} {
		o := testOptions("store", 1)
		o.FS = vfs.NewMem()
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		begin(t, s)
		if err := s.Subscribe("a"); err != nil {
			t.Fatal(err)
		}
		f := newFeeder(0, feederConfig{})
		for i := range int64(3) {
			f.add(t, []windows.Event{recordOf(i, windows.Minute(100+i), "view", "a", 1)})
			f.end(t, i+1)
			if err := s.Apply(f.seals[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.db.Delete(key(outboxAt{log: testLog}), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(o); err == nil {
			_, err = s.Oldest("a", math.MaxInt)
			s.Close()
		}
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
