package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// levelWorld is seals of some partitions that touch days at all hours, in no order,
// and what they say.
type levelWorld struct {
	feeders []*feeder
	offsets []int64
	rand    *rand.Rand
	limits  windows.Limits
	applied []*windows.Seal
	ranges  int // how many random ones check compares
}

const (
	worldFirst = windows.Minute(20_000_000) / 1440 * 1440
	worldDays  = 4
)

func newLevelWorld(seed uint64, partitions int, limits windows.Limits) *levelWorld {
	w := &levelWorld{rand: rand.New(rand.NewPCG(seed, 9)), offsets: make([]int64, partitions), limits: limits, ranges: 6}
	for p := range partitions {
		w.feeders = append(w.feeders, newFeeder(p, feederConfig{limits: limits, dims: []string{"country"}}))
	}
	return w
}

// seal makes the next seal of a partition: some minutes up to day, most of them of
// the last one.
func (w *levelWorld) seal(tb testing.TB, partition, day int) *windows.Seal {
	f := w.feeders[partition]
	var events []windows.Event
	for range 1 + w.rand.IntN(12) {
		m := worldFirst + windows.Minute(day*1440+w.rand.IntN(1440))
		if w.rand.IntN(3) == 0 {
			m = worldFirst + windows.Minute(w.rand.IntN((day+1)*1440))
		}
		if w.rand.IntN(2) == 0 {
			m -= m % 60 // many meet
		}
		users := 1 + w.rand.IntN(5)
		if w.rand.IntN(12) == 0 {
			users = 1100
		}
		item := fmt.Sprint("item", w.rand.IntN(9))
		for range users {
			events = append(events, recordOf(w.offsets[partition], m, []string{"view", "like"}[w.rand.IntN(2)], item, w.rand.IntN(3000)-1, []string{"DE", "AT"}[w.rand.IntN(2)]))
			w.offsets[partition]++
		}
	}
	f.add(tb, events)
	f.end(tb, w.offsets[partition])
	return f.seals[len(f.seals)-1]
}

func (w *levelWorld) apply(tb testing.TB, s *Store, seal *windows.Seal) {
	tb.Helper()
	if err := s.Apply(seal); err != nil {
		tb.Fatal(err)
	}
	w.applied = append(w.applied, seal)
}

// want is what the seals say of a range, all minutes together.
func (w *levelWorld) want(r windows.Range) *windowstest.Merged {
	var m windowstest.Merged
	for _, seal := range w.applied {
		for _, p := range seal.Partials {
			if !r.Contains(p.Minute()) {
				continue
			}
			series := p.Series()
			for i, row := range p.Each {
				m.AddRow(0, series[i], row)
			}
		}
	}
	return &m
}

// planned reads a range by its plan.
func planned(tb testing.TB, n *Snapshot, r windows.Range) (m *windowstest.Merged, gone []windows.Range) {
	tb.Helper()
	m = new(windowstest.Merged)
	steps, gone := n.Plan([]windows.Minute{r.From, r.To})
	for _, at := range steps {
		for _, series := range n.Series() {
			err := n.Scan(at, series, func(p windows.Part, item uint32, row windows.Row) error {
				if !r.Contains(p.Start) {
					return fmt.Errorf("part %+v is outside of %v", p, r)
				}
				name := ""
				if row.Kind == windows.Item {
					var err error
					if name, err = n.Name(item); err != nil {
						return err
					}
				}
				m.Add(0, series, row.Kind, name, row)
				return nil
			})
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
	return m, gone
}

// check compares some ranges with what the seals say.
func (w *levelWorld) check(tb testing.TB, s *Store, what string) {
	tb.Helper()
	n := snapshot(tb, s)
	end := worldFirst + worldDays*1440
	ranges := []windows.Range{
		{To: windows.MaxMinute},
		{From: worldFirst + 1440, To: end},
	}
	for range w.ranges {
		a, b := worldFirst+windows.Minute(w.rand.IntN(worldDays*1440)), worldFirst+windows.Minute(w.rand.IntN(worldDays*1440))
		if w.rand.IntN(2) == 0 {
			a, b = a-a%60, b-b%60
		}
		ranges = append(ranges, windows.Range{From: min(a, b), To: max(a, b) + 1})
	}
	for _, r := range ranges {
		got, gone := planned(tb, n, r)
		if len(gone) > 0 {
			continue
		}
		if diff := w.want(r).Diff(got); diff != "" {
			steps, _ := n.Plan([]windows.Minute{r.From, r.To})
			tb.Fatalf("%s: %v (%s - %s) by %v: %s", what, r, showTime(r.From-worldFirst), showTime(r.To-worldFirst), steps, diff)
		}
	}
	w.checkSums(tb, n, what)
	if err := n.Close(); err != nil {
		tb.Fatal(err)
	}
}

// checkSums holds whole levels against each other: what is rolled up of a period is
// what the level below has of it, as far as that is kept.
func (w *levelWorld) checkSums(tb testing.TB, n *Snapshot, what string) {
	tb.Helper()
	for l := levelQuarter; l < levelEver; l++ {
		n.ladder.rolled.each(l, windows.Range{To: windows.MaxMinute}, func(e entry) bool {
			r := windows.Range{From: e.start(), To: e.start() + policy[l].size}
			if w.rand.IntN(8) != 0 {
				return true
			}
			if diff := w.want(r).Diff(scanAll(tb, n, windows.Stretch{Level: l, Range: windows.Range{From: e.start(), To: e.start() + 1}})); diff != "" {
				tb.Fatalf("%s: %s %v: %s", what, policy[l].name, r, diff)
			}
			return true
		})
	}
}

func scanAll(tb testing.TB, n *Snapshot, at windows.Stretch) *windowstest.Merged {
	tb.Helper()
	m := new(windowstest.Merged)
	for _, series := range n.Series() {
		if err := n.Scan(at, series, func(_ windows.Part, item uint32, row windows.Row) error {
			name := ""
			if row.Kind == windows.Item {
				var err error
				if name, err = n.Name(item); err != nil {
					return err
				}
			}
			m.Add(0, series, row.Kind, name, row)
			return nil
		}); err != nil {
			tb.Fatal(err)
		}
	}
	return m
}

func memOptions(partitions int) Options {
	o := testOptions("store", partitions)
	o.FS = vfs.NewMem()
	return o
}

// Whatever is rolled up, whatever comes late, before, during and after: any range
// says what the seals say.
func TestLevelsSayWhatTheSealsSay(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			const partitions = 3
			w := newLevelWorld(seed, partitions, windows.Limits{})
			o := memOptions(partitions)
			s := open(t, o)
			begin(t, s)
			tiny := sizes{batch: 300, file: 5000, chunks: 1}
			for round := range 24 {
				if seed%2 == 1 { // all by files, a block at a time
					s.sizes = tiny
				}
				day := round * worldDays / 24
				w.apply(t, s, w.seal(t, w.rand.IntN(partitions), day))
				switch w.rand.IntN(4) {
				case 0:
					if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
						t.Fatal(err)
					}
				case 1:
					if err := s.Maintain(t.Context(), worldFirst+windows.Minute(w.rand.IntN((day+1)*1440))); err != nil {
						t.Fatal(err)
					}
				case 2:
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = open(t, o)
				}
				w.check(t, s, fmt.Sprint("round ", round))
			}
		})
	}
}

// A seal lands between every two steps of roll-ups and foldings, and the process
// ends there: what is then on the disk goes on to say what the seals say.
func TestSealsAndCrashesBetweenTheSteps(t *testing.T) {
	const partitions = 2
	w := newLevelWorld(77, partitions, windows.Limits{})
	w.ranges = 1
	o := memOptions(partitions)
	fs := vfs.NewCrashableMem()
	o.FS = fs
	s := open(t, o)
	begin(t, s)
	s.sizes.batch, s.sizes.file = 2000, 20_000 // both by batches and by files
	type crash struct {
		fs      *vfs.MemFS
		applied int
		step    string
	}
	var crashes []crash
	busy, landed := false, 0
	steps := make(map[string]int)
	crashAt := func(name string) {
		if steps[name]++; steps[name]%4 == 1 && steps[name] < 10 {
			crashes = append(crashes, crash{fs.CrashClone(vfs.CrashCloneCfg{}), len(w.applied), name})
		}
	}
	s.hook = func(name string) {
		if busy {
			return
		}
		crashAt(name)
		if name == "fold.committed" || name == "retain.committed" || steps[name] > 12 {
			return // locked, or enough
		}
		busy = true
		w.apply(t, s, w.seal(t, landed%partitions, worldDays-1))
		landed++
		busy = false
		crashAt(name + " and a seal")
	}
	busy = true
	for round := range 30 {
		w.apply(t, s, w.seal(t, round%partitions, round*worldDays/30))
	}
	busy = false
	for range 3 {
		if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
			t.Fatal(err)
		}
		busy = true
		for round := range 14 {
			w.apply(t, s, w.seal(t, round%partitions, worldDays-1))
		}
		busy = false
	}
	w.check(t, s, "at the end")
	if m := s.db.Metrics(); m.Ingest.Count == 0 {
		t.Error("no file was ingested")
	}
	for _, name := range []string{"roll.marked", "roll.merged", "roll.committed", "roll.shown", "roll.ingested", "fold.merged", "fold.ingested", "fold.committed"} {
		if steps[name] == 0 {
			t.Errorf("the step %s was not reached", name)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d crashes at %v", len(crashes), steps)
	all := w.applied
	for _, c := range crashes {
		w.applied = all[:c.applied]
		o.FS = c.fs
		s := open(t, o)
		w.check(t, s, "crash at "+c.step)
		if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
			t.Fatalf("crash at %s: %v", c.step, err)
		}
		w.check(t, s, "gone on after "+c.step)
		for _, seal := range all {
			if err := s.Apply(seal); err != nil {
				t.Fatalf("crash at %s: %v", c.step, err)
			}
		}
		w.applied = all
		w.check(t, s, "all after "+c.step)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Retention takes the small periods; what is left says what it said, and lifetime
// totals never fall.
func TestRetentionTakesSmallPeriodsAndNoNumber(t *testing.T) {
	const partitions = 2
	for seed := range uint64(2) {
		w := newLevelWorld(100+seed, partitions, windows.Limits{})
		o := memOptions(partitions)
		o.Keep = Retention{Minute: 5 * time.Hour, Quarter: 20 * time.Hour, Hour: 30 * time.Hour, Day: 48 * time.Hour}
		s := open(t, o)
		begin(t, s)
		var lifetime uint64
		for round := range 30 {
			day := round * worldDays / 30
			w.apply(t, s, w.seal(t, round%partitions, day))
			if w.rand.IntN(3) == 0 {
				if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
					t.Fatal(err)
				}
			}
			if w.rand.IntN(6) == 0 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, o)
			}
			w.check(t, s, fmt.Sprint("round ", round))
			n := snapshot(t, s)
			got, gone := planned(t, n, windows.Range{To: windows.MaxMinute})
			if len(gone) > 0 {
				t.Fatalf("round %d: lifetime totals lack %v", round, gone)
			}
			if now := got.Events(windows.Site); now < lifetime {
				t.Fatalf("round %d: lifetime totals fell from %d to %d", round, lifetime, now)
			} else {
				lifetime = now
			}
			n.Close()
		}
		if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
			t.Fatal(err)
		}
		n := snapshot(t, s)
		for l := range levelEver {
			floor := n.ladder.floor[l]
			if kept := n.Kept()[l]; kept.From != floor || kept.Size != policy[l].size || kept.For != o.Keep.levels()[l] {
				t.Errorf("level %s: kept %+v", policy[l].name, kept)
			}
			if floor == 0 {
				t.Errorf("nothing of level %s was removed", policy[l].name)
			}
			if first, ok := n.catalogue.first(l); ok && first < floor {
				t.Errorf("level %s begins at %d, floor %d", policy[l].name, first, floor)
			}
			it, err := s.db.NewIter(nil)
			if err != nil {
				t.Fatal(err)
			}
			if it.SeekGE(startKey(l, 0)) && slices.Compare(it.Key(), startKey(l, floor)) < 0 {
				t.Errorf("level %s: a row is left at %x", policy[l].name, it.Key())
			}
			it.Close()
		}
		if _, gone := n.Plan([]windows.Minute{worldFirst + 7, worldFirst + 9}); len(gone) == 0 {
			t.Error("two minutes of the first day are still told")
		}
		n.Close()
		s.Close()
	}
}

// A snapshot that was taken before retention keeps all it had.
func TestRetentionWaitsForReaders(t *testing.T) {
	w := newLevelWorld(5, 1, windows.Limits{})
	o := memOptions(1)
	o.Keep = Retention{Minute: time.Hour}
	s := open(t, o)
	begin(t, s)
	for round := range 20 {
		w.apply(t, s, w.seal(t, 0, round*worldDays/20))
	}
	n := snapshot(t, s)
	before := scanAll(t, n, allTime)
	done := make(chan error, 1)
	shown := make(chan struct{})
	s.hook = func(name string) {
		if name == "retain.shown" {
			close(shown)
		}
	}
	go func() { done <- s.Maintain(context.Background(), windows.MaxMinute) }()
	<-shown
	if diff := before.Diff(scanAll(t, n, allTime)); diff != "" {
		t.Error(diff)
	}
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	n.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.check(t, s, "afterwards")
}

func TestMaintainEndsWithItsContext(t *testing.T) {
	w := newLevelWorld(6, 1, windows.Limits{})
	s := open(t, memOptions(1))
	begin(t, s)
	for round := range 10 {
		w.apply(t, s, w.seal(t, 0, round*worldDays/10))
	}
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	s.hook = func(string) {
		if count++; count == 2 {
			cancel()
		}
	}
	if err := s.Maintain(ctx, windows.MaxMinute); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.hook = nil
	w.check(t, s, "ended")
	if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
		t.Fatal(err)
	}
	w.check(t, s, "gone on")
}
