package journal

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// scanBytes is how much a scanner reads at a time. A larger group takes more.
const scanBytes = 1 << 20

// scanner walks the groups of a segment's file, whatever is in it.
type scanner struct {
	decoder

	seg      *segment
	file     vfs.File
	end      int64 // position where the file ends
	position int64 // of the next group

	buf  []byte // bytes of the file
	from int64  // position of the first of them
}

// newScanner returns a scanner that begins at a segment's first group.
func (j *Journal) newScanner(s *segment, f vfs.File) (*scanner, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &scanner{
		decoder: decoder{salt: j.salt, partitions: j.partitions},
		seg:     s, file: f, position: s.base,
		end: s.base + max(0, info.Size()-s.size()),
	}, nil
}

// window returns the bytes from the position on: at least n, unless the file ends before.
func (s *scanner) window(position int64, n int) ([]byte, error) {
	n = int(min(int64(n), s.end-position))
	if position >= s.from && position+int64(n) <= s.from+int64(len(s.buf)) {
		return s.buf[position-s.from:], nil
	}
	size := int(min(int64(max(n, scanBytes)), s.end-position))
	if cap(s.buf) < size {
		s.buf = make([]byte, size)
	}
	s.buf, s.from = s.buf[:size], position
	if _, err := s.file.ReadAt(s.buf, s.seg.at(position)); err != nil && !errors.Is(err, io.EOF) {
		s.buf = s.buf[:0]
		return nil, err
	}
	return s.buf, nil
}

// peek returns the group at a position, or errNoGroup.
func (s *scanner) peek(position int64) (group, []byte, error) {
	b, err := s.window(position, groupHeader)
	if err != nil {
		return group{}, nil, err
	}
	size, ok := s.size(b, position)
	if !ok || int64(size) > s.end-position {
		return group{}, nil, errNoGroup
	}
	if b, err = s.window(position, size); err != nil {
		return group{}, nil, err
	}
	g, err := s.decode(b, position)
	if err != nil && !errors.Is(err, errNoGroup) {
		err = s.seg.damaged(position, err)
	}
	return g, b[:size], err
}

// next returns the next group and its bytes, and moves behind it. It returns
// io.EOF at the end of the file, and errNoGroup where there is none before it.
func (s *scanner) next() (group, []byte, error) {
	if s.position == s.end {
		return group{}, nil, io.EOF
	}
	g, b, err := s.peek(s.position)
	if err == nil {
		s.position = g.end()
	}
	return g, b, err
}

// vouched looks behind the scanner's position, where there is no group, for a
// group that says that the log had been synced further than that.
func (s *scanner) vouched() (by int64, found bool, err error) {
	for p := s.position + 1; s.end-p >= groupHeader; p++ {
		b, err := s.window(p, groupHeader)
		if err != nil {
			return 0, false, err
		}
		// Every group has its own position in it, so next to no byte is looked at twice.
		for len(b) > groupHeader && binary.LittleEndian.Uint64(b[8:]) != uint64(p) {
			b, p = b[1:], p+1
		}
		g, _, err := s.peek(p)
		switch {
		case errors.Is(err, errNoGroup):
		case err != nil:
			return 0, false, err
		case g.synced > s.position:
			return p, true, nil
		}
	}
	return 0, false, nil
}
