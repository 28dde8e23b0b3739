package queries_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/store"
	"tidemark/windows/windowstest"
)

// The store that questions are measured on: 30 days, each with every item and
// twice as many further events by Zipf's law. Of the last day there are all
// minutes; of the others one an hour, which is as much to read once they are
// rolled up.
const (
	benchDays         = 30
	benchMinuteEvents = 10_000
	benchPartitions   = 4
)

// benchItems is how many items a day has. BENCH_ITEMS=1000000 is what the engine is made
// for, and takes minutes to build: BENCH_STORE names a folder that it is kept in.
func benchItems(b *testing.B) int {
	b.Helper()
	n, err := strconv.Atoi(os.Getenv("BENCH_ITEMS"))
	if err != nil {
		return 50_000
	}
	return n
}

// benchEnd is where the last minute ends.
var benchEnd = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// BenchmarkQuestions measures questions about a store of 30 days, warm: the CPU
// time of a question, since the machine may be shared.
func BenchmarkQuestions(b *testing.B) {
	items := benchItems(b)
	b.Run(fmt.Sprintf("%d-items-a-day", items), func(b *testing.B) { benchStore(b, items) })
}

func benchStore(b *testing.B, items int) {
	b.Helper()
	dir := os.Getenv("BENCH_STORE") // kept for the next run
	if dir == "" {
		dir = b.TempDir()
	}
	b.Run("opening", func(b *testing.B) { benchOpening(b, dir, items) })
	_, e := benchEngine(b, dir, items)
	r := rand.New(rand.NewPCG(5, 6))
	randomItem := func() string { // of random popularity, by its logarithm
		return benchName(int(math.Exp(r.Float64() * math.Log(float64(items)))))
	}
	at := func() string { // not the end of a whole hour, which would be a single read
		return benchEnd.Add(-time.Duration(1+r.IntN(600)) * time.Minute).Format(time.RFC3339)
	}
	for _, last := range []string{"60m", "24h", "30d"} {
		benchQuestions(b, "viewers/"+last, e, "viewers", 2000, func() url.Values {
			return url.Values{"item": {randomItem()}, "last": {last}, "at": {at()}}
		})
	}
	for _, last := range []string{"60m", "24h", "30d"} {
		benchQuestions(b, "top100-without-viewers/"+last, e, "top", 300, func() url.Values {
			return url.Values{"last": {last}, "at": {at()}, "limit": {"100"}, "viewers": {"false"}}
		})
	}
	for _, by := range []string{"views", "viewers"} {
		for _, last := range []string{"60m", "24h", "30d"} {
			n := 300
			if by == "viewers" {
				n = 50
			}
			benchQuestions(b, "top100-by-"+by+"/"+last, e, "top", n, func() url.Values {
				return url.Values{"by": {by}, "last": {last}, "at": {at()}, "limit": {"100"}}
			})
		}
	}
	benchQuestions(b, "viewers/24h-by-hour", e, "viewers", 500, func() url.Values {
		return url.Values{"item": {randomItem()}, "last": {"24h"}, "at": {at()}, "step": {"hour"}}
	})
}

func benchQuestions(b *testing.B, name string, e *queries.Engine, path string, n int, question func() url.Values) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		questions := make([]url.Values, n)
		for i := range questions {
			questions[i] = question()
		}
		var took []time.Duration
		for b.Loop() {
			took = took[:0]
			for warm := range 2 {
				for _, q := range questions {
					begin := threadTime(b)
					if _, err := e.Ask(b.Context(), path, q, benchEnd); err != nil {
						b.Fatal(err)
					}
					if warm > 0 {
						took = append(took, threadTime(b)-begin)
					}
				}
			}
		}
		slices.Sort(took)
		b.ReportMetric(0, "ns/op") // of a whole round: says nothing
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs-p99")
	})
}

// threadTime is how long this thread has computed.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

func benchName(rank int) string { return fmt.Sprintf("item-%07d", rank) }

// benchOpening opens the store, until it can be asked, and closes it.
func benchOpening(b *testing.B, dir string, items int) {
	b.Helper()
	disk, _ := benchEngine(b, dir, items)
	if err := disk.Close(); err != nil {
		b.Fatal(err)
	}
	size := int64(0)
	if err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if info, ierr := e.Info(); err == nil && ierr == nil {
			size += info.Size()
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		disk, e := benchEngine(b, dir, items)
		if _, err := e.Ask(b.Context(), "viewers", url.Values{"last": {"24h"}, "at": {benchEnd.Format(time.RFC3339)}}, benchEnd); err != nil {
			b.Fatal(err)
		}
		if err := disk.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/1e9, "GB")
}

// benchEngine opens the store, which it fills if it is new, and an engine over it.
func benchEngine(b *testing.B, dir string, items int) (*onDisk, *queries.Engine) {
	b.Helper()
	hasher := sketches.NewHasher(queriestest.Key)
	disk := openOnDisk(b, dir+"/store", store.Retention{}, 0)(queriestest.Setup{Partitions: benchPartitions}, hasher).(*onDisk)
	answers := queries.New(queries.Config{Snapshot: disk.Snapshot, Hasher: hasher, ViewTypes: []string{"view"}})
	log := windows.LogID{1}
	if logs := disk.Logs(); len(logs) > 0 && logs[0].Done {
		return disk, answers
	}
	positions := make([]windows.Position, benchPartitions)
	e := make([]uint64, benchPartitions)
	for i := range positions {
		e[i] = uint64(i + 1)
		positions[i].E = e[i]
	}
	if err := disk.Begin(log, "bench", e); err != nil {
		b.Fatal(err)
	}
	engine := windows.NewEngine(windows.EngineConfig{
		Log: log, Positions: positions, Hasher: hasher, Limits: queriestest.Plenty, Memory: 1 << 30, History: true,
		Judge:  func(int) windows.Judge { return &windowstest.Judge{Generation: 1 << 40, MaxLateness: -1} },
		Look:   func(int64) int64 { return 0 },
		Store:  disk,
		Logger: slog.New(slog.DiscardHandler),
	})
	f := &benchFeed{b: b, engine: engine, r: rand.New(rand.NewPCG(1, 2)), zipf: nil}
	f.zipf = rand.NewZipf(f.r, 1.1, 1, uint64(items-1))
	for i := range items {
		name := []byte(benchName(i + 1))
		f.names, f.hashes = append(f.names, name), append(f.hashes, hasher.Item(name))
	}
	start := benchEnd.AddDate(0, 0, -benchDays)
	for day := range benchDays - 1 {
		for i := range 3 * items {
			item := uint64(i)
			if i >= items {
				item = f.zipf.Uint64()
			}
			f.add(start.AddDate(0, 0, day).Add(time.Duration(i%24)*time.Hour), item)
		}
	}
	last := benchEnd.AddDate(0, 0, -1)
	for minute := range 24 * 60 {
		for range benchMinuteEvents {
			f.add(last.Add(time.Duration(minute)*time.Minute), f.zipf.Uint64())
		}
	}
	f.flush()
	if err := errors.Join(engine.Finish(f.offset), disk.Finish(log)); err != nil {
		b.Fatal(err)
	}
	return disk, answers
}

// benchFeed hands events to an engine.
type benchFeed struct {
	b       *testing.B
	engine  *windows.Engine
	r       *rand.Rand
	zipf    *rand.Zipf
	names   [][]byte
	hashes  []sketches.Hash128
	offset  int64
	batches [benchPartitions][]windows.Event
}

func (f *benchFeed) add(at time.Time, item uint64) {
	user := f.r.Uint64N(uint64(len(f.names)))*0x9e3779b97f4a7c15 + 1
	p := user >> 32 % benchPartitions
	f.batches[p] = append(f.batches[p], windows.Event{
		Offset: f.offset, Stamp: 1 << 41, Time: at.UnixMilli(), Item: f.names[item], ItemHash: f.hashes[item],
		Type: []byte("view"), User: user, HasUser: true,
	})
	f.offset++
	if len(f.batches[p]) == 4096 {
		f.submit(int(p))
	}
}

func (f *benchFeed) submit(p int) {
	if err := f.engine.Submit(f.b.Context(), p, windows.Batch{Events: f.batches[p]}); err != nil {
		f.b.Fatal(err)
	}
	f.batches[p] = nil
}

func (f *benchFeed) flush() {
	for p := range f.batches {
		f.submit(p)
	}
}
