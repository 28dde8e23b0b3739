package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// Partitions seal, periods are rolled up and folded, readers read, and backups are
// made, all at once: in every snapshot, and in every backup, the plan of a range says
// what its minutes say.
func TestEverythingAtOnce(t *testing.T) {
	const partitions, rounds = 3, 25
	w := newLevelWorld(8, partitions, windows.Limits{})
	var seals [partitions][]*windows.Seal
	for round := range rounds {
		for p := range partitions {
			seals[p] = append(seals[p], w.seal(t, p, round*worldDays/rounds))
			w.applied = append(w.applied, seals[p][round])
		}
	}
	o := memOptions(partitions)
	s := open(t, o)
	begin(t, s)
	s.sizes = sizes{batch: 3000, file: 20_000, chunks: 1 << 20, minChunk: 1000, maxChunk: 1 << 16}
	var sealing, others sync.WaitGroup
	ended := make(chan struct{})
	for p := range partitions {
		sealing.Go(func() {
			for _, seal := range seals[p] {
				if err := s.Apply(seal); err != nil {
					t.Error(err)
				}
			}
		})
	}
	others.Go(func() {
		for {
			if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
				t.Error(err)
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	})
	for reader := range 2 {
		others.Go(func() {
			for i := 0; ; i++ {
				r := windows.Range{To: windows.MaxMinute}
				if i%2 == 1 {
					r = windows.Range{From: worldFirst + windows.Minute(17*i*(reader+1)%2000), To: worldFirst + 3000 + windows.Minute(i*61%2000)}
				}
				readBothWays(t, s, r)
				select {
				case <-ended:
					return
				default:
				}
			}
		})
	}
	backups := 0
	others.Go(func() {
		for ; ; backups++ {
			readBackup(t, s, fmt.Sprint("backup-", backups), partitions)
			select {
			case <-ended:
				return
			default:
			}
		}
	})
	sealing.Wait()
	close(ended)
	others.Wait()
	if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
		t.Fatal(err)
	}
	w.check(t, s, "at the end")
	t.Logf("%d backups", backups)
}

// readBackup makes a backup, and reads it both ways.
func readBackup(t *testing.T, s *Store, dir string, partitions int) {
	if err := s.Backup(dir); err != nil {
		t.Error(err)
		return
	}
	o := testOptions(dir, partitions)
	o.FS, o.Create, o.ReadOnly = s.opts.FS, false, true
	b, err := Open(o)
	if err != nil {
		t.Errorf("%s: %v", dir, err)
		return
	}
	readBothWays(t, b, windows.Range{To: windows.MaxMinute})
	if err := errors.Join(b.Close(), o.FS.RemoveAll(dir)); err != nil {
		t.Error(err)
	}
}

// readBothWays reads a range of a new snapshot by its plan, and minute by minute.
func readBothWays(t *testing.T, s *Store, r windows.Range) {
	n, err := s.Snapshot()
	if err != nil {
		t.Error(err)
		return
	}
	defer n.Close()
	together := func(windows.Part) windows.Minute { return 0 }
	var got [2]*windowstest.Merged
	steps, _ := n.Plan([]windows.Minute{r.From, r.To})
	for i, at := range [][]windows.Stretch{{{Range: r}}, steps} {
		if got[i], err = readAll(n, at, together); err != nil {
			t.Error(err)
			return
		}
	}
	if diff := got[0].Diff(got[1]); diff != "" {
		t.Errorf("%v by %v: %s", r, steps, diff)
	}
}
