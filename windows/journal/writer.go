package journal

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// batchBytes is how much is written and synced at a time, unless one group has
	// more. Larger batches are no faster, and those in them wait longer.
	batchBytes = 8 << 20
	// How long after a failure the disk is tried again: at first, and at most.
	retryFirst, retryMost = 100 * time.Millisecond, 2 * time.Second
)

// writer is the goroutine that writes the log. Nobody else uses its fields.
type writer struct {
	j *Journal

	file      vfs.File // of the last segment
	first     int64    // the first stamp in it; 0: none
	next      []int64  // offsets to come
	out       []byte   // groups on their way to the file
	setBack   bool     // the clock is behind the stamps
	unvouched bool     // something was written to the file since
}

// take gives the writer the file of the last segment, and the first stamp in it.
func (w *writer) take(f vfs.File, first int64) {
	w.file, w.first, w.unvouched = f, first, false
	w.next = slices.Clone(w.j.ends)
}

// run writes until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.j.stopped)
	var pending []*request
	for {
		var ok bool
		if pending, ok = w.j.queue.take(pending); !ok {
			w.stop()
			return
		}
		n, err := w.step(pending)
		if err != nil {
			w.fail(err, pending)
			pending = nil
			if !w.restore() {
				return
			}
			continue
		}
		pending = slices.Delete(pending, 0, n)
		// Those who were just answered may append again before the queue is looked at:
		// else the first of them gets a sync for itself, and the others the next one.
		// With 64 senders and a sync of 1 ms: 38,000 instead of 27,000 appends a second.
		runtime.Gosched()
	}
}

// step does what comes first, and returns how many requests are done with.
func (w *writer) step(pending []*request) (int, error) {
	j := w.j
	used := j.end - w.last().base
	if head := pending[0]; head.roll() {
		if used > 0 && w.first < head.olderThan {
			if err := w.roll(); err != nil {
				return 0, err
			}
		}
		j.queue.finish(pending[:1], nil)
		return 1, nil
	}
	room := j.opts.SegmentBytes - used
	if used > 0 && pending[0].size() > room {
		return 0, w.roll()
	}
	n, size := 0, int64(0)
	for n < len(pending) && !pending[n].roll() {
		size += pending[n].size()
		if n > 0 && size > min(room, batchBytes) {
			break
		}
		n++
	}
	return n, w.commit(pending[:n])
}

// last returns the segment that is written. Only the writer adds segments.
func (w *writer) last() *segment {
	w.j.mu.RLock()
	defer w.j.mu.RUnlock()
	return w.j.segments[len(w.j.segments)-1]
}

// commit writes groups, syncs them, shows them to readers and acknowledges them.
func (w *writer) commit(batch []*request) error {
	j := w.j
	stamp := w.now()
	position := j.end
	var data []byte
	if len(batch) == 1 {
		data = batch[0].frame(position, j.end, stamp, w.next) // which may be large
	} else {
		w.out = w.out[:0]
		for _, r := range batch {
			w.out = append(w.out, r.frame(position+int64(len(w.out)), j.end, stamp, w.next)...)
		}
		data = w.out
	}
	began := time.Now()
	if err := w.write(data); err != nil {
		return err
	}
	j.opts.Metrics.committed(batch, len(data), time.Since(began))
	if w.first == 0 {
		w.first = stamp
	}
	w.unvouched = true
	j.publish(data, w.next, stamp)
	j.queue.finish(batch, nil)
	return nil
}

// write puts bytes at the end of the log, on the disk.
func (w *writer) write(data []byte) error {
	if _, err := w.file.WriteAt(data, w.last().at(w.j.end)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := w.file.SyncData(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// now returns the stamp of what arrives now. It never falls (J4), so after the
// clock was set back it stands still until the clock has caught up.
func (w *writer) now() int64 {
	now := time.Now().UnixMilli()
	behind := time.Duration(max(0, w.j.stamp-now)) * time.Millisecond
	w.j.opts.Metrics.stampAhead(behind)
	if setBack := behind > time.Second; setBack != w.setBack {
		w.setBack = setBack
		if setBack {
			w.j.opts.Logger.Warn("the clock is behind the journal's last stamp: it was set back, or had been ahead; stamps stand still until it has caught up",
				"behind", behind, "last_stamp", time.UnixMilli(w.j.stamp).UTC())
		} else {
			w.j.opts.Logger.Info("the clock has caught up with the journal's stamps")
		}
	}
	return max(now, w.j.stamp)
}

// roll begins a new segment behind the last one.
func (w *writer) roll() error {
	j := w.j
	s, f, err := j.begin(w.last().after(&mark{position: j.end, offsets: j.ends, stamp: j.stamp}), nil)
	if err != nil {
		return fmt.Errorf("begin a segment: %w", err)
	}
	if w.file != nil {
		w.file.Close() // all in it is synced, or dropped
	}
	w.take(f, 0)
	j.mu.Lock()
	j.replace(s)
	j.mu.Unlock()
	return nil
}

// fail ends writing because of err: what was to be written is dropped, and nothing
// more is taken. The file is given up (J5).
func (w *writer) fail(err error, pending []*request) {
	j := w.j
	err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	w.file.Close()
	w.file = nil
	j.mu.Lock()
	j.failure = err
	j.mu.Unlock()
	j.opts.Metrics.available(false)
	j.opts.Logger.Error("the journal can't be written, and no event is acknowledged until it can: see to the disk; it is tried again by itself",
		"dir", j.opts.Dir, "err", err)
	j.queue.refuse(err)
	j.queue.finish(pending, err)
}

// restore tries to begin a new segment until that works, and then goes on. It
// returns false once the journal is being closed.
func (w *writer) restore() bool {
	j := w.j
	began := time.Now()
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-j.closing:
			timer.Stop()
			return false
		}
		if err := w.roll(); err != nil {
			j.opts.Logger.Debug("the journal still can't be written", "err", err)
			continue
		}
		j.mu.Lock()
		j.failure = nil
		j.mu.Unlock()
		j.opts.Metrics.available(true)
		j.opts.Logger.Info("the journal is written again", "dir", j.opts.Dir, "after", time.Since(began))
		j.queue.accept()
		return true
	}
}

// stop ends an orderly run with a group without records: it vouches for all before
// it, so that damage there is never taken for a torn tail.
func (w *writer) stop() {
	if w.unvouched {
		var r request
		_ = r.encode(nil, w.j.partitions, w.j.salt) // no records: nothing to refuse
		if err := w.write(r.frame(w.j.end, w.j.end, w.j.stamp, w.next)); err != nil {
			w.j.opts.Logger.Warn("the journal's end can't be marked; nothing is lost", "err", err)
		}
	}
	w.file.Close()
}
