package store

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tidemark/sketches"
	"tidemark/windows"
)

// Options says which store to open, and what it must have been made with.
type Options struct {
	Dir      string // the folder, made if need be
	Create   bool   // make a store if there is none
	ReadOnly bool   // nothing is written: Apply, Begin and Finish fail

	// What a store is made with, and keeps. An existing store must have the same
	// KeyID and Partitions, where they are not 0. ViewTypes and Dimensions are
	// replaced where they are not nil.
	KeyID      sketches.KeyID
	Partitions int // 1–MaxPartitions
	ViewTypes  []string
	Dimensions []string

	// Keep is for how long each level is kept. It is not kept with the store.
	Keep Retention

	CacheBytes int64 // of blocks as read from the disk; 0: DefaultCacheBytes
	Logger     *slog.Logger

	// FS is where the folder is; nil: the machine's file system.
	FS vfs.FS

	// Patient has writers wait where the disk is full or can't be written, until it can:
	// see Waiting and GiveUp. Else that is an error, and ends all writing.
	Patient bool
}

const (
	// DefaultCacheBytes is the size of the cache of blocks.
	DefaultCacheBytes = 64 << 20
	// MaxPartitions is the largest number of partitions of a store.
	MaxPartitions = 1 << 12
	// memtableBytes is how much is kept in memory before it is written as a file.
	// Up to four are held while the disk is slow.
	memtableBytes = 32 << 20
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
	if o.Partitions < 0 || o.Partitions > MaxPartitions || o.Create && o.Partitions == 0 {
		errs = append(errs, fmt.Errorf("partitions: must be 1 to %d, got %d", MaxPartitions, o.Partitions))
	}
	if o.Create && o.ReadOnly {
		errs = append(errs, errors.New("create: a store can't be made read-only"))
	}
	if o.CacheBytes < 0 {
		errs = append(errs, fmt.Errorf("cache bytes: must not be negative, got %d", o.CacheBytes))
	}
	return errors.Join(append(errs, o.Keep.validate())...)
}

// withDefaults fills in what was left out, and names the folder in one way only:
// Pebble holds a process to one opening of a folder by its name.
func (o Options) withDefaults() (Options, error) {
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.FS == nil {
		o.FS = vfs.Default
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return o, fmt.Errorf("dir: %w", err)
		}
		o.Dir = dir
	}
	if o.Patient {
		o.FS = newPatience(o.FS, o.Logger)
	}
	return o, nil
}

// pebble returns Pebble's options; the measurements behind them are those of
// blocks that come in the order of time and are never rewritten.
func (o *Options) pebble(logger *logger) *pebble.Options {
	p := &pebble.Options{
		FS:       o.FS,
		ReadOnly: o.ReadOnly,
		// Memtables are booked against the cache: of one of 64 MB nothing would be
		// left while one of them is filled and one is written.
		CacheSize:          o.CacheBytes + 2*memtableBytes,
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             logger,
		EventListener: &pebble.EventListener{
			BackgroundError: logger.backgroundError,
			DataCorruption:  logger.corruption,
		},

		MemTableSize:                memtableBytes,
		MemTableStopWritesThreshold: 4,
		// Seals come in the order of time, so that files at level 0 hardly overlap:
		// moving them down is not urgent, and stopping for it would be wrong.
		L0CompactionThreshold: 8,
		L0StopWritesThreshold: 1000,
		LBaseMaxBytes:         256 << 20,
		MaxOpenFiles:          4000,
	}
	p.TargetFileSizes[0] = 16 << 20
	for i := 1; i < len(p.TargetFileSizes); i++ {
		p.TargetFileSizes[i] = 64 << 20
	}
	for i := range p.Levels {
		p.Levels[i].BlockSize = 16 << 10
		p.Levels[i].IndexBlockSize = 64 << 10
	}
	// zstd at every level: what was flushed is moved down as it is, so a level that
	// compresses less would keep it that way.
	p.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		return pebble.UniformDBCompressionSettings(block.BalancedCompression)
	})
	return p
}

// Meta is what a store was made with.
type Meta struct {
	Format     int
	KeyID      sketches.KeyID
	Partitions int
	ViewTypes  []string // what a view is; the first is the type of events without one
	Dimensions []string // declared ones, in the order of windows.Event.Dims
}

// Log is one source of events whose position the store keeps: the journal, a
// topic, or one import of files.
type Log struct {
	ID    windows.LogID
	Names []string // what to call it: of an import, its files
	// Contents name what the files of an import hold, so that none is imported twice.
	Contents []string
	// Settings are those that outcomes and limits follow, as text. They hold for the
	// whole log: whoever goes on with it compares.
	Settings string
	Started  int64    // when it was begun, Unix ms: the timestamp of an import's records
	E        []uint64 // of each partition: see windows.Position
	Done     bool     // it has ended: it no longer counts for what is complete
	Records  int64    // that are in the store, whatever became of them
}
