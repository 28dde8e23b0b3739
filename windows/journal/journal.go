package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"

	"tidemark/windows"
)

// Journal is an open journal. All methods are safe for concurrent use.
type Journal struct {
	opts       Options
	id         windows.LogID
	salt       uint32
	partitions int
	lock       io.Closer

	requests pool
	queue    *queue
	writer   writer
	closing  chan struct{}
	stopped  chan struct{} // closed when the writer has ended

	trimming sync.Mutex // held by Trim, before mu
	unsynced bool       // a segment was removed, and the folder not synced since

	// mu guards what follows: what is synced, as readers may see it.
	mu       sync.RWMutex
	segments []*segment // oldest first; replaced, never changed in place
	end      int64      // position behind the last group
	ends     []int64    // of each partition, the next offset
	stamp    int64      // the highest, Unix ms
	recent   ring
	grown    chan struct{} // closed when there is more, or the journal is closed
	failure  error         // why nothing can be written at present
	closed   bool
}

// Open opens the journal in a folder, or makes it. See Options. It fails with
// ErrPartitions, ErrHeld, ErrDamaged, ErrNoJournal or ErrUnavailable where the error
// wraps one of them. On a full disk a journal can't be opened: what the last
// process has left unsynced must be written first.
func Open(opts Options) (*Journal, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{
		opts:    opts,
		queue:   newQueue(opts.QueueBytes, opts.Metrics),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
		grown:   make(chan struct{}),
	}
	j.writer.j = j
	if err := j.open(); err != nil {
		if j.lock != nil {
			err = errors.Join(err, j.lock.Close())
		}
		return nil, fmt.Errorf("open journal in %s: %w", opts.Dir, err)
	}
	return j, nil
}

func (j *Journal) open() error {
	if j.opts.ReadOnly {
		close(j.stopped)
		return j.loadReadOnly()
	}
	if err := j.opts.FS.MkdirAll(j.opts.Dir, 0o700); err != nil {
		return unavailable(err)
	}
	lock, err := j.opts.FS.Lock(j.opts.FS.PathJoin(j.opts.Dir, lockName))
	if err != nil {
		return lockError(err)
	}
	j.lock = lock
	if err := j.load(); err != nil {
		return unavailable(err)
	}
	j.recent = ring{buf: make([]byte, j.opts.RecentBytes), start: j.end, end: j.end}
	j.opts.Metrics.kept(len(j.segments))
	j.opts.Metrics.available(true)
	go j.writer.run()
	return nil
}

// unavailable says that an error of the disk keeps the journal from being written,
// unless it says something else already.
func unavailable(err error) error {
	for _, other := range []error{ErrDamaged, ErrPartitions, ErrNoJournal, ErrUnavailable} {
		if errors.Is(err, other) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// lockError says what an error of the file system's Lock means.
func lockError(err error) error {
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "lock held by current process") {
		return fmt.Errorf("%w: another process holds it: stop that first: %w", ErrHeld, err)
	}
	return unavailable(err)
}

func newLogID() (id windows.LogID) {
	rand.Read(id[:]) // never fails
	return id
}

// identify takes over whose journal this is.
func (j *Journal) identify(id windows.LogID, partitions int) error {
	if j.opts.Partitions != 0 && j.opts.Partitions != partitions {
		return fmt.Errorf("%w: it has %d, and %d are asked for: partitions are fixed when a journal is made", ErrPartitions, partitions, j.opts.Partitions)
	}
	j.id, j.salt, j.partitions = id, saltOf(id), partitions
	return nil
}

// replace makes s the last segment, in the place of the one that is, where that
// has the same sequence. The caller holds mu, or nobody else has the journal yet.
func (j *Journal) replace(s *segment) {
	segments := slices.Clone(j.segments)
	if last := len(segments) - 1; segments[last].sequence == s.sequence {
		segments = segments[:last]
	}
	segments = append(segments, s)
	j.segments = segments
	j.opts.Metrics.kept(len(j.segments))
}

// ID returns the journal's name, which it was given at random when it was made.
func (j *Journal) ID() windows.LogID { return j.id }

// Partitions returns how many partitions the journal has.
func (j *Journal) Partitions() int { return j.partitions }

// Ends returns the end of what is synced: of each partition the offset that comes next.
func (j *Journal) Ends() []int64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return slices.Clone(j.ends)
}

// First returns of each partition the oldest offset that is kept, or where none is,
// the one that comes next.
func (j *Journal) First() []int64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return slices.Clone(j.segments[0].offsets)
}

// Unavailable returns why nothing can be written at present, or nil.
func (j *Journal) Unavailable() error {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.failure
}

// locate returns the segment that has the position, and where it ends. The caller
// holds mu.
func (j *Journal) locate(position int64) (s *segment, end int64, err error) {
	i := sort.Search(len(j.segments), func(i int) bool { return j.segments[i].base > position }) - 1
	if i < 0 {
		return nil, 0, ErrTrimmed
	}
	if i+1 < len(j.segments) {
		return j.segments[i], j.segments[i+1].base, nil
	}
	return j.segments[i], j.end, nil
}

// publish adds what was synced.
func (j *Journal) publish(data []byte, ends []int64, stamp int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.recent.write(data)
	j.end += int64(len(data))
	copy(j.ends, ends)
	j.stamp = stamp
	close(j.grown)
	j.grown = make(chan struct{})
}

// Close takes nothing more, writes what was taken, and ends. Readers get ErrClosed.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	close(j.closing)
	j.mu.Unlock()

	j.queue.close()
	<-j.stopped
	j.mu.Lock()
	close(j.grown)
	j.mu.Unlock()
	if j.lock == nil {
		return nil
	}
	if err := j.lock.Close(); err != nil {
		return fmt.Errorf("close journal in %s: %w", j.opts.Dir, err)
	}
	return nil
}
