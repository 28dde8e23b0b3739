package ingest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tidemark/windows"
	"tidemark/windows/windowstest"
)

const (
	stamp   = int64(1767225600000) // 2026-01-01
	forever = time.Duration(math.MaxInt64)
)

func TestLook(t *testing.T) {
	for _, tt := range []struct{ generation, offset, want int64 }{
		{10, 0, 0},
		{10, 89, 0},
		{10, 90, 10},
		{10, 99, 10},
		{10, 100, 20},
		{1, 8, 0},
		{1, 9, 1},
		{32 << 10, 1 << 40, 1<<40 - 256<<10},
	} {
		if got := Look(tt.generation, tt.offset); got != tt.want {
			t.Errorf("look(%d) of generations of %d: got %d, want %d", tt.offset, tt.generation, got, tt.want)
		}
	}
	if got := Generation(256<<10, 4); got != 128<<10 {
		t.Errorf("a generation of %d records", got)
	}
	if got := Generation(1, 1); got != 1 {
		t.Errorf("a generation of %d records", got)
	}
}

// records draws records with few IDs and times all around their stamps, so that
// all outcomes are there and the look-back decides many of them.
func records(t *rapid.T, generation int64) []windows.Event {
	ids := rapid.Uint64Range(1, 40)
	gap := rapid.Int64Range(0, 2*generation)
	events := make([]windows.Event, rapid.IntRange(1, 300).Draw(t, "records"))
	offset := rapid.Int64Range(0, 100*generation).Draw(t, "first")
	for i := range events {
		ev := &events[i]
		offset++
		if rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
			offset += gap.Draw(t, "gap")
		}
		ev.Offset, ev.Stamp = offset, stamp+rapid.Int64Range(-5, 5).Draw(t, "stamp")*60_000
		ev.Time = ev.Stamp + rapid.Int64Range(-20*60_000, 90_000).Draw(t, "time")
		ev.History = rapid.IntRange(0, 9).Draw(t, "history") == 0
		ev.HasID = rapid.IntRange(0, 3).Draw(t, "ID") > 0
		if ev.HasID {
			ev.ID = ids.Draw(t, "ID") << 58 // 40 IDs in a few lines of the table
		}
		if rapid.IntRange(0, 9).Draw(t, "malformed") == 0 {
			*ev = windows.Event{Offset: offset, Stamp: stamp, Outcome: windows.Malformed}
		}
	}
	return events
}

func outcomes(events []windows.Event) []string {
	names := make([]string, len(events))
	for i := range events {
		names[i] = events[i].Outcome.String()
	}
	return names
}

func judgeAll(j windows.Judge, events []windows.Event, size func() int) []string {
	events = slices.Clone(events)
	for rest := events; len(rest) > 0; {
		n := min(size(), len(rest))
		j.Judge(rest[:n])
		rest = rest[n:]
	}
	return outcomes(events)
}

// T6, T9: the outcomes are those of the plain judge that remembers everything,
// however the records are grouped, and after a restart at any record that reads
// again from its look-back on.
func TestOutcomes(t *testing.T) {
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		cfg := JudgeConfig{
			Generation:  rapid.Int64Range(1, 40).Draw(t, "generation"),
			Lateness:    time.Duration(rapid.Int64Range(0, 300).Draw(t, "lateness")) * time.Second,
			MaxLateness: time.Duration(rapid.Int64Range(0, 20).Draw(t, "max lateness")) * time.Minute,
			MaxSkew:     time.Duration(rapid.Int64Range(0, 90).Draw(t, "max skew")) * time.Second,
		}
		plain := &windowstest.Judge{
			Generation:  cfg.Generation,
			Lateness:    cfg.Lateness.Milliseconds(),
			MaxLateness: cfg.MaxLateness.Milliseconds(),
			MaxSkew:     cfg.MaxSkew.Milliseconds(),
		}
		if rapid.Bool().Draw(t, "no limit") {
			cfg.MaxLateness, plain.MaxLateness = forever, -1
		}
		events := records(t, cfg.Generation)
		all := func() int { return len(events) }
		want := judgeAll(plain, events, all)
		for _, o := range want {
			seen[o]++
		}
		if diff := cmp.Diff(want, judgeAll(NewJudge(cfg), events, all)); diff != "" {
			t.Fatal(diff)
		}
		some := func() int { return rapid.IntRange(1, 50).Draw(t, "batch") }
		if diff := cmp.Diff(want, judgeAll(NewJudge(cfg), events, some)); diff != "" {
			t.Fatal("in batches:", diff)
		}
		at := rapid.IntRange(0, len(events)-1).Draw(t, "restart")
		from := slices.IndexFunc(events, func(ev windows.Event) bool {
			return ev.Offset >= Look(cfg.Generation, events[at].Offset)
		})
		again := judgeAll(NewJudge(cfg), events[from:], some)
		if diff := cmp.Diff(want[at:], again[at-from:]); diff != "" {
			t.Fatalf("after a restart at %d, reading from %d: %s", at, from, diff)
		}
	})
	t.Log(seen)
	for _, o := range []windows.Outcome{windows.Counted, windows.Malformed, windows.Future, windows.Duplicate, windows.TooOld, windows.Late} {
		if seen[o.String()] == 0 {
			t.Errorf("no record was %s", o)
		}
	}
}

// The edges of each outcome, to the millisecond.
func TestEdges(t *testing.T) {
	cfg := JudgeConfig{Generation: 10, Lateness: 30 * time.Second, MaxLateness: time.Hour, MaxSkew: time.Minute}
	const minute, hour = 60_000, 3_600_000
	for _, tt := range []struct {
		name   string
		before int64 // time of a record before it, relative to the stamp
		time   int64
		want   windows.Outcome
	}{
		{"just not in the future", 0, minute, windows.Counted},
		{"in the future", 0, minute + 1, windows.Future},
		{"just not too old", -hour, -hour, windows.Counted},
		{"too old", -hour, -hour - 1, windows.TooOld},
		{"just not late", 29_999, -minute, windows.Counted},
		{"just not late either", 30_000, -minute, windows.Counted},
		{"late", 30_001, -minute, windows.Late},
		{"late, anywhere in its minute", 30_001, -1, windows.Late},
		{"not late: its minute goes on", 30_001, 0, windows.Counted},
	} {
		events := []windows.Event{{Offset: 0, Stamp: stamp, Time: stamp + tt.before}, {Offset: 1, Stamp: stamp, Time: stamp + tt.time}}
		NewJudge(cfg).Judge(events)
		if got := events[1].Outcome; got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
	// What is in the future, or malformed, is not there for the records after it.
	events := []windows.Event{
		{Offset: 0, Stamp: stamp, Time: stamp + hour, HasID: true, ID: 7},
		{Offset: 1, Stamp: stamp, Outcome: windows.Malformed, HasID: true, ID: 7},
		{Offset: 2, Stamp: stamp, Time: stamp - minute, HasID: true, ID: 7},
	}
	NewJudge(cfg).Judge(events)
	if diff := cmp.Diff([]string{"future", "malformed", "counted"}, outcomes(events)); diff != "" {
		t.Error(diff)
	}
}

// nineSets is the rule of docs/exactly-once.md to the letter: a set of IDs for each generation.
type nineSets struct{ sets map[int64]map[uint64]bool }

func (s *nineSets) add(id uint64, generation int64) (before bool) {
	for g, set := range s.sets {
		if g < generation-generations {
			delete(s.sets, g)
		} else if set[id] {
			before = true
		}
	}
	if s.sets == nil {
		s.sets = make(map[int64]map[uint64]bool)
	}
	if s.sets[generation] == nil {
		s.sets[generation] = make(map[uint64]bool)
	}
	s.sets[generation][id] = true
	return before
}

func TestTableIsNineSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table idTable
		var sets nineSets
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		ids := rapid.Uint64Range(1, 3000).Draw(t, "IDs")
		shift := rapid.SampledFrom([]int{0, 32, 52}).Draw(t, "shift") // 0: all in one line
		jump := rapid.SampledFrom([]int64{1, 3, 300}).Draw(t, "jump")
		often := rapid.SampledFrom([]float64{0.5, 0.1, 0.01}).Draw(t, "often")
		generation := rapid.Int64Range(0, 1000).Draw(t, "generation")
		for i := range 4_000 {
			if r.Float64() < often {
				generation += r.Int64N(jump) + 1
			}
			id := r.Uint64N(ids) << shift
			if got, want := table.add(id, generation), sets.add(id, generation); got != want {
				t.Fatalf("step %d, ID %d in generation %d: seen before: %v, want %v", i, id, generation, got, want)
			}
			table.check(t)
		}
	})
}

// check fails if the table's own numbers are wrong.
func (t *idTable) check(r *rapid.T) {
	if len(t.lines) > 64 && rand.IntN(100) > 0 {
		return
	}
	known, used := 0, 0
	for i := range t.lines {
		for _, tag := range t.lines[i].tags {
			if t.tags[tag].inside {
				known++
			}
			if tag != 0 {
				used++
			}
		}
	}
	if known != t.known {
		r.Fatalf("%d places in the look-back, counted %d", t.known, known)
	}
	if limit := len(t.lines) * linePlaces; (known-1)*5 > limit*3 {
		r.Fatalf("%d of %d places are taken", known, limit)
	}
}

// The memory of a judge is bounded by the look-back, for as long as a log runs.
func TestTableStaysSmall(t *testing.T) {
	var table idTable
	r := rand.New(rand.NewPCG(1, 2))
	const generation = 1 << 10
	most := 0
	for offset := range int64(generation * 600) {
		if table.add(r.Uint64(), offset/generation) {
			t.Fatal("a duplicate that is none")
		}
		most = max(most, len(table.lines))
	}
	if limit := 9 * generation; most*linePlaces > 5*limit {
		t.Errorf("%d places for at most %d IDs", most*linePlaces, limit)
	}
	for offset := range int64(generation * 70) { // and shrinks
		table.add(1, 600+offset/generation)
	}
	if len(table.lines) > 4 {
		t.Errorf("%d lines for one ID", len(table.lines))
	}
}

// The smallest look-backs have tables of a line or two, which may all be marked as
// passed: a search still ends, and finds what is there.
func TestSmallLookBacks(t *testing.T) {
	for seed := range uint64(500) {
		var table idTable
		var sets nineSets
		r := rand.New(rand.NewPCG(seed, 1))
		var ids []uint64
		for offset := range int64(300) {
			id := r.Uint64()
			if offset > 0 && r.IntN(10) == 0 {
				id = ids[r.IntN(len(ids))]
			}
			ids = append(ids, id)
			if got, want := table.add(id, offset), sets.add(id, offset); got != want {
				t.Fatalf("offset %d: a duplicate: %v, by exact sets %v", offset, got, want)
			}
		}
	}
}
