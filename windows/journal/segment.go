package journal

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	segmentSuffix   = ".journal" // part of the format
	temporarySuffix = ".tmp"
	lockName        = "LOCK"
)

// segment is one file of the log. It does not change.
type segment struct {
	header

	path string
}

// segmentName returns the name of the file of a segment.
func segmentName(sequence uint64) string { return fmt.Sprintf("%020d", sequence) + segmentSuffix }

// parseSegmentName returns the segment that a file is, if it is one.
func parseSegmentName(name string) (sequence uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok {
		return 0, false
	}
	sequence, err := strconv.ParseUint(digits, 10, 64)
	return sequence, err == nil && name == segmentName(sequence)
}

// at returns where in the segment's file a position is.
func (s *segment) at(position int64) int64 { return s.size() + position - s.base }

// damaged says that something is wrong at a position of the log.
func (s *segment) damaged(position int64, what error) error {
	return damaged(s.path, s.at(position), what)
}

// damaged says that something is wrong at a byte of a file.
func damaged(path string, at int64, what error) error {
	return fmt.Errorf("%w: %s at byte %d: %w: bring the file back from a backup, or stop, set the folder aside and begin a new journal without what was not counted yet",
		ErrDamaged, path, at, what)
}

// openSegment opens a segment's file and reads its header.
func openSegment(fs vfs.FS, path string, sequence uint64) (*segment, vfs.File, error) {
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, nil, err
	}
	s := &segment{path: path}
	if s.header, err = readHeader(f); err == nil && s.sequence != sequence {
		err = fmt.Errorf("it is segment %d", s.sequence)
	}
	if err != nil {
		f.Close()
		return nil, nil, damaged(path, 0, err)
	}
	return s, f, nil
}

func readHeader(f vfs.File) (header, error) {
	b := make([]byte, fixedHeader)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return header{}, err
	}
	size, err := headerSize(b)
	if err != nil {
		return header{}, err
	}
	b = make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return header{}, err
	}
	return decodeHeader(b[:n])
}
