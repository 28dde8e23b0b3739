package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Trim removes the oldest segments, as far as all their records are at offsets
// below those of r, one for each partition, and arrived before olderThan. A last
// segment that begins before olderThan is ended, so that what trickles in can be
// removed one day: what is kept is at most twice as old as what Trim is called with.
func (j *Journal) Trim(ctx context.Context, r []int64, olderThan time.Time) error {
	if j.opts.ReadOnly {
		return ErrReadOnly
	}
	if len(r) != j.partitions {
		return fmt.Errorf("trim journal: %d offsets for %d partitions", len(r), j.partitions)
	}
	j.trimming.Lock()
	defer j.trimming.Unlock()
	if err := j.endOld(ctx, olderThan); err != nil {
		return err
	}
	for s := j.trimmable(r, olderThan); s != nil; s = j.trimmable(r, olderThan) {
		if err := j.remove(s); err != nil {
			return fmt.Errorf("trim journal: %w", err)
		}
	}
	return nil
}

// endOld has the writer begin a new segment, if the last one is old. Where it can't
// at present, there is still the room of older ones to be had.
func (j *Journal) endOld(ctx context.Context, olderThan time.Time) error {
	r := &request{olderThan: olderThan.UnixMilli(), done: make(chan error, 1)}
	if r.olderThan <= 0 {
		return nil
	}
	err := j.queue.put(r)
	if err == nil {
		select {
		case err = <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// trimmable returns the oldest segment, if it may be removed.
func (j *Journal) trimmable(r []int64, olderThan time.Time) *segment {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if len(j.segments) < 2 {
		return nil
	}
	next := j.segments[1]
	if next.floor >= olderThan.UnixMilli() {
		return nil
	}
	for p, o := range next.offsets {
		if o > r[p] {
			return nil
		}
	}
	return j.segments[0]
}

// remove removes the oldest segment. Its name must be gone for good before that of
// the next one can go (J7).
func (j *Journal) remove(s *segment) error {
	if j.unsynced {
		if err := j.syncDir(); err != nil {
			return err
		}
	}
	j.unsynced = true
	if err := j.opts.FS.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	j.mu.Lock()
	j.segments = j.segments[1:]
	j.opts.Metrics.kept(len(j.segments))
	j.mu.Unlock()
	if err := j.syncDir(); err != nil {
		return err
	}
	j.unsynced = false
	return nil
}
