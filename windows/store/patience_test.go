package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tidemark/windows"
)

// faulty is a file system whose files can't be written, or synced, while it is said so.
type faulty struct {
	vfs.FS
	write, sync atomic.Pointer[error]
}

func (f *faulty) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.write.Load(); err != nil {
		return nil, *err
	}
	file, err := f.FS.Create(name, c)
	return &faultyFile{file, f}, err
}

func (f *faulty) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(old, name, c)
	return &faultyFile{file, f}, err
}

type faultyFile struct {
	vfs.File
	f *faulty
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if err := f.f.write.Load(); err != nil {
		n, _ := f.File.Write(b[:len(b)/2]) // a part of it gets through
		return n, *err
	}
	return f.File.Write(b)
}

func (f *faultyFile) failing(sync func() error) error {
	if err := f.f.sync.Load(); err != nil {
		return *err
	}
	return sync()
}

func (f *faultyFile) Sync() error     { return f.failing(f.File.Sync) }
func (f *faultyFile) SyncData() error { return f.failing(f.File.SyncData) }
func (f *faultyFile) SyncTo(length int64) (full bool, err error) {
	err = f.failing(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// apart runs the test in a process of its own, which ends with what Pebble leaves behind,
// and reports whether this is that process.
func apart(t *testing.T) bool {
	t.Helper()
	const env = "TIDEMARK_TEST_APART"
	if os.Getenv(env) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), env+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return false
	}
	t.Cleanup(func() {
		if !t.Failed() {
			os.Exit(0)
		}
	})
	return true
}

// A patient store waits for a disk that can't be written, answers meanwhile, and goes on.
func TestPatientStoreWaits(t *testing.T) {
	seals := chainOf(t, 3)
	for _, why := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EACCES} {
		fs := &faulty{FS: vfs.Default}
		o := testOptions(filepath.Join(t.TempDir(), "store"), 1)
		o.FS, o.Patient = fs, true
		s := open(t, o)
		begin(t, s)
		if err := s.Apply(seals[0]); err != nil {
			t.Fatal(err)
		}
		fs.write.Store(&why)
		done := make(chan error, 1)
		go func() { done <- s.Apply(seals[1]) }()
		for s.Waiting() == nil {
			select {
			case err := <-done:
				t.Fatalf("%v: applied: %v", why, err)
			case <-time.After(time.Millisecond):
			}
		}
		if !errors.Is(s.Waiting(), why) {
			t.Errorf("it waits for %v, want %v", s.Waiting(), why)
		}
		if diff := sealedRows(seals[:1]).Diff(stored(t, snapshot(t, s))); diff != "" {
			t.Error(diff)
		}
		fs.write.Store(nil)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(seals[2]); err != nil || s.Waiting() != nil {
			t.Fatal(err, s.Waiting())
		}
		if diff := sealedRows(seals).Diff(stored(t, snapshot(t, s))); diff != "" {
			t.Error(diff)
		}
	}
}

// A failed sync is not waited for, nor tried again: writing ends. The store can be opened
// anew by the same process, and what was not acknowledged is there or not, but whole.
func TestFailedSyncIsBegunAnew(t *testing.T) {
	if !apart(t) {
		return
	}
	seals := chainOf(t, 3)
	fs := &faulty{FS: vfs.Default}
	o := testOptions(filepath.Join(t.TempDir(), "store"), 1)
	o.FS, o.Patient = fs, true
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, s)
	if err := s.Apply(seals[0]); err != nil {
		t.Fatal(err)
	}
	why := error(syscall.EIO)
	fs.sync.Store(&why)
	if err := s.Apply(seals[1]); !errors.Is(err, ErrBroken) {
		t.Fatalf("a seal that could not be synced: %v", err)
	}
	fs.sync.Store(nil)
	if err := s.Apply(seals[1]); !errors.Is(err, ErrBroken) {
		t.Fatalf("and again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	have := 1
	if s.Positions(testLog)[0].To == seals[1].To {
		have = 2
	}
	for _, seal := range seals[have:] {
		if err := s.Apply(seal); err != nil {
			t.Fatal(err)
		}
	}
	if diff := sealedRows(seals).Diff(stored(t, snapshot(t, s))); diff != "" {
		t.Error(diff)
	}
}

// Who closes a store that waits gets it closed, and what was acknowledged is there.
func TestPatientStoreGivesUp(t *testing.T) {
	if !apart(t) {
		return
	}
	seals := chainOf(t, 2)
	fs := &faulty{FS: vfs.Default}
	o := testOptions(filepath.Join(t.TempDir(), "store"), 1)
	o.FS, o.Patient = fs, true
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, s)
	if err := s.Apply(seals[0]); err != nil {
		t.Fatal(err)
	}
	why := error(syscall.ENOSPC)
	fs.write.Store(&why)
	done := make(chan error, 1)
	go func() { done <- s.Apply(seals[1]) }()
	for s.Waiting() == nil {
		time.Sleep(time.Millisecond)
	}
	s.GiveUp()
	if err := <-done; !errors.Is(err, ErrBroken) {
		t.Errorf("who waited got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fs.write.Store(nil)
	s = open(t, o)
	if to := s.Positions(testLog)[0].To; to == (windows.Pair{}) {
		t.Error("the first seal is lost")
	}
}
