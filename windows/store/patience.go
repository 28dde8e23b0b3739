package store

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// patience is the file system under a store that outlives a disk that is full, or
// can't be written for a while: whoever writes waits there, inside of Pebble, and goes
// on once it works. Told of the failure, Pebble would take nothing more, nor let itself be
// closed. What was not written may be written again; what was not synced may not, so
// a failed sync is told.
//
// A store that Pebble has given up is left to its goroutines. So that another opening can
// take its place in this process, nothing of them gets through to the disk any more.
type patience struct {
	vfs.FS
	log     *slog.Logger
	patient atomic.Bool
	revoked atomic.Bool
	ended   chan struct{} // closed when nobody waits any more
	end     sync.Once

	mu      sync.Mutex
	waiting int   // how many wait
	why     error // the last of them
	lock    io.Closer
}

func newPatience(fs vfs.FS, log *slog.Logger) *patience {
	return &patience{FS: fs, log: log, ended: make(chan struct{})}
}

var errRevoked = errors.New("the store was opened anew")

// passing reports whether an operation failed before it did anything, for a reason that
// passes when somebody sees to the disk.
func passing(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// How long after a failure the disk is tried again: at first, and at most.
const (
	patienceFirst = 20 * time.Millisecond
	patienceMost  = time.Second
)

// do does something that changes the disk, as often as it takes.
func (p *patience) do(f func() error) error {
	if p.revoked.Load() {
		return errRevoked
	}
	err := f()
	if !passing(err) || !p.patient.Load() {
		return err
	}
	began := time.Now()
	p.begin(err)
	defer p.done(began)
	for wait := patienceFirst; passing(err); wait = min(2*wait, patienceMost) {
		timer := time.NewTimer(wait)
		select {
		case <-p.ended:
			timer.Stop()
			return err
		case <-timer.C:
		}
		if p.revoked.Load() {
			return errRevoked
		}
		err = f()
	}
	return err
}

func (p *patience) begin(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == 0 {
		p.log.Error("the store can't be written, and waits: see to the disk; it goes on by itself", "err", err)
	}
	p.waiting++
	p.why = err
}

func (p *patience) done(began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting--; p.waiting == 0 {
		p.log.Info("the store no longer waits for the disk", "after", time.Since(began))
	}
}

// reason returns what is waited for, or nil.
func (p *patience) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == 0 {
		return nil
	}
	return p.why
}

// impatient has everybody fail who waits, or would.
func (p *patience) impatient() {
	p.patient.Store(false)
	p.end.Do(func() { close(p.ended) })
}

// revoke keeps everybody from the disk, and gives up the folder.
func (p *patience) revoke() error {
	p.revoked.Store(true)
	p.impatient()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock == nil {
		return nil
	}
	return p.lock.Close()
}

// Lock implements vfs.FS.
func (p *patience) Lock(name string) (io.Closer, error) {
	lock, err := p.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lock = &onceCloser{Closer: lock}
	return p.lock, nil
}

// onceCloser is closed by Pebble or by revoke, whichever comes first.
type onceCloser struct {
	io.Closer
	once sync.Once
	err  error
}

// Close implements io.Closer.
func (c *onceCloser) Close() error {
	c.once.Do(func() { c.err = c.Closer.Close() })
	return c.err
}

func (p *patience) file(open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := p.do(func() (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &patientFile{f, p}, nil
}

// Create implements vfs.FS.
func (p *patience) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(func() (vfs.File, error) { return p.FS.Create(name, category) })
}

// OpenReadWrite implements vfs.FS.
func (p *patience) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return p.file(func() (vfs.File, error) { return p.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (p *patience) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(func() (vfs.File, error) { return p.FS.ReuseForWrite(oldname, newname, category) })
}

// Link implements vfs.FS.
func (p *patience) Link(oldname, newname string) error {
	return p.do(func() error { return p.FS.Link(oldname, newname) })
}

// Remove implements vfs.FS.
func (p *patience) Remove(name string) error {
	return p.do(func() error { return p.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (p *patience) RemoveAll(name string) error {
	return p.do(func() error { return p.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (p *patience) Rename(oldname, newname string) error {
	return p.do(func() error { return p.FS.Rename(oldname, newname) })
}

// MkdirAll implements vfs.FS.
func (p *patience) MkdirAll(dir string, perm os.FileMode) error {
	return p.do(func() error { return p.FS.MkdirAll(dir, perm) })
}

// Unwrap implements vfs.FS.
func (p *patience) Unwrap() vfs.FS { return p.FS }

// patientFile is a file that is written with patience.
type patientFile struct {
	vfs.File
	p *patience
}

// Write implements vfs.File.
func (f *patientFile) Write(b []byte) (n int, err error) {
	err = f.p.do(func() error {
		m, err := f.File.Write(b[n:])
		n += max(0, m)
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f *patientFile) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.p.do(func() error {
		m, err := f.File.WriteAt(b[n:], at+int64(n))
		n += max(0, m)
		return err
	})
	return n, err
}

// Preallocate implements vfs.File. It is a hint.
func (f *patientFile) Preallocate(offset, length int64) error {
	if err := f.File.Preallocate(offset, length); !passing(err) {
		return err
	}
	return nil
}
