package queriestest

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"tidemark/queries"
	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// Key is the hash key of all tests, so that what sketches make of a set of users
// is always the same.
var Key = sketches.Key{2, 7, 1, 8}

// Backing is a store under test.
type Backing interface {
	windows.Applier
	// Begin makes a log known, with the E of each partition.
	Begin(id windows.LogID, name string, e []uint64) error
	// Finish says that it has been read to its end.
	Finish(id windows.LogID) error
	Snapshot() (queries.Snapshot, error)
}

// Setup says how events come to be answered from. None of it may change an answer
// while no window is over its limits.
type Setup struct {
	Partitions int // 0: 1
	Batch      int // events at once; 0: 1,000
	Memory     int // budget of the open windows, bytes; 0: plenty. A small one cuts often
	Limits     windows.Limits
	Dimensions []string
	ViewTypes  []string // nil: view
	ListSize   int      // items in a part's list; 0: all
	// Live leaves the log unfinished: what no cut has closed is in open windows.
	Live bool
	// Watermark is that of a live log, Unix ms; 0: the log is history.
	Watermark int64
	// BrokenOff stores everything, but not that the log has come to its end.
	BrokenOff bool
	Settling  time.Duration
	// Store makes the store; nil: one in memory.
	Store func(s Setup, h sketches.Hasher) Backing
}

// Plenty are limits that no test reaches by chance.
var Plenty = windows.Limits{Items: 1 << 22, Values: 1 << 12}

// stamp is the timestamp of all records: the start of an import.
const stamp = 1_800_000_000_000

// lookBack is the generation of the look-back: it reaches over every log here.
const lookBack = 1 << 40

// Engine counts the events and returns an engine that answers about them.
func (s Setup) Engine(tb testing.TB, events []windowstest.Event) *queries.Engine {
	tb.Helper()
	s.Partitions = max(1, s.Partitions)
	if s.Limits == (windows.Limits{}) {
		s.Limits = Plenty
	}
	if s.Memory == 0 {
		s.Memory = 1 << 32
	}
	if s.ViewTypes == nil {
		s.ViewTypes = []string{"view"}
	}
	if s.Batch == 0 {
		s.Batch = 1000
	}
	hasher := sketches.NewHasher(Key)
	if s.Store == nil {
		s.Store = func(s Setup, h sketches.Hasher) Backing {
			store := NewStore(h)
			store.ListSize = s.ListSize
			return store
		}
	}
	store := s.Store(s, hasher)
	log := windows.LogID{1}
	positions := make([]windows.Position, s.Partitions)
	e := make([]uint64, s.Partitions)
	for i := range positions {
		e[i] = uint64(i + 1)
		positions[i].E = e[i]
	}
	if err := store.Begin(log, "events.csv", e); err != nil {
		tb.Fatal(err)
	}
	engine := windows.NewEngine(windows.EngineConfig{
		Log:        log,
		Positions:  positions,
		Hasher:     hasher,
		Limits:     s.Limits,
		Dimensions: s.Dimensions,
		Memory:     s.Memory,
		History:    true,
		Judge:      func(int) windows.Judge { return &windowstest.Judge{Generation: lookBack, MaxLateness: -1} },
		Look:       func(o int64) int64 { return windowstest.Look(o, lookBack) },
		Store:      store,
		Logger:     slog.New(slog.DiscardHandler),
	})
	split := windowstest.Split(hasher, events, s.Partitions, stamp)
	for _, events := range split {
		for i := range events { // an event has values of declared dimensions alone
			events[i].Dims = events[i].Dims[:min(len(events[i].Dims), len(s.Dimensions))]
		}
	}
	cfg := queries.Config{Snapshot: store.Snapshot, Hasher: hasher, ViewTypes: s.ViewTypes, Dimensions: s.Dimensions, Settling: s.Settling}
	submit(tb, engine, split, s.Batch)
	if s.Live {
		tb.Cleanup(engine.Close)
		live := queries.Live{Windows: engine}
		if s.Watermark > 0 {
			live.Watermark = func() int64 { return s.Watermark }
		}
		cfg.Live = append(cfg.Live, live)
		return queries.New(cfg)
	}
	if err := engine.Finish(int64(len(events))); err != nil {
		tb.Fatal(err)
	}
	if !s.BrokenOff {
		if err := store.Finish(log); err != nil {
			tb.Fatal(err)
		}
	}
	return queries.New(cfg)
}

// submit hands in the events and waits until they are counted.
func submit(tb testing.TB, engine *windows.Engine, split [][]windows.Event, batch int) {
	tb.Helper()
	var counted sync.WaitGroup
	for p, events := range split {
		for len(events) > 0 {
			n := min(batch, len(events))
			counted.Add(1)
			if err := engine.Submit(tb.Context(), p, windows.Batch{Events: events[:n:n], Release: counted.Done}); err != nil {
				tb.Fatal(err)
			}
			events = events[n:]
		}
	}
	counted.Wait()
}
