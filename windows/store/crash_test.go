package store

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// Power is cut at any time, and what was not synced is there or not, block by
// block: afterwards each partition has a number of whole seals, at least those
// that were acknowledged, their names too; those wait for the sink; and the rest can be
// applied.
func TestPowerCut(t *testing.T) {
	const partitions, seals, cuts = 3, 12, 24
	sources := make([]*feeder, partitions)
	for p := range sources {
		sources[p] = newFeeder(p, feederConfig{})
		r := rand.New(rand.NewPCG(uint64(p), 3))
		offset := int64(0)
		for range seals {
			var events []windows.Event
			for range 100 {
				// New names in every seal, the same in all partitions.
				events = append(events, recordOf(offset, windows.Minute(100+r.IntN(3)), "view", fmt.Sprint("item", offset/3+r.Int64N(100)), r.IntN(50)))
				offset++
			}
			sources[p].add(t, events)
			sources[p].end(t, offset)
		}
	}
	for cut := range cuts {
		fs := vfs.NewCrashableMem()
		o := testOptions("store", partitions)
		o.FS = fs
		s := open(t, o)
		begin(t, s)
		if err := s.Subscribe("sink"); err != nil {
			t.Fatal(err)
		}
		var acknowledged [partitions]atomic.Int64
		var running sync.WaitGroup
		until := make(chan struct{})
		after := int64(cut) * partitions * seals / cuts
		var applied atomic.Int64
		for p, src := range sources {
			running.Go(func() {
				for _, seal := range src.seals {
					if err := s.Apply(seal); err != nil {
						t.Error(err)
					}
					acknowledged[p].Add(1)
					if applied.Add(1) == after {
						close(until)
					}
				}
			})
		}
		if after > 0 {
			<-until
		}
		var least [partitions]int64
		for p := range least {
			least[p] = acknowledged[p].Load()
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[cut%3], RNG: rand.New(rand.NewPCG(uint64(cut), 5))})
		running.Wait()
		s.Close()

		o.FS = crashed
		s = open(t, o)
		var want windowstest.Merged
		var waiting []*windows.Seal
		for p, src := range sources {
			have := 0
			if to := s.Positions(testLog)[p].To; to != (windows.Pair{}) {
				for src.seals[have].To != to {
					have++
				}
				have++
			}
			if int64(have) < least[p] {
				t.Fatalf("cut %d: partition %d has %d seals, %d were acknowledged", cut, p, have, least[p])
			}
			waiting = append(waiting, src.seals[:have]...)
			for _, seal := range src.seals[:have] {
				for _, partial := range seal.Partials {
					want.AddContent(&partial.Content)
				}
			}
		}
		if diff := want.Diff(stored(t, snapshot(t, s))); diff != "" {
			t.Fatalf("cut %d: %s", cut, diff)
		}
		checkWaiting(t, s, "sink", waiting)
		for _, src := range sources {
			for _, seal := range src.seals {
				if err := s.Apply(seal); err != nil {
					t.Fatalf("cut %d: %v", cut, err)
				}
			}
		}
		all := sealedRows(nil)
		for _, src := range sources {
			for _, seal := range src.seals {
				for _, partial := range seal.Partials {
					all.AddContent(&partial.Content)
				}
			}
		}
		if diff := all.Diff(stored(t, snapshot(t, s))); diff != "" {
			t.Fatalf("cut %d, gone on: %s", cut, diff)
		}
	}
}
