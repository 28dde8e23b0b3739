package journal

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"
)

// slowDisk syncs data only when it is let, and counts how often.
type slowDisk struct {
	faults *faults

	entered chan struct{} // gets a value when a sync begins
	let     chan struct{} // takes a value for it to go on
}

func newSlowDisk() *slowDisk {
	return &slowDisk{faults: newFaults(vfs.NewMem()), entered: make(chan struct{}), let: make(chan struct{})}
}

// slow makes the next syncs slow.
func (d *slowDisk) slow() {
	d.faults.set(func(_ int, op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData {
			d.entered <- struct{}{}
			<-d.let
		}
		return nil
	})
}

// What is appended while a sync runs is synced by the next one, together.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		o := options(d.faults)
		o.Partitions = 1
		j, err := Open(o)
		must(t, err)
		d.slow()
		acknowledged := make(chan int64, 20)
		send := func() {
			r := payloads(0, "a")
			must(t, j.Append(t.Context(), r))
			acknowledged <- r[0].Offset
		}
		go send()
		<-d.entered
		for range 10 {
			go send()
		}
		synctest.Wait()
		if len(acknowledged) != 0 || j.Ends()[0] != 0 {
			t.Fatal("acknowledged, or shown, before the sync")
		}
		d.let <- struct{}{}
		<-d.entered
		synctest.Wait()
		if n := len(acknowledged); n != 1 {
			t.Fatalf("%d acknowledged after the first sync, want 1", n)
		}
		d.let <- struct{}{}
		synctest.Wait()
		if n := len(acknowledged); n != 11 {
			t.Fatalf("%d acknowledged after the second sync, want 11", n)
		}
		d.faults.set(nil)
		must(t, j.Close())
	})
}

// J8: what would make the queue overflow is refused at once, and none of it is
// taken; a group that is larger than the queue is taken alone.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		o := options(d.faults)
		o.Partitions, o.QueueBytes = 1, 1000
		j, err := Open(o)
		must(t, err)
		must(t, j.Append(t.Context(), payloads(0, strings.Repeat("x", 5000))))
		d.slow()
		var wg sync.WaitGroup
		for range 9 {
			wg.Go(func() { must(t, j.Append(t.Context(), payloads(0, strings.Repeat("x", 40)))) })
		}
		<-d.entered
		synctest.Wait()
		if err := j.Append(t.Context(), payloads(0, strings.Repeat("x", 200))); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		// A wait that is given up is only that: the group is taken.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := j.Append(ctx, payloads(0, "")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		d.faults.set(nil)
		d.let <- struct{}{}
		wg.Wait()
		synctest.Wait()
		if end := j.Ends()[0]; end != 11 {
			t.Errorf("the journal ends at %d, want 11", end)
		}
		must(t, j.Append(t.Context(), payloads(0, strings.Repeat("x", 200))))
		must(t, j.Close())
		if err := j.Append(t.Context(), payloads(0, "a")); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		must(t, j.Close())
	})
}

// What was taken before Close is written, and acknowledged.
func TestCloseWritesWhatWasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDisk()
		o := options(d.faults)
		o.Partitions = 1
		j, err := Open(o)
		must(t, err)
		d.slow()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { must(t, j.Append(t.Context(), payloads(0, "a"))) })
		}
		<-d.entered
		synctest.Wait()
		wg.Go(func() { must(t, j.Close()) })
		synctest.Wait()
		d.faults.set(nil)
		d.let <- struct{}{}
		wg.Wait()
		got, err := reopen(d.faults)
		must(t, err)
		if len(got) != 5 {
			t.Errorf("%d records, want 5", len(got))
		}
	})
}

// Close does not wait for a disk that fails.
func TestCloseWhileUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFaults(vfs.NewMem())
		o := options(fs)
		o.Partitions = 1
		j, err := Open(o)
		must(t, err)
		fs.set(func(_ int, op errorfs.Op) error {
			if changes(op) {
				return errGone
			}
			return nil
		})
		if err := j.Append(t.Context(), payloads(0, "a")); !errors.Is(err, errGone) {
			t.Fatal(err)
		}
		must(t, j.Close())
	})
}

// J4: stamps never fall, though the clock does: in a bubble it is the year 2000.
func TestStampsNeverFall(t *testing.T) {
	o := options(vfs.NewMem())
	o.Partitions = 1
	j, err := Open(o)
	must(t, err)
	r := payloads(0, "a")
	must(t, j.Append(t.Context(), r))
	must(t, j.Close())
	last := r[0].Stamp
	if d := time.Since(time.UnixMilli(last)); d < 0 || d > time.Hour {
		t.Fatalf("stamped %v ago", d)
	}
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		o.Logger = slog.New(slog.NewTextHandler(&lines, nil))
		j, err := Open(o)
		must(t, err)
		for range 3 {
			must(t, j.Append(t.Context(), r))
			if r[0].Stamp != last {
				t.Errorf("stamp %d, want %d", r[0].Stamp, last)
			}
		}
		time.Sleep(time.Until(time.UnixMilli(last + 5)))
		must(t, j.Append(t.Context(), r))
		if r[0].Stamp != last+5 {
			t.Errorf("stamp %d, want %d", r[0].Stamp, last+5)
		}
		must(t, j.Close())
		if n := strings.Count(lines.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, lines.String())
		}
	})
}

// J9: another number of partitions, and a second opening, are refused.
func TestOpenRefuses(t *testing.T) {
	fs := vfs.NewMem()
	o := options(fs)
	if _, err := Open(o); !errors.Is(err, ErrNoJournal) {
		t.Errorf("without partitions: %v", err)
	}
	o.ReadOnly = true
	if _, err := Open(o); !errors.Is(err, ErrNoJournal) {
		t.Errorf("read-only: %v", err)
	}
	o.ReadOnly, o.Partitions = false, 2
	j := open(t, o)
	id := j.ID()
	if _, err := Open(o); !errors.Is(err, ErrHeld) {
		t.Errorf("a second time: %v", err)
	}
	must(t, j.Close())
	o.Partitions = 3
	if _, err := Open(o); !errors.Is(err, ErrPartitions) {
		t.Errorf("with another number of partitions: %v", err)
	}
	o.Partitions = 0
	j = open(t, o)
	if j.Partitions() != 2 || j.ID() != id {
		t.Errorf("%d partitions of journal %x, want 2 of %x", j.Partitions(), j.ID(), id)
	}
	_, err := Open(Options{Partitions: -1, SegmentBytes: -1})
	for _, want := range []string{"dir", "logger", "partitions", "segment bytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("invalid options: no word of %s in: %v", want, err)
		}
	}
	for _, p := range []int{-1, 2} {
		if err := j.Append(t.Context(), payloads(p, "a")); err == nil {
			t.Errorf("taken for partition %d of 2", p)
		}
	}
	must(t, j.Append(t.Context(), nil))
}

// A read-only journal is read beside a running one, and ends.
func TestReadOnly(t *testing.T) {
	fs := vfs.NewMem()
	o := options(fs)
	o.Partitions = 2
	j := open(t, o)
	w := newWorld(2)
	rng := newRand(1)
	for range 40 {
		must(t, w.append(j, w.group(rng, 4, 400)))
	}
	before := filesOf(t, fs, o.Dir)
	o.ReadOnly = true
	beside := open(t, o)
	got, err := drain(beside)
	must(t, err)
	if !slices.Equal(beside.Ends(), j.Ends()) || int64(len(got)) != j.Ends()[0]+j.Ends()[1] {
		t.Errorf("read %d records up to %v, want up to %v", len(got), beside.Ends(), j.Ends())
	}
	if err := beside.Append(t.Context(), payloads(0, "a")); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	if err := beside.Trim(t.Context(), j.Ends(), time.Now()); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	for name, content := range filesOf(t, fs, o.Dir) {
		if string(before[name]) != string(content) {
			t.Errorf("%s was changed", name)
		}
	}
}

// However the files change while it is opened and read, a read-only journal is a
// part of the log that ends somewhere, and never looks damaged.
func TestReadOnlyWhileWritten(t *testing.T) {
	o := options(vfs.NewMem())
	o.Partitions, o.SegmentBytes = 1, 10_000
	j := open(t, o)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 2000 {
			if err := j.Append(t.Context(), payloads(0, "a", "b")); err != nil {
				t.Error(err)
				return
			}
			if i%50 == 0 {
				if err := j.Trim(t.Context(), []int64{int64(i)}, time.Now().Add(time.Hour)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	o.ReadOnly = true
	for end := int64(0); end < 4000; {
		beside, err := Open(o)
		must(t, err)
		end = beside.Ends()[0]
		got, err := drain(beside)
		if err != nil && !errors.Is(err, ErrTrimmed) {
			t.Fatal(err)
		}
		if err == nil && int64(len(got)) != end-beside.First()[0] {
			t.Fatalf("%d records from %d to %d", len(got), beside.First()[0], end)
		}
		must(t, beside.Close())
	}
	wg.Wait()
}

// A segment that is removed just before it is opened is not missed.
func TestReadOnlyLooksAgain(t *testing.T) {
	disk := vfs.NewMem()
	o := options(disk)
	o.Partitions, o.SegmentBytes = 1, 1
	j := open(t, o)
	for range 5 {
		must(t, j.Append(t.Context(), payloads(0, "a")))
	}
	fs := newFaults(disk)
	var once sync.Once
	fs.set(func(_ int, op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen {
			once.Do(func() { must(t, j.Trim(t.Context(), []int64{3}, time.Now().Add(time.Hour))) })
		}
		return nil
	})
	o.FS, o.ReadOnly = fs, true
	beside := open(t, o)
	got, err := drain(beside)
	must(t, err)
	if len(got) != 2 || beside.First()[0] != 3 || beside.Ends()[0] != 5 {
		t.Errorf("%d records from %d to %d, want 2 from 3 to 5", len(got), beside.First()[0], beside.Ends()[0])
	}
}

// On the machine's own file system.
func TestOnDisk(t *testing.T) {
	o := Options{
		Dir: t.TempDir() + "/a/b", Partitions: 2, SegmentBytes: 50_000, RecentBytes: 1000,
		Logger: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry()),
	}
	w := newWorld(2)
	rng := newRand(1)
	for range 3 {
		j, err := Open(o)
		must(t, err)
		must(t, w.check(j))
		for range 30 {
			must(t, w.append(j, w.group(rng, 5, 2000)))
		}
		if _, err := Open(o); !errors.Is(err, ErrHeld) {
			t.Errorf("opened twice: %v", err)
		}
		must(t, w.check(j))
		must(t, j.Trim(t.Context(), j.Ends(), time.Now().Add(time.Hour)))
		must(t, w.check(j))
		must(t, j.Close())
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, f := range open {
		if path, err := os.Readlink(f); err == nil && strings.HasPrefix(path, o.Dir) {
			t.Errorf("%s is still open", path)
		}
	}
}

// What is measured is what happened.
func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	o := options(vfs.NewMem())
	o.Partitions, o.Metrics = 1, NewMetrics(reg)
	j := open(t, o)
	must(t, j.Append(t.Context(), payloads(0, "a", "b", "c")))
	must(t, j.Append(t.Context(), payloads(0, "d")))
	got := map[string]float64{}
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"tidemark_journal_appends_total":    2,
		"tidemark_journal_records_total":    4,
		"tidemark_journal_fsync_seconds":    2,
		"tidemark_journal_groups_per_fsync": 2,
		"tidemark_journal_segments":         1,
		"tidemark_journal_unavailable":      0,
		"tidemark_journal_queue_bytes":      0,
		"tidemark_journal_refused_total":    0,
		"tidemark_journal_bytes_total":      float64(j.end),
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
