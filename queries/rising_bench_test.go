package queries_test

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"net/url"
	"runtime"
	"slices"
	"testing"
	"time"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/store"
	"tidemark/windows/windowstest"
)

// risingRate is how many events a minute a live stream has while what rises is asked.
const risingRate = 60_000

// BenchmarkRising measures what rises in a live stream where all items are known,
// asked every second of the stream: the CPU time of a question. The mean has the
// sums in it that are made once a minute.
func BenchmarkRising(b *testing.B) {
	items := benchItems(b)
	hasher := sketches.NewHasher(queriestest.Key)
	disk := newOnDisk(b, store.Retention{}, 0)(queriestest.Setup{Partitions: benchPartitions}, hasher)
	positions := make([]windows.Position, benchPartitions)
	e := make([]uint64, benchPartitions)
	for i := range positions {
		e[i] = uint64(i + 1)
		positions[i].E = e[i]
	}
	log := windows.LogID{1}
	if err := disk.Begin(log, "bench", e); err != nil {
		b.Fatal(err)
	}
	engine := windows.NewEngine(windows.EngineConfig{
		Log: log, Positions: positions, Hasher: hasher, Limits: queriestest.Plenty, Memory: 1 << 30,
		Judge: func(int) windows.Judge { return &windowstest.Judge{Generation: 1 << 40, MaxLateness: -1} },
		Look:  func(int64) int64 { return 0 }, Lateness: 30 * time.Second, MaxSkew: 100 * 365 * 24 * time.Hour, Idle: time.Hour,
		End:   func(int) (int64, bool) { return 0, false },
		Store: disk, Logger: slog.New(slog.DiscardHandler),
	})
	b.Cleanup(engine.Close)
	answers := queries.New(queries.Config{
		Snapshot: disk.Snapshot, Hasher: hasher, ViewTypes: []string{"view"}, Live: []queries.Live{{Windows: engine, Watermark: engine.Watermark}},
	})
	f := &benchFeed{b: b, engine: engine, r: rand.New(rand.NewPCG(1, 2))}
	f.zipf = rand.NewZipf(f.r, 1.1, 1, uint64(items-1))
	for i := range items {
		name := []byte(benchName(i + 1))
		f.names, f.hashes = append(f.names, name), append(f.hashes, hasher.Item(name))
	}
	start := benchEnd.Add(-2 * time.Hour)
	for minute := range 70 {
		for i := range items / 60 {
			f.add(start.Add(time.Duration(minute)*time.Minute), uint64((minute*(items/60)+i)%items))
		}
		for range risingRate {
			f.add(start.Add(time.Duration(minute)*time.Minute), f.zipf.Uint64())
		}
	}
	second := func(n int) time.Time { return start.Add(70*time.Minute + time.Duration(n)*time.Second) }
	n := 0
	for _, last := range []string{"5m", "60m"} {
		b.Run(last, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took []time.Duration
			sum := time.Duration(0)
			for b.Loop() {
				for range risingRate / 60 {
					f.add(second(n), f.zipf.Uint64())
				}
				f.flush()
				n++
				begin := threadTime(b)
				_, err := answers.Ask(b.Context(), "top", url.Values{"by": {"rising"}, "last": {last}}, second(n))
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, threadTime(b)-begin)
				sum += took[len(took)-1]
			}
			slices.Sort(took)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "ms-p50")
			b.ReportMetric(math.Round(float64(sum.Microseconds())/float64(len(took)))/1e3, "ms-mean")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1e3, "ms-max")
		})
	}
}
