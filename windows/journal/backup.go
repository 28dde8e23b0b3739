package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Backup makes a copy of the journal, in a folder that must not exist, while records
// are appended and segments are removed. It has all that was acknowledged before the
// call. Segments that are complete are linked where the folder is on the same file
// system; of the last one that much is copied as is synced.
func (j *Journal) Backup(dir string) error {
	if err := j.backup(dir); err != nil {
		return fmt.Errorf("back up the journal to %s: %w", dir, err)
	}
	return nil
}

func (j *Journal) backup(dir string) error {
	j.trimming.Lock() // so that every segment has its name until it is linked
	defer j.trimming.Unlock()
	j.mu.RLock()
	segments, end := j.segments, j.end
	j.mu.RUnlock()

	fsys := j.opts.FS
	if _, err := fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	last := len(segments) - 1
	for _, s := range segments[:last] {
		if err := vfs.LinkOrCopy(fsys, s.path, fsys.PathJoin(dir, fsys.PathBase(s.path))); err != nil {
			return err
		}
	}
	if err := j.copyStart(segments[last], end, dir); err != nil {
		return err
	}
	return syncDir(fsys, dir)
}

// copyStart copies a segment up to a position of the log. Should another one take its
// place meanwhile, then there was no group in it, and both have the same header.
func (j *Journal) copyStart(s *segment, end int64, dir string) (err error) {
	fsys := j.opts.FS
	from, err := fsys.Open(s.path, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := fsys.Create(fsys.PathJoin(dir, fsys.PathBase(s.path)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	n, err := io.Copy(to, io.NewSectionReader(from, 0, s.at(end)))
	if err == nil && n < s.at(end) {
		err = damaged(s.path, n, errors.New("the file ends there"))
	}
	return errors.Join(err, to.Sync())
}
