package journal

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// hourly is a journal of two partitions with one record a segment and hour, in a bubble.
func hourly(t *testing.T, fs vfs.FS, hours int) *Journal {
	t.Helper()
	o := options(fs)
	o.Partitions, o.SegmentBytes = 2, 1
	j, err := Open(o)
	must(t, err)
	for i := range hours {
		must(t, j.Append(t.Context(), payloads(i%2, "a")))
		time.Sleep(time.Hour)
	}
	return j
}

// Trim removes whole segments that are behind r in every partition, and old.
func TestTrim(t *testing.T) {
	for _, c := range []struct {
		name  string
		r     []int64
		age   time.Duration
		first []int64
	}{
		{"nothing is old enough", []int64{5, 5}, 11 * time.Hour, []int64{0, 0}},
		{"one partition holds it back", []int64{5, 0}, 0, []int64{1, 0}},
		{"both are behind", []int64{3, 2}, 0, []int64{3, 2}},
		{"age holds it back", []int64{5, 5}, 6*time.Hour - time.Minute, []int64{3, 2}},
		{"all but the last", []int64{5, 5}, time.Hour, []int64{5, 4}},
		{"the last one is old too", []int64{5, 5}, time.Hour - time.Minute, []int64{5, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := vfs.NewCrashableMem()
				j := hourly(t, disk, 10)
				slow, err := j.NewReader([]int64{0, 0})
				must(t, err)
				defer slow.Close()
				must(t, j.Trim(t.Context(), c.r, time.Now().Add(-c.age)))
				if got := j.First(); !slices.Equal(got, c.first) {
					t.Errorf("first %v, want %v", got, c.first)
				}
				_, err = j.NewReader([]int64{0, 0})
				if wiped := c.first[0]+c.first[1] > 0; wiped != errors.Is(err, ErrTrimmed) {
					t.Errorf("from the start: %v", err)
				}
				var b Batch
				if err := slow.Next(t.Context(), &b); (c.first[0]+c.first[1] > 0) != errors.Is(err, ErrTrimmed) {
					t.Errorf("a reader that had not begun: %v", err)
				}
				r := payloads(0, "b")
				must(t, j.Append(t.Context(), r))
				if r[0].Offset != 5 {
					t.Errorf("the next offset is %d, want 5", r[0].Offset)
				}
				must(t, j.Close())

				o := options(disk.CrashClone(vfs.CrashCloneCfg{}))
				again, err := Open(o)
				must(t, err)
				if got := again.First(); !slices.Equal(got, c.first) {
					t.Errorf("first %v after a power cut, want %v", got, c.first)
				}
				got, err := readAll(again, again.First(), again.Ends())
				must(t, err)
				if want := int(6 + 5 - c.first[0] - c.first[1]); len(got) != want {
					t.Errorf("%d records, want %d", len(got), want)
				}
				must(t, again.Close())
			})
		})
	}
}

// Room can be made on a full disk.
func TestTrimOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFaults(vfs.NewMem())
		j := hourly(t, fs, 4)
		removed := false
		fs.set(func(_ int, op errorfs.Op) error {
			switch {
			case op.Kind == errorfs.OpRemove:
				removed = true
			case changes(op) && !removed && op.Kind != errorfs.OpFileSync:
				return syscall.ENOSPC
			}
			return nil
		})
		if err := j.Append(t.Context(), payloads(0, "a")); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		removed = false // by the writer, of what it had begun
		must(t, j.Trim(t.Context(), j.Ends(), time.Now()))
		time.Sleep(retryMost)
		must(t, j.Append(t.Context(), payloads(0, "a")))
		if got := j.First(); !slices.Equal(got, []int64{2, 1}) && !slices.Equal(got, []int64{1, 1}) {
			t.Errorf("first %v", got)
		}
		if err := j.Trim(t.Context(), []int64{0}, time.Now()); err == nil {
			t.Error("one offset for two partitions was taken")
		}
		must(t, j.Close())
		if err := j.Trim(t.Context(), j.Ends(), time.Now()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}
