package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// output takes the rows of a part that is made of others, ascending. While they are
// few they go into the batch that makes them part of the store. Many become files,
// which go right to the lowest level, where nothing ever rewrites them: they are
// ingested before that batch, and until then no catalogue row names them, so that
// nobody reads them.
type output struct {
	store   *Store
	batch   *pebble.Batch
	size    uint64 // of the rows in the batch
	options *pebble.Options
	file    *sstable.Writer
	written uint64 // into file
	paths   []string
	deletes [][2][]byte // ranges

	ingested uint32 // the part, once its files were ingested
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
	if len(o.paths) == 0 {
		o.size += uint64(len(key) + len(value))
		if o.size < o.store.sizes.batch {
			return o.batch.Set(key, value, nil)
		}
		if err := o.spill(); err != nil {
			return err
		}
	}
	if o.written >= o.store.sizes.file {
		if err := errors.Join(o.closeFile(), o.openFile()); err != nil {
			return err
		}
	}
	o.written += uint64(len(key) + len(value))
	return o.file.Set(key, value)
}

// deleteRange removes all rows of the store from one key up to another, with the
// commit.
func (o *output) deleteRange(from, to []byte) {
	o.deletes = append(o.deletes, [2][]byte{slices.Clone(from), slices.Clone(to)})
}

// spill turns the batch into a file.
func (o *output) spill() error {
	if err := o.openFile(); err != nil {
		return err
	}
	rows := o.batch.Reader()
	for {
		_, key, value, ok, err := rows.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := o.file.Set(key, value); err != nil {
			return err
		}
	}
	o.batch.Reset()
	return nil
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
	o.written = 0
	return nil
}

func (o *output) closeFile() error {
	err := o.file.Close()
	o.file = nil
	return err
}

// ingest makes the files of a part lie in the store, if there are any. They are on
// the disk when it returns, and are not used until commit.
func (o *output) ingest(part uint32) error {
	if len(o.paths) == 0 {
		return nil
	}
	if err := errors.Join(o.closeFile(), o.openFile()); err != nil {
		return err
	}
	if err := errors.Join(o.file.Set(filesKey(part), nil), o.closeFile()); err != nil {
		return err
	}
	if err := o.store.logger.guard(func() error { return o.store.db.Ingest(context.Background(), o.paths) }); err != nil {
		return err
	}
	o.paths = nil
	o.ingested = part
	return nil
}

// commit makes the rows, the ranges that are removed, and the changes of rows
// elsewhere part of the store, all or none. On the disk when it returns.
func (o *output) commit(changes ...rowChange) error {
	b := o.batch
	o.batch = nil
	var err error
	if o.ingested != 0 {
		before := o.store.ledger.files
		o.store.ledger.files = o.ingested
		err = b.Set([]byte{prefixIngested}, binary.BigEndian.AppendUint32(nil, o.ingested), nil)
		if before != 0 && before != o.ingested {
			err = errors.Join(err, b.Delete(filesKey(before), nil))
		}
	}
	for _, d := range o.deletes {
		err = errors.Join(err, b.DeleteRange(d[0], d[1], nil))
	}
	for _, c := range changes {
		if c.value == nil {
			err = errors.Join(err, b.Delete(c.key, nil))
		} else {
			err = errors.Join(err, b.Set(c.key, c.value, nil))
		}
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	return o.store.commit(b, true)
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
