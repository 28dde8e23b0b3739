package windows_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// The metamorphic test of the engine: the same events under other orders,
// partitions, batch sizes, budgets and restarts. Invariants W2, W5, W7 and W8.

const (
	modelGeneration = 1 << 14 // the look-back reaches over the whole of every log here
	modelSkew       = time.Minute
	modelLateness   = 30 * time.Second
)

var (
	modelStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	modelStamp = modelStart.Add(48 * time.Hour).UnixMilli() // of all records: the start of an import
)

// setup is one way to run a log through the engine.
type setup struct {
	partitions int
	batch      int // events a batch; 0: random
	memory     int // budget of the open windows, bytes; 0: plenty
	limits     windows.Limits
	restarts   int // how often the engine is stopped without a word and started again
	seed       uint64
}

func (s setup) String() string {
	var name strings.Builder
	fmt.Fprintf(&name, "%d partitions", s.partitions)
	for _, part := range []struct {
		what string
		n    int
	}{{"batches of", s.batch}, {"memory", s.memory}, {"restarts", s.restarts}} {
		if part.n > 0 {
			fmt.Fprintf(&name, ", %s %d", part.what, part.n)
		}
	}
	if s.limits != plenty {
		fmt.Fprintf(&name, ", %d items", s.limits.Items)
	}
	return name.String()
}

// plenty is more than any log here needs.
var plenty = windows.Limits{Items: 1 << 20, Values: 1 << 10}

// sealed is what came out.
type sealed struct {
	merged   windowstest.Merged
	partials []*windows.Partial
	outcomes map[windows.OutcomeCount]uint64 // Records of the key is 0
	seals    int
	bytes    [sha256.Size]byte // of all seals in order, by partition
	parts    map[windows.Minute]int
}

// keeper is a store that keeps everything in memory. It checks what docs/exactly-once.md
// asks of a seal.
type keeper struct {
	mu        sync.Mutex
	positions []windows.Position
	seals     [][]*windows.Seal // by partition
}

func newKeeper(partitions int) *keeper {
	k := &keeper{positions: make([]windows.Position, partitions), seals: make([][]*windows.Seal, partitions)}
	for i := range k.positions {
		k.positions[i].E = uint64(i + 1)
	}
	return k
}

func (k *keeper) Apply(s *windows.Seal) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	have := &k.positions[s.Partition]
	switch {
	case s.E != have.E:
		return errors.New("seal of another log")
	case s.From != have.To:
		return fmt.Errorf("seal from %+v, the partition is at %+v", s.From, have.To)
	case s.To.F < s.From.F || s.To.S < s.From.S || s.To == s.From:
		return fmt.Errorf("seal goes from %+v to %+v", s.From, s.To)
	case s.R < have.R || s.R > s.To.S:
		return fmt.Errorf("R goes from %d to %d, S is %d", have.R, s.R, s.To.S)
	case len(s.Partials) == 0:
		return errors.New("empty seal")
	}
	for i, p := range s.Partials {
		refused := !slices.ContainsFunc(p.Outcomes(), func(o windows.OutcomeCount) bool { return !o.Outcome.Quarantined() })
		if i > 0 && s.Partials[i-1].Minute() >= p.Minute() || p.Minute() >= s.To.F && !refused {
			return fmt.Errorf("minute %d is not in its place", p.Minute())
		}
	}
	have.To, have.R = s.To, s.R
	k.seals[s.Partition] = append(k.seals[s.Partition], s)
	return nil
}

// run puts the events through the engine as the setup says.
func (s setup) run(t *testing.T, events []windowstest.Event, dims ...string) *sealed {
	t.Helper()
	hasher := sketches.NewHasher(modelKey)
	split := windowstest.Split(hasher, events, s.partitions, modelStamp)
	spoil(split)
	end := int64(len(events))
	store := newKeeper(s.partitions)
	r := rand.New(rand.NewPCG(s.seed, 1))
	for life := range s.restarts + 1 {
		stop := end + 1
		if life < s.restarts {
			stop = r.Int64N(end)
		}
		s.live(t, hasher, store, split, end, stop, r, dims)
	}

	out := &sealed{outcomes: make(map[windows.OutcomeCount]uint64), parts: make(map[windows.Minute]int)}
	h := sha256.New()
	for _, seals := range store.seals {
		for _, seal := range seals {
			out.seals++
			if err := windowstest.WriteSeal(h, seal); err != nil {
				t.Fatal(err)
			}
			for _, p := range seal.Partials {
				out.partials = append(out.partials, p)
				out.parts[p.Minute()]++
				out.merged.AddContent(&p.Content)
				for _, o := range p.Outcomes() {
					out.outcomes[windows.OutcomeCount{Outcome: o.Outcome, Reason: o.Reason}] += o.Records
				}
			}
		}
	}
	out.bytes = [sha256.Size]byte(h.Sum(nil))
	return out
}

// live is one life of the engine: it goes on from what the store has, and ends
// without a word once it was given the records before stop.
func (s setup) live(t *testing.T, hasher sketches.Hasher, store *keeper, split [][]windows.Event, end, stop int64, r *rand.Rand, dims []string) {
	t.Helper()
	memory := s.memory
	if memory == 0 {
		memory = 1 << 30
	}
	e := windows.NewEngine(windows.EngineConfig{
		Log:        windows.LogID{1},
		Positions:  slices.Clone(store.positions),
		Hasher:     hasher,
		Limits:     s.limits,
		Dimensions: dims,
		Memory:     memory,
		History:    true,
		Judge: func(int) windows.Judge {
			return &windowstest.Judge{
				Generation: modelGeneration, MaxSkew: modelSkew.Milliseconds(),
				MaxLateness: -1, Lateness: modelLateness.Milliseconds(),
			}
		},
		Look:   func(o int64) int64 { return windowstest.Look(o, modelGeneration) },
		Store:  store,
		Logger: slog.New(slog.DiscardHandler),
	})
	rest := make([][]windows.Event, len(split))
	for p := range split {
		from := store.positions[p].R
		rest[p] = slices.DeleteFunc(slices.Clone(split[p]), func(ev windows.Event) bool { return ev.Offset < from || ev.Offset >= stop })
	}
	for { // one batch of each partition in turn
		given := false
		for p := range rest {
			if len(rest[p]) == 0 {
				continue
			}
			n := s.batch
			if n == 0 {
				n = 1 + r.IntN(300)
			}
			n = min(n, len(rest[p]))
			if err := e.Submit(t.Context(), p, windows.Batch{Events: rest[p][:n:n]}); err != nil {
				t.Fatal(err)
			}
			rest[p], given = rest[p][n:], true
		}
		if !given {
			break
		}
	}
	if stop > end {
		if err := e.Finish(end); err != nil {
			t.Fatal(err)
		}
		return
	}
	e.Close()
}

// spoiled says what becomes of the record at an offset: some are malformed, some
// of the future, in every run of the same log the same ones.
func spoiled(offset int64) (o windows.Outcome, reason string) {
	switch offset % 101 {
	case 13:
		return windows.Malformed, "item: missing"
	case 14:
		return windows.Malformed, "time: no zone"
	case 57:
		return windows.Future, ""
	}
	return windows.Counted, ""
}

func spoil(split [][]windows.Event) {
	for p := range split {
		for i := range split[p] {
			ev := &split[p][i]
			switch o, reason := spoiled(ev.Offset); o {
			case windows.Malformed:
				ev.Outcome, ev.Reason = o, reason
			case windows.Future:
				ev.Time = ev.Stamp + modelSkew.Milliseconds() + 1
			}
		}
	}
}

// sound returns the events of a log that count, and for each other one that is an
// event what became of it.
func sound(log []windowstest.Event) (counts []windowstest.Event, rest map[windows.Outcome][]windowstest.Event) {
	rest = make(map[windows.Outcome][]windowstest.Event)
	seen := make(map[string]bool)
	for i, e := range log {
		o, _ := spoiled(int64(i))
		if o == windows.Counted && e.ID != "" && seen[e.ID] {
			o = windows.Duplicate
		}
		switch o {
		case windows.Counted:
			seen[e.ID] = true
			counts = append(counts, e)
		case windows.Malformed:
		default:
			rest[o] = append(rest[o], e)
		}
	}
	return counts, rest
}

// modelSeeds is how many streams are tried; `make soak` tries more.
func modelSeeds() uint64 {
	if os.Getenv("TIDEMARK_SOAK") != "" {
		return 100
	}
	return 2
}

var modelKey = sketches.Key{7, 1, 3}

func modelStream(seed uint64) windowstest.Shape {
	return windowstest.Shape{
		Seed: seed, Events: 20_000, Items: 2_000, Users: 3_000, Start: modelStart, Span: 30 * time.Minute,
		NoUser: 0.2, Late: 0.3, LateBy: 12 * time.Hour, Duplicates: 0.1, IDs: true, OddNames: true,
		Types: []string{"view", "like", "(other)"}, Dims: [][]string{{"DE", "AT", "(other)", ""}, {"", "web"}},
	}
}

func TestOrderAndGroupingChangeNothing(t *testing.T) {
	dims := []string{"country", "device"}
	for seed := range modelSeeds() {
		events := modelStream(seed).Stream()
		var base *sealed
		var total uint64
		counted := func(s *sealed) (n uint64) {
			for o, records := range s.outcomes {
				if o.Outcome.Counts() {
					n += records
				}
			}
			return n
		}
		for _, s := range []setup{
			{partitions: 1, batch: 128},
			{partitions: 1, batch: 1},
			{partitions: 4},
			{partitions: 16, batch: 1000},
			{partitions: 1, memory: 400_000},
			{partitions: 4, memory: 100_000},
			{partitions: 16, memory: 1},
			{partitions: 1, memory: 300_000, restarts: 5},
			{partitions: 4, memory: 100_000, restarts: 3},
			{partitions: 3, restarts: 2},
		} {
			s.limits, s.seed = plenty, seed
			t.Run(fmt.Sprintf("seed %d, %v", seed, s), func(t *testing.T) {
				got := s.run(t, events, dims...)
				total = 0
				for _, n := range got.outcomes {
					total += n
				}
				if total != uint64(len(events)) {
					t.Errorf("the outcomes sum to %d of %d records: %v", total, len(events), got.outcomes)
				}
				if base == nil {
					base = got
					compareToOracle(t, got, events, dims)
					return
				}
				if s.memory > 0 && got.seals < 3*s.partitions {
					t.Errorf("only %d seals: this run shows nothing", got.seals)
				}
				if s.memory > 0 && len(got.parts) > 0 && slices.Max(slices.Collect(maps.Values(got.parts))) < 2 {
					t.Error("no minute has two parts: this run shows nothing")
				}
				if base.merged.Digest() != got.merged.Digest() {
					t.Error(base.merged.Diff(&got.merged))
				}
				if a, b := counted(base), counted(got); a != b {
					t.Errorf("%d records count, and %d did", b, a)
				}
				for o := range base.outcomes { // whether a counted one is late depends on its partition
					if !o.Outcome.Counts() && base.outcomes[o] != got.outcomes[o] {
						t.Errorf("%v %s: %d records, and %d before", o.Outcome, o.Reason, got.outcomes[o], base.outcomes[o])
					}
				}
			})
		}
	}
}

// Without malformed records, which stand at an offset, a shuffled log holds the
// same events.
func TestShuffledLogsSealTheSame(t *testing.T) {
	shape := modelStream(9)
	shape.Dims, shape.Late = [][]string{{"DE", "AT", ""}}, 1
	events := shape.Stream()
	var digests [][sha256.Size]byte
	for seed := range uint64(3) {
		order := events
		if seed > 0 {
			order = windowstest.Shuffled(events, seed)
		}
		// Records that spoil would touch are put in between, so that all events count.
		var log []windowstest.Event
		for _, e := range order {
			for o, _ := spoiled(int64(len(log))); o != windows.Counted; o, _ = spoiled(int64(len(log))) {
				log = append(log, windowstest.Event{Item: "filler", Type: "view", Time: modelStart.UnixMilli()})
			}
			log = append(log, e)
		}
		got := setup{partitions: 1 + 3*int(seed), memory: 200_000, limits: plenty, seed: seed}.run(t, log, "country")
		digests = append(digests, got.merged.Digest())
		compareToOracle(t, got, log, []string{"country"})
	}
	for i, d := range digests {
		if d != digests[0] {
			t.Errorf("order %d seals other counts or registers", i)
		}
	}
}

// compareToOracle compares every count of every minute, type, breakdown and item
// with the oracle, and viewers where they are exact.
func compareToOracle(t *testing.T, got *sealed, log []windowstest.Event, dims []string) {
	t.Helper()
	events, rest := sound(log)
	o := windowstest.NewOracle(events, dims...)
	hasher := sketches.NewHasher(modelKey)
	var want windowstest.Merged
	for _, part := range windowstest.Split(hasher, events, 1, modelStamp) {
		for _, ev := range part {
			row := windows.Row{Events: 1, Reached: 1, Item: ev.Item}
			if ev.HasUser {
				row.Tokens = []uint32{sketches.Token(ev.User)}
			}
			series := []windows.Series{{Type: string(ev.Type)}}
			for d, v := range ev.Dims {
				if v != nil {
					series = append(series, windows.Series{Type: string(ev.Type), Dimension: dims[d], Value: string(v)})
				}
			}
			m := windows.MinuteOf(ev.Time)
			for _, s := range series {
				row.Kind = windows.Item
				want.AddRow(m, s, row)
				row.Kind = windows.Site
				want.Add(m, s, windows.Site, "", row)
			}
		}
	}
	for outcome, events := range rest {
		for _, e := range events {
			m := windows.MinuteOf(e.Time)
			if outcome.Quarantined() {
				m = windows.MinuteOf(modelStamp)
			}
			s := windows.Series{Type: e.Type, Dimension: windows.OutcomeDimension, Value: outcome.String()}
			row := windows.Row{Events: 1, Reached: 1}
			want.Add(m, s, windows.Item, e.Item, row)
			want.Add(m, s, windows.Site, "", row)
		}
	}
	if diff := want.Diff(&got.merged); diff != "" {
		t.Error("the engine differs from adding event by event:", diff)
	}
	// Adding event by event shares tokens with the engine; the oracle shares nothing.
	from, to := o.Span()
	for _, typ := range o.Types() {
		q := windowstest.Question{From: from, To: to, Types: []string{typ}}
		for _, c := range o.Table(q, windows.MillisPerMinute) {
			n, v, ok := got.merged.Tally(windows.MinuteOf(c.Start), windows.Series{Type: typ}, windows.Item, c.Item)
			if !ok || n != c.Events || v != c.Viewers {
				t.Fatalf("%s %q in minute %d: %d events by %d, the oracle says %+v", typ, c.Item, c.Start, n, v, c.Tally)
			}
		}
		for d, name := range dims {
			values := make(map[string]bool)
			for _, e := range events {
				if d < len(e.Dims) && e.Dims[d] != "" {
					values[e.Dims[d]] = true
				}
			}
			for value := range values {
				q.Dimension, q.Value = name, value
				for _, c := range o.Table(q, windows.MillisPerMinute) {
					s := windows.Series{Type: typ, Dimension: name, Value: value}
					n, v, ok := got.merged.Tally(windows.MinuteOf(c.Start), s, windows.Item, c.Item)
					if !ok || n != c.Events || v != c.Viewers {
						t.Fatalf("%+v %q in minute %d: %d events by %d, the oracle says %+v", s, c.Item, c.Start, n, v, c.Tally)
					}
				}
			}
		}
	}
}

// The same log gives the same bytes at any batch size: pairs, order of the rows,
// Count-Min tables, heaps, within the budget and beyond it.
func TestBatchSizesSealTheSameBytes(t *testing.T) {
	dims := []string{"country", "device"}
	shape := modelStream(3)
	shape.Events, shape.LateBy = 15_000, 20*time.Minute
	events := shape.Stream()
	for _, s := range []setup{
		{partitions: 1, limits: plenty},
		{partitions: 3, limits: plenty, memory: 200_000},
		{partitions: 1, limits: windows.Limits{Items: 200, Values: 2}},
		{partitions: 2, limits: windows.Limits{Items: 200, Values: 2}, memory: 10_000_000},
	} {
		t.Run(s.String(), func(t *testing.T) {
			s.batch = 128
			base := s.run(t, events, dims...)
			for _, n := range []int{1, 127, 129, 10_000, 0} {
				s.batch, s.seed = n, uint64(n)
				got := s.run(t, events, dims...)
				if got.bytes != base.bytes {
					t.Errorf("batches of %d seal other bytes (%d seals, %d with batches of 128)", n, got.seals, base.seals)
				}
				if diff := cmp.Diff(base.outcomes, got.outcomes); diff != "" {
					t.Errorf("batches of %d: other outcomes:\n%s", n, diff)
				}
			}
		})
	}
}

// Over the budget, the truth lies inside what a row and a Count-Min table say, in
// every order and grouping.
func TestOverTheBudgetTheTruthIsInsideTheBounds(t *testing.T) {
	shape := modelStream(5)
	shape.Dims, shape.Span, shape.Late = nil, 3*time.Minute, 0
	shape.Items, shape.Zipf = 20_000, 1.01
	events := shape.Stream()
	for _, s := range []setup{
		{partitions: 1, batch: 128}, {partitions: 4}, {partitions: 16}, {partitions: 2, memory: 1_000_000}, {partitions: 2, memory: 1_000_000, restarts: 3},
	} {
		s.limits = windows.Limits{Items: 1000, Values: 10}
		for _, shuffled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, shuffled %t", s, shuffled), func(t *testing.T) {
				log := events
				if shuffled {
					log = windowstest.Shuffled(events, 1)
				}
				got := s.run(t, log)
				counts, _ := sound(log)
				o := windowstest.NewOracle(counts)
				from, to := o.Span()
				byMinute := make(map[windows.Minute][]*windows.Partial)
				overflowed := 0
				for _, p := range got.partials {
					byMinute[p.Minute()] = append(byMinute[p.Minute()], p)
					if limit := s.limits.Items / s.partitions; p.Items() > limit {
						t.Errorf("a window gave %d slots, its limit is %d", p.Items(), limit)
					}
				}
				for _, typ := range o.Types() {
					series := windows.Series{Type: typ}
					q := windowstest.Question{From: from, To: to, Types: []string{typ}}
					for _, c := range o.Table(q, windows.MillisPerMinute) {
						low, high := bounds(byMinute[windows.MinuteOf(c.Start)], series, c.Item)
						if c.Events < low || c.Events > high {
							t.Fatalf("%s %q: %d events in minute %d, the bounds are [%d, %d]", typ, c.Item, c.Events, c.Start, low, high)
						}
						if low < high {
							overflowed++
						}
					}
				}
				if overflowed == 0 {
					t.Error("nothing was over the budget: this run shows nothing")
				}
			})
		}
	}
}

// bounds says between what the count of an item lies, by what some partials hold.
func bounds(partials []*windows.Partial, s windows.Series, item string) (low, high uint64) {
	hasher := sketches.NewHasher(modelKey)
	hash := hasher.Item([]byte(item))
	for _, p := range partials {
		if row, ok := p.Find(s, windows.Item, hash); ok {
			low += row.Events
			high += row.Events
			continue
		}
		rest, ok := p.Find(s, windows.Overflow, sketches.Hash128{})
		if !ok {
			continue
		}
		estimate := rest.Events
		if table, _, ok := p.Sketch(s); ok && table != nil {
			estimate = min(estimate, uint64(table.Estimate(windows.SketchKey(hasher, s, hash))))
		}
		high += estimate
	}
	return low, high
}

// With 1,000 slots the top 100 of a busy hour is found, names and all, from what
// the partials hold: their slots and their heaps.
func TestAThousandSlotsFindTheTopOfABusyHour(t *testing.T) {
	shape := windowstest.Shape{
		Seed: 11, Events: 150_000, Items: 50_000, Users: 20_000, Zipf: 1.05, Start: modelStart, Span: time.Hour,
	}
	events := shape.Stream()
	for _, partitions := range []int{1, 4} {
		s := setup{partitions: partitions, batch: 1000, limits: windows.Limits{Items: 1000, Values: 10}}
		got := s.run(t, events)
		series := windows.Series{Type: "view"}
		candidates := make(map[string]bool)
		for _, p := range got.partials {
			p.EachOf(series, func(r windows.Row) bool {
				if r.Kind == windows.Item && r.Events > 1 {
					candidates[string(r.Item)] = true
				}
				return true
			})
			if _, heap, ok := p.Sketch(series); ok {
				for _, e := range heap.Sorted() {
					candidates[e.Name] = true
				}
			}
		}
		type estimate struct {
			item string
			low  uint64
			high uint64
		}
		var ranked []estimate
		for item := range candidates {
			low, high := bounds(got.partials, series, item)
			ranked = append(ranked, estimate{item, low, high})
		}
		slices.SortFunc(ranked, func(a, b estimate) int { return int(b.high) - int(a.high) })
		found := make(map[string]estimate)
		for _, e := range ranked[:100] {
			found[e.item] = e
		}
		counts, _ := sound(events)
		o := windowstest.NewOracle(counts)
		from, to := o.Span()
		hits := 0
		for _, r := range o.Top(windowstest.Question{From: from, To: to}, windowstest.Views, 100) {
			if e, ok := found[r.Item]; ok && e.low <= r.Events && r.Events <= e.high {
				hits++
			}
		}
		if hits < 99 {
			t.Errorf("%d partitions: %d of the top 100 are found inside their bounds, asked for 99", partitions, hits)
		}
	}
}

// snapshot returns what the keeper holds: its positions, and how many events
// count in them.
func (k *keeper) snapshot() (positions []windows.Position, counted uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, seals := range k.seals {
		for _, s := range seals {
			for _, p := range s.Partials {
				counted += siteEvents(&p.Content)
			}
		}
	}
	return slices.Clone(k.positions), counted
}

func siteEvents(c *windows.Content) (n uint64) {
	for _, s := range c.Series() {
		if row, ok := c.Find(s, windows.Site, sketches.Hash128{}); ok && s.Dimension == "" {
			n += row.Events
		}
	}
	return n
}

// While windows are sealed and stored, who reads the store first and then what it
// lacks sees every event once: the total never falls, and is never more than there is.
func TestATotalNeverFallsWhileSealing(t *testing.T) {
	shape := modelStream(8)
	shape.Dims, shape.Duplicates = nil, 0
	events := shape.Stream()
	const partitions = 3
	hasher := sketches.NewHasher(modelKey)
	split := windowstest.Split(hasher, events, partitions, modelStamp)
	store := newKeeper(partitions)
	e := windows.NewEngine(windows.EngineConfig{
		Log: windows.LogID{1}, Positions: slices.Clone(store.positions), Hasher: hasher, Limits: plenty,
		Memory: 300_000, History: true, Store: store, Logger: slog.New(slog.DiscardHandler),
		Judge: func(int) windows.Judge {
			return &windowstest.Judge{Generation: modelGeneration, MaxLateness: -1, MaxSkew: modelSkew.Milliseconds()}
		},
		Look: func(o int64) int64 { return windowstest.Look(o, modelGeneration) },
	})
	total := func() uint64 {
		for {
			positions, n := store.snapshot()
			fresh := true
			for p := range partitions {
				fresh = fresh && e.Read(p, positions[p].To, func(c *windows.Content) { n += siteEvents(c) })
			}
			if fresh {
				return n
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p := range split {
			for batch := range slices.Chunk(split[p], 200) {
				if err := e.Submit(t.Context(), p, windows.Batch{Events: batch}); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	reads, last := 0, uint64(0)
	for running := true; running; reads++ {
		select {
		case <-done:
			running = false
		default:
		}
		n := total()
		if n < last || n > uint64(len(events)) {
			t.Fatalf("read %d: %d events, it was %d; there are %d", reads, n, last, len(events))
		}
		last = n
	}
	if err := e.Finish(int64(len(events))); err != nil {
		t.Fatal(err)
	}
	if n := total(); n != uint64(len(events)) {
		t.Errorf("%d events at the end, there are %d", n, len(events))
	}
	if reads < 10 {
		t.Errorf("only %d reads: this run shows nothing", reads)
	}
}
