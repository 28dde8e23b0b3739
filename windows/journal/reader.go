package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readBytes is how much a Reader reads at a time. A larger group takes more.
const readBytes = 512 << 10

// Batch is what a Reader hands out: records of all partitions, in the order of the
// log. The payloads lie in its own memory, which the next call with the same Batch
// uses again; whoever is not done with them passes another one.
type Batch struct {
	Records []Record

	buf []byte
}

// Reader walks the log once. It is not safe for concurrent use.
type Reader struct {
	j    *Journal
	from []int64 // what was asked for
	next []int64 // offsets to come at position
	dec  decoder

	position int64
	seg      *segment
	file     vfs.File // of seg; nil: not open
}

// NewReader returns a reader of the records from one offset for each partition on.
// It fails with ErrTrimmed if one of them is no longer kept, and if one is beyond
// the end. The reader is to be closed.
func (j *Journal) NewReader(from []int64) (*Reader, error) {
	if len(from) != j.partitions {
		return nil, fmt.Errorf("read journal: %d offsets for %d partitions", len(from), j.partitions)
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	for p, o := range from {
		if first := j.segments[0].offsets[p]; o < first {
			return nil, fmt.Errorf("read journal: partition %d from offset %d: %w: it begins at %d", p, o, ErrTrimmed, first)
		}
		if o > j.ends[p] {
			return nil, fmt.Errorf("read journal: partition %d from offset %d: the journal ends at %d: it is not the one that the offset is of", p, o, j.ends[p])
		}
	}
	return j.readerLocked(from), nil
}

// readerLocked returns a reader that begins with the last segment that has nothing
// before any of the offsets in it. There is one. The caller holds mu.
func (j *Journal) readerLocked(from []int64) *Reader {
	i := sort.Search(len(j.segments)-1, func(i int) bool {
		for p, o := range from {
			if j.segments[i+1].offsets[p] > o {
				return true
			}
		}
		return false
	})
	s := j.segments[i]
	return &Reader{
		j: j, from: slices.Clone(from), next: slices.Clone(s.offsets), position: s.base,
		dec: decoder{salt: j.salt, partitions: j.partitions},
	}
}

// Next fills the batch with the records that come next: at least one, and what is
// at hand with it. It waits until there is one. In a journal that was opened read-only
// it returns io.EOF instead. It fails with ErrClosed, ErrTrimmed, ErrDamaged, or the
// error of ctx; the reader can go on after that of ctx, and try again after others.
func (r *Reader) Next(ctx context.Context, b *Batch) error {
	b.Records = b.Records[:0]
	for size := readBytes; len(b.Records) == 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, grown, err := r.fill(b, size)
		switch {
		case err != nil:
			return err
		case grown == nil:
			if size, err = r.take(b, data, size); err != nil {
				b.Records = b.Records[:0]
				return err
			}
		case r.j.opts.ReadOnly:
			return io.EOF
		default:
			select {
			case <-grown:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// fill reads what is at the reader's position, up to size bytes, into the batch's
// memory. At the end of the log it returns a channel that is closed when there is more.
func (r *Reader) fill(b *Batch, size int) (data []byte, grown <-chan struct{}, err error) {
	j := r.j
	j.mu.RLock()
	if j.closed {
		j.mu.RUnlock()
		return nil, nil, ErrClosed
	}
	if r.position == j.end {
		grown = j.grown
		j.mu.RUnlock()
		return nil, grown, nil
	}
	s, end, err := j.locate(r.position)
	if err != nil {
		j.mu.RUnlock()
		return nil, nil, fmt.Errorf("read journal: %w", err)
	}
	data = b.room(int(min(int64(size), end-r.position)))
	recent := j.recent.read(data, r.position)
	j.mu.RUnlock()
	if recent {
		return data, nil, nil
	}
	return data, nil, r.read(data, s)
}

// maxKept is the largest memory that a batch keeps for the next call.
const maxKept = 4 << 20

// room returns size bytes of the batch's memory.
func (b *Batch) room(size int) []byte {
	if cap(b.buf) < size || cap(b.buf) > maxKept && size <= maxKept {
		b.buf = make([]byte, max(size, min(2*cap(b.buf), readBytes)))
	}
	return b.buf[:size]
}

// read reads bytes at the reader's position from a segment's file.
func (r *Reader) read(data []byte, s *segment) error {
	if r.seg != s {
		r.closeFile()
		f, err := r.j.opts.FS.Open(s.path, vfs.SequentialReadsOption)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrTrimmed, err)
		}
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		r.seg, r.file = s, f
	}
	n, err := r.file.ReadAt(data, s.at(r.position))
	switch {
	case n == len(data):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("read journal: %w", s.damaged(r.position+int64(n), errors.New("the file ends there")))
	default:
		return fmt.Errorf("read journal: %w", err)
	}
}

// take takes the whole groups of data, which begins at the reader's position and
// was read with the given size. It returns the size to read next with, which is
// larger if there is one group that has more.
func (r *Reader) take(b *Batch, data []byte, size int) (int, error) {
	for began := r.position; len(data) > 0; {
		need, ok := groupHeader, true
		if len(data) >= groupHeader {
			need, ok = r.dec.size(data, r.position)
		}
		if ok && need > len(data) {
			if r.position > began {
				break // the reading has cut it off
			}
			if len(data) == size {
				return need, nil
			}
			ok = false // the segment ends in it
		}
		if !ok {
			return 0, r.damaged(errNoGroup)
		}
		g, err := r.dec.decode(data, r.position)
		if err == nil {
			b.Records, err = g.take(r.next, r.from, b.Records)
		}
		if err != nil {
			return 0, r.damaged(err)
		}
		r.position = g.end()
		data = data[g.size:]
	}
	return readBytes, nil
}

// damaged says that what is at the reader's position can't be what was written.
func (r *Reader) damaged(what error) error {
	r.j.mu.RLock()
	s, _, err := r.j.locate(r.position)
	r.j.mu.RUnlock()
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	return fmt.Errorf("read journal: %w", s.damaged(r.position, what))
}

// Close gives up what the reader has open.
func (r *Reader) Close() error {
	r.closeFile()
	return nil
}

func (r *Reader) closeFile() {
	if r.file != nil {
		r.file.Close()
		r.file, r.seg = nil, nil
	}
}
