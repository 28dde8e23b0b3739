package journal

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// room is how much must be free on the disk for a segment to be begun, unless a
// segment has less. A disk with next to no room would take its header, and fail
// again with the next write, for ever. It is reserved for that alone: it makes syncs
// no faster (ext4, writes of 120 bytes to 120 KB).
const room = 4 << 20

// begin makes the file of a segment, with h.sealed bytes of groups that tail
// writes, if any, and gives it its name once all that is synced. A file that had
// the name before is gone then. Until begin returns without an error nothing is
// changed, as far as anybody relies on it.
func (j *Journal) begin(h header, tail func(io.Writer) error) (*segment, vfs.File, error) {
	s := &segment{header: h, path: j.opts.FS.PathJoin(j.opts.Dir, segmentName(h.sequence))}
	temporary := s.path + temporarySuffix
	f, err := j.opts.FS.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, nil, err
	}
	err = func() error {
		// Another error means that room can't be reserved on such a file system.
		if err := f.Preallocate(0, min(room, j.opts.SegmentBytes)); errors.Is(err, syscall.ENOSPC) {
			return err
		}
		if _, err := f.WriteAt(h.encode(), 0); err != nil {
			return err
		}
		if tail != nil {
			if err := tail(io.NewOffsetWriter(f, h.size())); err != nil {
				return err
			}
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if err := j.opts.FS.Rename(temporary, s.path); err != nil {
			return err
		}
		return j.syncDir()
	}()
	if err != nil {
		f.Close()
		j.removeTemporary(temporary)
		return nil, nil, err
	}
	return s, f, nil
}

// removeTemporary removes a file that nobody reads. Where that fails it is there
// until the next Open, and harmless.
func (j *Journal) removeTemporary(path string) {
	if err := j.opts.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.opts.Logger.Debug("a temporary file of the journal can't be removed", "path", path, "err", err)
	}
}

// syncDir makes names in the journal's folder durable.
func (j *Journal) syncDir() error { return syncDir(j.opts.FS, j.opts.Dir) }

func syncDir(fs vfs.FS, path string) error {
	dir, err := fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// syncAbove makes the names of a folder and of what it lies in durable. It is for a
// new journal: whoever has made a folder may have been killed before it was synced.
// A folder that may not be opened was not made by this user.
func syncAbove(fsys vfs.FS, path string) error {
	for parent := fsys.PathDir(path); parent != path; path, parent = parent, fsys.PathDir(parent) {
		if err := syncDir(fsys, parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}
