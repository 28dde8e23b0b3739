package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

// machine is a file system that is cut off before its nth operation that changes
// something, and what is there for the next life then.
type machine struct {
	disk *vfs.MemFS
	fs   vfs.FS
	at   int64 // 0: not by itself
	kept int   // percent of what is not synced that is left; killed: all, and as little synced
	rng  *rand.Rand

	mu   sync.Mutex
	done int64
	off  atomic.Pointer[vfs.MemFS] // what is left, once it is cut off
}

// killed is a process that is killed on a machine that goes on.
const killed = -1

func newMachine(disk *vfs.MemFS, at int64, kept int, seed uint64) *machine {
	m := &machine{disk: disk, at: at, kept: kept, rng: newRand(seed)}
	m.fs = errorfs.Wrap(disk, errorfs.InjectorFunc(m.before))
	return m
}

func (m *machine) before(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		if m.off.Load() != nil {
			return errGone
		}
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off.Load() != nil {
		return errGone
	}
	if m.done++; m.done == m.at {
		m.cutLocked()
		return errGone
	}
	return nil
}

func (m *machine) cutLocked() {
	if m.kept == killed {
		m.off.Store(m.disk)
	} else {
		m.off.Store(m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: m.kept, RNG: m.rng}))
	}
}

// cut cuts it off now, if it is not yet, and returns what is left.
func (m *machine) cut() *vfs.MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off.Load() == nil {
		m.cutLocked()
	}
	return m.off.Load()
}

// live opens the journal, checks it, and does some work, which a power cut may end.
// It returns whether there was one.
func live(m *machine, w *world, rng *rand.Rand, senders, groups int) (bool, error) {
	o := options(m.fs)
	o.Partitions = w.partitions
	j, err := Open(o)
	if err != nil {
		if m.off.Load() == nil {
			return false, fmt.Errorf("open: %w", err)
		}
		return true, nil
	}
	defer j.Close()
	if err := w.check(j); err != nil && m.off.Load() == nil {
		return false, fmt.Errorf("after open: %w", err)
	}
	for round := range 3 {
		var wg sync.WaitGroup
		for range senders {
			var work [][]Record
			for range groups {
				work = append(work, w.group(rng, 3, 3000))
			}
			wg.Go(func() {
				for _, g := range work {
					if w.append(j, g) != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		if round == 1 && rng.IntN(2) == 0 {
			behind := j.First()
			for p, end := range j.Ends() {
				behind[p] += rng.Int64N(end - behind[p] + 1)
			}
			_ = j.Trim(context.Background(), behind, time.Now().Add(time.Hour)) // fails with the machine
		}
		if m.off.Load() != nil {
			return true, nil
		}
	}
	if err := w.check(j); err != nil && m.off.Load() == nil {
		return false, fmt.Errorf("at the end: %w", err)
	}
	return m.off.Load() != nil, nil
}

// J1–J3, J5, J7: the power is cut before every operation of a short life, and different
// parts of what was not synced are left; the next lives have all that they should.
func TestPowerCutAtEveryOperation(t *testing.T) {
	for _, kept := range []int{0, 30, 70, 100, killed} {
		t.Run(fmt.Sprintf("kept=%d%%", kept), func(t *testing.T) {
			for at := int64(1); ; at++ {
				rng := newRand(uint64(at))
				w := newWorld(3)
				m := newMachine(vfs.NewCrashableMem(), at, kept, rng.Uint64())
				cut, err := live(m, w, rng, 2, 2)
				if err != nil {
					t.Fatalf("cut at %d: %v", at, err)
				}
				for life := range 3 {
					// The lives that follow are cut too, some of them while they open.
					m = newMachine(m.cut(), 1+rng.Int64N(12), max(kept, 0), rng.Uint64())
					if _, err := live(m, w, rng, 2, 1); err != nil {
						t.Fatalf("cut at %d, life %d: %v", at, life, err)
					}
				}
				m = newMachine(m.cut(), 0, 0, 0)
				if _, err := live(m, w, rng, 1, 1); err != nil {
					t.Fatalf("cut at %d, last life: %v", at, err)
				}
				if !cut {
					return
				}
			}
		})
	}
}

// The same with all drawn at random, and lives that end in order, by a kill, or by
// a power cut at once, or later.
func TestLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(1, 5).Draw(t, "partitions"))
		disk := vfs.NewCrashableMem()
		for life := range rapid.IntRange(2, 6).Draw(t, "lives") {
			seed := rapid.Uint64().Draw(t, "seed")
			kept := rapid.SampledFrom([]int{killed, 0, 10, 50, 90, 100}).Draw(t, "kept")
			at := rapid.Int64Range(0, 60).Draw(t, "cut at") // 0: an orderly end first
			m := newMachine(disk, at, kept, seed)
			_, err := live(m, w, newRand(seed), rapid.IntRange(1, 6).Draw(t, "senders"), rapid.IntRange(1, 4).Draw(t, "groups"))
			if err != nil {
				t.Fatalf("life %d: %v", life, err)
			}
			disk = m.cut()
		}
		if _, err := live(newMachine(disk, 0, 0, 0), w, newRand(1), 1, 1); err != nil {
			t.Fatalf("last life: %v", err)
		}
	})
}
