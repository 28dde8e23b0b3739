package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// output takes the rows of a part that is made of others, ascending, and makes them
// part of the store in one step: by a batch while they are few, else as files that
// go right to the lowest level, where nothing ever rewrites them.
type output struct {
	store   *Store
	batch   *pebble.Batch // nil once there are files, and after the commit
	options *pebble.Options
	file    *sstable.Writer
	bytes   uint64 // in batch, or file
	paths   []string
}

// ingestDir is where files are written to, beside Pebble's own.
const ingestDir = "ingest"

// sizes is how much a merge handles at once.
type sizes struct {
	// batch is from which size on files are better than a batch: Pebble never merges
	// small files at the lowest level.
	batch uint64
	file  uint64
	// How much is read of each part at once, of all parts together, and of each at
	// least and at most: so that a merge of many neither seeks for every block nor
	// takes much memory.
	chunks, minChunk, maxChunk int
}

var mergeSizes = sizes{batch: 1 << 20, file: 64 << 20, chunks: 32 << 20, minChunk: 16 << 10, maxChunk: 1 << 20}

// rowChange is a row that is written, or with a nil value removed.
type rowChange struct{ key, value []byte }

func newOutput(s *Store) *output {
	return &output{store: s, batch: s.db.NewBatch()}
}

// set adds a row.
func (o *output) set(key, value []byte) error {
	if o.batch != nil {
		o.bytes += uint64(len(key) + len(value))
		if o.bytes < o.store.sizes.batch {
			return o.batch.Set(key, value, nil)
		}
		if err := o.spill(); err != nil {
			return err
		}
	}
	if o.file != nil && o.bytes >= o.store.sizes.file {
		if err := o.closeFile(); err != nil {
			return err
		}
	}
	if o.file == nil {
		if err := o.openFile(); err != nil {
			return err
		}
	}
	o.bytes += uint64(len(key) + len(value))
	return o.file.Set(key, value)
}

// deleteRange removes all rows of the store from one key up to another, which lie
// behind all rows that were set, and before all that will be.
func (o *output) deleteRange(from, to []byte) error {
	if o.batch != nil {
		return o.batch.DeleteRange(from, to, nil)
	}
	if o.file == nil {
		if err := o.openFile(); err != nil {
			return err
		}
	}
	return o.file.DeleteRange(from, to)
}

// spill turns the batch into a file.
func (o *output) spill() error {
	if err := o.openFile(); err != nil {
		return err
	}
	rows := o.batch.Reader()
	for {
		kind, key, value, ok, err := rows.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if kind == pebble.InternalKeyKindRangeDelete {
			err = o.file.DeleteRange(key, value)
		} else {
			err = o.file.Set(key, value)
		}
		if err != nil {
			return err
		}
	}
	err := o.batch.Close()
	o.batch = nil
	return err
}

func (o *output) openFile() error {
	fs, dir := o.store.opts.FS, o.store.opts.Dir
	if o.options == nil {
		o.options = o.store.opts.pebble(o.store.logger)
		o.options.EnsureDefaults()
		if err := fs.MkdirAll(fs.PathJoin(dir, ingestDir), 0o755); err != nil {
			return err
		}
	}
	path := fs.PathJoin(dir, ingestDir, fmt.Sprintf("%06d.sst", len(o.paths)))
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	const lowest = 6
	o.file = sstable.NewWriter(objstorageprovider.NewFileWritable(f), o.options.MakeWriterOptions(lowest, o.store.db.TableFormat()))
	o.paths = append(o.paths, path)
	o.bytes = 0
	return nil
}

func (o *output) closeFile() error {
	err := o.file.Close()
	o.file = nil
	return err
}

// commit makes the rows, the ranges that are removed, and the changes of rows
// elsewhere part of the store, all or none. On the disk when it returns.
func (o *output) commit(changes ...rowChange) error {
	if o.batch == nil {
		return o.ingest(changes)
	}
	b := o.batch
	o.batch = nil
	for _, c := range changes {
		var err error
		if c.value == nil {
			err = b.Delete(c.key, nil)
		} else {
			err = b.Set(c.key, c.value, nil)
		}
		if err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return o.store.commit(b, pebble.Sync)
}

// ingest is commit of files. The changes elsewhere are a file of their own: files
// that are ingested together must not overlap.
func (o *output) ingest(changes []rowChange) error {
	if o.file != nil {
		if err := o.closeFile(); err != nil {
			return err
		}
	}
	slices.SortFunc(changes, func(a, b rowChange) int { return bytes.Compare(a.key, b.key) })
	if err := o.openFile(); err != nil {
		return err
	}
	for _, c := range changes {
		var err error
		if c.value == nil {
			err = o.file.Delete(c.key)
		} else {
			err = o.file.Set(c.key, c.value)
		}
		if err != nil {
			return err
		}
	}
	if err := o.closeFile(); err != nil {
		return err
	}
	paths := o.paths
	o.paths = nil
	return o.store.logger.guard(func() error { return o.store.db.Ingest(context.Background(), paths) })
}

// abandon gives back what was not committed.
func (o *output) abandon() {
	if o.batch != nil {
		o.batch.Close()
		o.batch = nil
	}
	if o.file != nil {
		o.file.Close() //nolint:errcheck // nothing of it is wanted
	}
	for _, path := range o.paths {
		o.store.opts.FS.Remove(path) //nolint:errcheck // opening removes it
	}
	o.paths = nil
}

// removeFiles removes files that were never made part of the store.
func (s *Store) removeFiles() error {
	return s.opts.FS.RemoveAll(s.opts.FS.PathJoin(s.opts.Dir, ingestDir))
}
