package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options says which journal to open, and what it may use.
type Options struct {
	Dir string // the folder; made if need be, unless ReadOnly

	// Partitions is how many the journal has: 1–MaxPartitions. It is fixed when the
	// journal is made; 0 takes what the journal in the folder has.
	Partitions int

	// ReadOnly opens what is in the folder now, beside a process that may be
	// writing it: nothing is locked, and nothing is written. It may see groups that
	// are not acknowledged yet, or never will be. A Reader ends with io.EOF.
	ReadOnly bool

	SegmentBytes int64 // a new segment is begun once one has that many; 0: DefaultSegmentBytes
	QueueBytes   int64 // that may wait to be written; 0: DefaultQueueBytes
	RecentBytes  int64 // of the newest part that readers are served from memory; 0: DefaultRecentBytes

	Logger  *slog.Logger
	Metrics *Metrics // nil: nothing is measured

	// FS is where the folder is; nil: the machine's file system.
	FS vfs.FS
}

const (
	// DefaultSegmentBytes is the size of a segment.
	DefaultSegmentBytes = 64 << 20
	// DefaultQueueBytes is how much may wait to be written.
	DefaultQueueBytes = 64 << 20
	// DefaultRecentBytes is how much of the log is kept in memory: what a disk takes
	// in some 50 ms, so that a reader that keeps up never reads from it.
	DefaultRecentBytes = 16 << 20
	// MaxPartitions is the largest number of partitions of a journal.
	MaxPartitions = 1 << 12
)

// validate names everything that is wrong with the options.
func (o *Options) validate() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("dir: must not be empty"))
	}
	if o.Logger == nil {
		errs = append(errs, errors.New("logger: must not be nil"))
	}
	if o.Partitions < 0 || o.Partitions > MaxPartitions {
		errs = append(errs, fmt.Errorf("partitions: must be 1 to %d, got %d", MaxPartitions, o.Partitions))
	}
	for _, b := range []struct {
		name  string
		value int64
	}{{"segment", o.SegmentBytes}, {"queue", o.QueueBytes}, {"recent", o.RecentBytes}} {
		if b.value < 0 {
			errs = append(errs, fmt.Errorf("%s bytes: must not be negative, got %d", b.name, b.value))
		}
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left out, and names the folder in one way only:
// the lock holds a process to one opening of a folder by its name.
func (o Options) withDefaults() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.RecentBytes == 0 {
		o.RecentBytes = DefaultRecentBytes
	}
	if o.FS == nil {
		o.FS = vfs.Default
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return o, fmt.Errorf("dir: %w", err)
		}
		o.Dir = dir
	}
	return o, nil
}
