package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mark is a place in the log, and what is to come there.
type mark struct {
	position int64
	offsets  []int64 // of each partition, the next one
	stamp    int64   // the highest before it, Unix ms
}

func (m *mark) clone() mark {
	return mark{position: m.position, offsets: slices.Clone(m.offsets), stamp: m.stamp}
}

// sequences lists the segments in the folder, oldest first.
func (j *Journal) sequences() ([]uint64, error) {
	names, err := j.opts.FS.List(j.opts.Dir)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, name := range names {
		if s, ok := parseSegmentName(name); ok {
			out = append(out, s)
		} else if strings.HasSuffix(name, segmentSuffix+temporarySuffix) && !j.opts.ReadOnly {
			j.removeTemporary(j.opts.FS.PathJoin(j.opts.Dir, name))
		}
	}
	slices.Sort(out)
	return out, nil
}

// load finds out what is in the folder and makes it ready to be written.
func (j *Journal) load() (err error) {
	sequences, err := j.sequences()
	if err != nil {
		return err
	}
	if len(sequences) == 0 {
		return j.create()
	}
	// The last process may have been killed before it synced a name, or the lack of one.
	if err := j.syncDir(); err != nil {
		return err
	}
	found, last, err := j.inspect(sequences)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, last.Close()) }()
	return j.resume(found, last)
}

// loadReadOnly finds out what is in the folder while another process may write
// there. Where that began or removed a segment meanwhile it looks again.
func (j *Journal) loadReadOnly() error {
	for range 100 {
		sequences, err := j.sequences()
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && len(sequences) == 0:
			return ErrNoJournal
		case err != nil:
			return err
		}
		found, last, err := j.inspect(sequences)
		again, listErr := j.sequences()
		if listErr == nil && !slices.Equal(sequences, again) {
			if err == nil {
				last.Close()
			}
			continue
		}
		if err != nil {
			return err
		}
		j.end, j.ends, j.stamp = found.end.position, found.end.offsets, found.end.stamp
		return last.Close()
	}
	return errors.New("its segments change faster than they can be read")
}

// create makes a journal with its first segment.
func (j *Journal) create() error {
	if j.opts.Partitions == 0 {
		return fmt.Errorf("%w: to make one, say how many partitions it is to have", ErrNoJournal)
	}
	if err := j.identify(newLogID(), j.opts.Partitions); err != nil {
		return err
	}
	if err := syncAbove(j.opts.FS, j.opts.Dir); err != nil {
		return err
	}
	h := header{id: j.id, sequence: 1, offsets: make([]int64, j.partitions)}
	s, f, err := j.begin(h, nil)
	if err != nil {
		return err
	}
	j.segments = []*segment{s}
	j.ends = make([]int64, j.partitions)
	j.writer.take(f, 0)
	return nil
}

// found is what the last segment was found to hold.
type found struct {
	synced mark  // up to here all is known to be synced
	end    mark  // behind the last whole group
	size   int64 // position where the file ends
	first  int64 // the first stamp in it
	tail   int64 // the first stamp behind synced
}

// inspect reads the headers of the segments, and all of the last one, whose file it
// returns open.
func (j *Journal) inspect(sequences []uint64) (*found, vfs.File, error) {
	j.segments = nil
	for i, sequence := range sequences {
		path := j.opts.FS.PathJoin(j.opts.Dir, segmentName(sequence))
		s, f, err := openSegment(j.opts.FS, path, sequence)
		if err != nil {
			return nil, nil, err
		}
		found, err := j.add(s, f, i == len(sequences)-1)
		if found != nil && err == nil {
			return found, f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, ErrNoJournal
}

// add adds a segment to those that were found; last: it is the last one.
func (j *Journal) add(s *segment, f vfs.File, last bool) (*found, error) {
	if len(j.segments) == 0 {
		if err := j.identify(s.id, len(s.offsets)); err != nil {
			return nil, err
		}
	} else {
		before := j.segments[len(j.segments)-1]
		if err := s.follows(&before.header); err != nil {
			return nil, damaged(s.path, 0, err)
		}
		if err := j.reaches(before, s.base); err != nil {
			return nil, err
		}
	}
	j.segments = append(j.segments, s)
	if !last {
		return nil, nil
	}
	return j.inspectLast(s, f)
}

// reaches checks that a segment's file has the bytes up to a position.
func (j *Journal) reaches(s *segment, position int64) error {
	info, err := j.opts.FS.Stat(s.path)
	if err != nil {
		return err
	}
	if info.Size() < s.at(position) {
		return damaged(s.path, info.Size(), fmt.Errorf("it ends there, and should have %d bytes", s.at(position)))
	}
	return nil
}

// inspectLast reads the last segment, and finds out what of it can be kept.
func (j *Journal) inspectLast(s *segment, f vfs.File) (*found, error) {
	out := &found{synced: mark{position: s.base + s.sealed}}
	sc, err := j.newScanner(s, f)
	if err != nil {
		return nil, err
	}
	out.size = sc.end
	at := mark{position: s.base, offsets: slices.Clone(s.offsets), stamp: s.floor}
	end := s.base
	for {
		g, _, err := sc.next()
		if errors.Is(err, io.EOF) || errors.Is(err, errNoGroup) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := at.pass(&g); err != nil {
			return nil, s.damaged(g.position, err)
		}
		if g.position == s.base {
			out.first = g.stamp
		}
		out.synced.position = max(out.synced.position, g.synced)
		if g.count > 0 {
			end = at.position
		}
	}
	// The group that ends an orderly run has done its work, and holds nothing to keep.
	out.end = mark{position: max(end, out.synced.position), offsets: at.offsets, stamp: at.stamp}
	if at.position < out.synced.position {
		return nil, s.damaged(at.position, fmt.Errorf("what was synced up to byte %d can't be read", s.at(out.synced.position)))
	}
	by, vouched, err := sc.vouched()
	if err != nil {
		return nil, err
	}
	if vouched {
		return nil, s.damaged(at.position, fmt.Errorf("it can't be read, and was synced before what is written at byte %d", s.at(by)))
	}
	return out, j.revisit(s, f, out)
}

// revisit walks to where all is known to be synced, to see what was to come there.
func (j *Journal) revisit(s *segment, f vfs.File, out *found) error {
	if out.synced.position == out.end.position {
		out.synced = out.end.clone()
		return nil
	}
	sc, err := j.newScanner(s, f)
	if err != nil {
		return err
	}
	at := mark{position: s.base, offsets: slices.Clone(s.offsets), stamp: s.floor}
	for at.position < out.synced.position {
		g, _, err := sc.next()
		if err != nil {
			return fmt.Errorf("read %s again: %w", s.path, err)
		}
		if err := at.pass(&g); err != nil {
			return s.damaged(g.position, err)
		}
	}
	if at.position != out.synced.position {
		return s.damaged(out.synced.position, errors.New("no group begins where one says that the log was synced"))
	}
	out.synced = at
	g, _, err := sc.next()
	if err != nil {
		return fmt.Errorf("read %s again: %w", s.path, err)
	}
	out.tail = g.stamp
	return nil
}

// pass moves the mark behind a group.
func (m *mark) pass(g *group) error {
	if g.stamp < m.stamp {
		return fmt.Errorf("its stamp %d is before %d, that of a group before it", g.stamp, m.stamp)
	}
	if _, err := g.take(m.offsets, nil, nil); err != nil {
		return err
	}
	m.position, m.stamp = g.end(), g.stamp
	return nil
}

// resume makes the journal go on behind what was found. The last segment is
// written further if there is nothing in it but what is known to be synced; else
// the whole groups behind that are copied into a new segment: its pages may be in
// memory alone, of a sync that failed, and would be gone with the next power cut,
// however often they are synced again (J5).
func (j *Journal) resume(found *found, last vfs.File) error {
	s := j.segments[len(j.segments)-1]
	j.end, j.ends, j.stamp = found.end.position, found.end.offsets, found.end.stamp
	if found.synced.position == found.size {
		f, err := j.opts.FS.OpenReadWrite(s.path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		j.writer.take(f, found.first)
		return nil
	}
	h := s.after(&found.synced)
	h.sealed = found.end.position - found.synced.position
	begun, f, err := j.begin(h, func(w io.Writer) error { return j.copyTail(s, last, found, w) })
	if err != nil {
		return err
	}
	j.replace(begun)
	j.writer.take(f, found.tail)
	j.opts.Logger.Info("the journal's tail was taken over into a new segment", "path", begun.path,
		"bytes_kept", h.sealed, "bytes_dropped", found.size-found.end.position)
	return nil
}

// after returns the header of the segment that follows on from s at a mark. If
// there is no group before that in s, the new one takes its place: so a disk that
// fails again and again does not fill with empty segments.
func (s *segment) after(m *mark) header {
	h := header{id: s.id, sequence: s.sequence + 1, base: m.position, floor: m.stamp, offsets: slices.Clone(m.offsets)}
	if m.position == s.base {
		h.sequence = s.sequence
	}
	return h
}

// copyTail writes what was found behind what is known to be synced, and looks at
// every byte again on the way: it may have come from the memory of a bad sync, and
// be read from the disk now.
func (j *Journal) copyTail(s *segment, f vfs.File, found *found, w io.Writer) error {
	sc, err := j.newScanner(s, f)
	if err != nil {
		return err
	}
	for sc.position = found.synced.position; sc.position < found.end.position; {
		_, b, err := sc.next()
		if err != nil {
			return fmt.Errorf("read %s again: %w", s.path, err)
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}
