package journal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// faults is a file system whose operations fail as a function says.
type faults struct {
	vfs.FS

	mu   sync.Mutex
	fail func(n int, op errorfs.Op) error // n counts operations that change something, from 1
	n    int
}

func newFaults(fs vfs.FS) *faults {
	f := &faults{}
	f.FS = errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		f.mu.Lock()
		if changes(op) {
			f.n++
		}
		n, fail := f.n, f.fail
		f.mu.Unlock()
		if fail == nil {
			return nil
		}
		return fail(n, op)
	}))
	return f
}

// set sets how operations fail from now on; nil: they don't.
func (f *faults) set(fail func(n int, op errorfs.Op) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func changes(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

// How the disk fails: from one operation on, for a number of operations.
var diseases = []struct {
	name  string
	err   error
	until func(from, n int) bool
}{
	{"EIO once", syscall.EIO, func(from, n int) bool { return n <= from }},
	{"EIO five times", syscall.EIO, func(from, n int) bool { return n < from+5 }},
	{"full, for 40 operations", syscall.ENOSPC, func(from, n int) bool { return n < from+40 }},
	{"read-only, for 17 operations", syscall.EROFS, func(from, n int) bool { return n < from+17 }},
}

// J1, J3, J5: every operation that changes something fails, in every way, while a
// journal is made, written, trimmed and opened again. What fails says so; nothing
// that was acknowledged is lost, and writing goes on by itself once the disk works.
func TestFaultAtEveryOperation(t *testing.T) {
	for _, d := range diseases {
		t.Run(d.name, func(t *testing.T) {
			for from := 1; ; from++ {
				var reached bool
				synctest.Test(t, func(t *testing.T) { reached = faultAt(t, from, d.err, d.until) })
				if t.Failed() {
					t.Fatalf("fault at operation %d", from)
				}
				if !reached {
					return
				}
			}
		})
	}
}

var errUntried = errors.New("not tried yet")

func faultAt(t *testing.T, from int, cause error, until func(from, n int) bool) (reached bool) {
	disk := vfs.NewCrashableMem()
	fs := newFaults(disk)
	fs.set(func(n int, op errorfs.Op) error {
		if !changes(op) || n < from || !until(from, n) {
			return nil
		}
		reached = true
		return fmt.Errorf("injected: %w", cause)
	})
	w := newWorld(2)
	rng := newRand(uint64(from))
	for life := range 2 {
		o := options(fs)
		o.Partitions = 2
		j, err := Open(o)
		for err != nil {
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, cause) {
				t.Fatalf("life %d: open: %v", life, err)
			}
			j, err = Open(o)
		}
		must(t, w.check(j))
		for round := range 4 {
			for range 3 {
				err := w.append(j, w.group(rng, 3, 1500))
				if err != nil && (!errors.Is(err, ErrUnavailable) || !errors.Is(err, cause)) {
					t.Fatalf("append: %v", err)
				}
				if err != nil && j.Unavailable() == nil {
					t.Fatal("append failed, and the journal is available")
				}
			}
			must(t, w.check(j)) // what is synced can be read, whatever the state
			if round == 2 {
				if err := j.Trim(t.Context(), j.Ends(), time.Now().Add(time.Hour)); err != nil && !errors.Is(err, cause) {
					t.Fatalf("trim: %v", err)
				}
			}
		}
		for err := errUntried; err != nil; err = w.append(j, w.group(rng, 3, 1500)) {
			if !errors.Is(err, errUntried) && !errors.Is(err, cause) {
				t.Fatalf("append: %v", err)
			}
			time.Sleep(retryMost)
		}
		must(t, w.check(j))
		if life == 0 {
			must(t, j.Close())
			continue
		}
		// A power cut that leaves nothing but what is synced.
		after, err := Open(options(disk.CrashClone(vfs.CrashCloneCfg{})))
		must(t, err)
		must(t, w.check(after))
		must(t, after.Close())
		must(t, j.Close())
	}
	return reached
}

// J5: a disk that forgets what a failed sync was to write, and calls every later
// sync of the file a success, as Linux does.
type forgetful struct {
	*vfs.MemFS

	mu   sync.Mutex
	next bool            // the next sync of data fails
	lost map[string]bool // files whose pages are clean, and nowhere but in memory
}

func (f *forgetful) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.MemFS.Create(name, c)
	return &forgetfulFile{File: file, fs: f, name: strings.TrimSuffix(name, temporarySuffix)}, err
}

func (f *forgetful) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.MemFS.OpenReadWrite(name, c, o...)
	return &forgetfulFile{File: file, fs: f, name: name}, err
}

type forgetfulFile struct {
	vfs.File

	fs   *forgetful
	name string
}

func (f *forgetfulFile) Sync() error { return f.sync(f.File.Sync) }

func (f *forgetfulFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *forgetfulFile) sync(do func() error) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.next {
		f.fs.next, f.fs.lost[f.name] = false, true
		return syscall.EIO
	}
	if f.fs.lost[f.name] {
		return nil
	}
	return do()
}

func TestFailedSyncIsNeverTrusted(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%t", restart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &forgetful{MemFS: vfs.NewCrashableMem(), lost: map[string]bool{}}
				o := options(disk)
				o.Partitions = 1
				w := newWorld(1)
				rng := newRand(1)
				j, err := Open(o)
				must(t, err)
				must(t, w.append(j, w.group(rng, 3, 500)))
				disk.next = true
				if err := w.append(j, w.group(rng, 3, 500)); !errors.Is(err, syscall.EIO) {
					t.Fatalf("append with a failing sync: %v", err)
				}
				if restart {
					// Killed at once. The whole group is still in the page cache.
					must(t, j.Close())
					j, err = Open(o)
					must(t, err)
					if end := j.Ends()[0]; end == int64(len(w.known[0])) {
						t.Fatal("the group was not found: the test shows nothing")
					}
				}
				time.Sleep(time.Minute)
				must(t, w.check(j)) // handed out
				must(t, w.append(j, w.group(rng, 3, 500)))
				after, err := Open(options(disk.CrashClone(vfs.CrashCloneCfg{})))
				must(t, err)
				must(t, w.check(after))
				must(t, after.Close())
				must(t, j.Close())
			})
		})
	}
}

// While the disk fails, what waits and what comes is refused at once, and readers go on.
func TestUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFaults(vfs.NewMem())
		o := options(fs)
		o.Partitions = 1
		j, err := Open(o)
		must(t, err)
		must(t, j.Append(t.Context(), payloads(0, "a", "b")))
		fs.set(func(_ int, op errorfs.Op) error {
			if changes(op) {
				return syscall.ENOSPC
			}
			return nil
		})
		for range 3 {
			began := time.Now()
			if err := j.Append(t.Context(), payloads(0, "c")); !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			if time.Since(began) != 0 {
				t.Error("a refusal took time")
			}
		}
		got, err := readAll(j, []int64{0}, j.Ends())
		must(t, err)
		if len(got) != 2 {
			t.Errorf("read %d records, want 2", len(got))
		}
		time.Sleep(time.Hour)
		if j.Unavailable() == nil {
			t.Error("available with a full disk")
		}
		fs.set(nil)
		time.Sleep(retryMost)
		must(t, j.Unavailable())
		r := payloads(0, "d")
		must(t, j.Append(t.Context(), r))
		if r[0].Offset != 2 {
			t.Errorf("offset %d, want 2: what was not acknowledged has used it up", r[0].Offset)
		}
		must(t, j.Close())
	})
}

// A disk that fails again and again does not fill with segments without a record.
func TestFlappingDiskLeavesNoEmptySegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		fs := newFaults(disk)
		o := options(fs)
		o.Partitions = 1
		j, err := Open(o)
		must(t, err)
		for range 20 {
			fs.set(func(_ int, op errorfs.Op) error {
				if op.Kind == errorfs.OpFileSyncData {
					return syscall.EIO
				}
				return nil
			})
			if err := j.Append(t.Context(), payloads(0, "a")); err == nil {
				t.Fatal("taken")
			}
			fs.set(nil)
			time.Sleep(retryMost)
		}
		must(t, j.Append(t.Context(), payloads(0, "b")))
		must(t, j.Close())
		names, err := disk.List(o.Dir)
		must(t, err)
		slices.Sort(names)
		if want := []string{segmentName(1), lockName}; !slices.Equal(names, want) {
			t.Errorf("files %v, want %v", names, want)
		}
	})
}

// Reading fails with what the disk says, and goes on when that has gone.
func TestReadError(t *testing.T) {
	fs := newFaults(vfs.NewMem())
	o := options(fs)
	o.Partitions, o.RecentBytes = 1, 1
	j := open(t, o)
	must(t, j.Append(t.Context(), payloads(0, "a", "b")))
	r, err := j.NewReader([]int64{1})
	must(t, err)
	defer r.Close()
	fs.set(func(_ int, op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt {
			return syscall.EIO
		}
		return nil
	})
	var b Batch
	if err := r.Next(t.Context(), &b); !errors.Is(err, syscall.EIO) || errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	fs.set(nil)
	must(t, r.Next(t.Context(), &b))
	if string(b.Records[0].Payload) != "b" {
		t.Errorf("read %q", b.Records[0].Payload)
	}
}
