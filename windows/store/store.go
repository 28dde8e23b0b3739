package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// Store is an open store. All methods are safe for concurrent use.
type Store struct {
	opts   Options
	db     *pebble.DB
	logger *logger
	meta   Meta

	items, series, reasons *dictionary
	known                  seriesList
	texts                  sync.Mutex // held while texts of items are merged and committed
	nextPart               atomic.Uint32
	sizes                  sizes
	ledger                 ledger
	outbox                 outbox
	hook                   func(name string) // tests: called at each step

	// maintenance is held while periods are rolled up, folded or removed.
	maintenance sync.Mutex
	// gate is held by each seal from the look at what is rolled up until it is shown,
	// and alone by whoever changes that or needs all seals before it to be shown. It
	// is taken after maintenance and before mu.
	gate  sync.RWMutex
	marks map[period]uint32 // periods that are being rolled up, by which part; guarded by gate

	// mu guards what follows: what is in the store, as a reader may see it. It is
	// changed once a batch is committed, in one step; a Snapshot takes it, and then
	// Pebble's own snapshot, which so has at least that.
	mu        sync.RWMutex
	catalogue catalogue
	ladder    ladder // changed under gate too
	roster    roster
	closed    bool
	snapshots map[*Snapshot]struct{} // that are open
}

// Open opens the store in a folder, or makes it. See Options. It fails with
// ErrNoStore, ErrHeld, ErrKey, ErrSettings or ErrDamaged where the error wraps one
// of them.
func Open(opts Options) (*Store, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{
		opts: opts, logger: newLogger(opts.Logger), sizes: mergeSizes,
		marks: make(map[period]uint32), snapshots: make(map[*Snapshot]struct{}),
	}
	s.ladder.first = windows.MaxMinute
	s.nextPart.Store(1)
	if err := s.open(); err != nil {
		if s.db != nil && !s.logger.isStuck() {
			err = errors.Join(err, s.db.Close())
		}
		if p, ok := s.opts.FS.(*patience); ok {
			err = errors.Join(err, p.revoke())
		}
		return nil, fmt.Errorf("open store in %s: %w", opts.Dir, openError(err))
	}
	if p, ok := s.opts.FS.(*patience); ok {
		p.patient.Store(true) // who opens it sees to what is wrong
	}
	return s, nil
}

func (s *Store) open() error {
	made, err := s.exists()
	if err != nil {
		return err
	}
	if !made && !s.opts.Create {
		return fmt.Errorf("%w: import something first, or name another folder", ErrNoStore)
	}
	if err := s.openPebble(); err != nil {
		return err
	}
	if err := s.make(); err != nil {
		return err
	}
	if err := s.openMeta(); err != nil {
		return err
	}
	return s.load()
}

// exists reports whether there is a Pebble store in the folder.
func (s *Store) exists() (bool, error) {
	desc, err := pebble.Peek(s.opts.Dir, s.opts.FS)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return desc.Exists, nil
}

func (s *Store) openPebble() error {
	// Not guard: what fails in the background meanwhile must not lose an open store.
	return s.logger.await(func() error {
		db, err := pebble.Open(s.opts.Dir, s.opts.pebble(s.logger))
		s.db = db
		return err
	}, s.logger.stuck)
}

// openError says what an error of Pebble means, and what to do about it.
func openError(err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrNoStore):
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES) && strings.Contains(text, "lock"),
		strings.Contains(text, "lock held by current process"), strings.Contains(text, "lock already held"):
		return fmt.Errorf("%w: another process holds it: stop that, or ask it (--server): %w", ErrHeld, err)
	case pebble.IsCorruptionError(err), errors.Is(err, fs.ErrNotExist), strings.Contains(text, "object size mismatch"):
		return fmt.Errorf("%w: bring it back from a backup, or import again into a new folder: %w", ErrDamaged, err)
	}
	return err
}

// make writes the first row of a new store, and opens it again. Pebble writes the
// log of a store that it has just made in an old form, in which a flipped bit in
// the newest log looks like its end: only from the next opening on is it told from one.
func (s *Store) make() error {
	_, closer, err := s.db.Get([]byte{prefixMeta})
	if err == nil {
		return closer.Close()
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return err
	}
	empty, err := s.empty()
	if err != nil {
		return err
	}
	if !empty {
		return damaged([]byte{prefixMeta}, "the row that says what the store was made with is missing")
	}
	if !s.opts.Create {
		return fmt.Errorf("%w: it was begun, and never finished: import something first", ErrNoStore)
	}
	meta := Meta{
		Format: formatVersion, KeyID: s.opts.KeyID, Partitions: s.opts.Partitions,
		ViewTypes: s.opts.ViewTypes, Dimensions: s.opts.Dimensions,
	}
	if err := s.db.Set([]byte{prefixMeta}, meta.append(nil), pebble.Sync); err != nil {
		return err
	}
	if err := s.db.Close(); err != nil {
		return err
	}
	s.db = nil
	return s.openPebble()
}

// empty reports whether there is no row at all.
func (s *Store) empty() (bool, error) {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return false, err
	}
	defer it.Close()
	return !it.First(), it.Error()
}

// load reads what lies in memory: dictionaries' ends, logs, positions, catalogue.
func (s *Store) load() (err error) {
	if err := s.loadLedger(); err != nil {
		return err
	}
	if err := s.loadFiles(); err != nil {
		return err
	}
	if s.items, err = openDictionary(s, "item", prefixItemName, prefixItemID, firstItem, 1<<32-1); err != nil {
		return err
	}
	if s.series, err = openDictionary(s, "series", prefixSeriesName, prefixSeriesID, firstSeries, lastSeries); err != nil {
		return err
	}
	s.series.added = s.known.add
	if err := s.loadSeries(); err != nil {
		return err
	}
	if s.reasons, err = openDictionary(s, "reason", prefixReasonName, prefixReasonID, firstReason, lastReason); err != nil {
		return err
	}
	if err := s.loadLogs(); err != nil {
		return err
	}
	if err := s.loadParts(); err != nil {
		return err
	}
	return s.loadOutbox()
}

// loadParts reads the catalogue, and holds the seals against the positions.
func (s *Store) loadParts() error {
	if err := s.loadMarks(); err != nil {
		return err
	}
	chain := newChain(&s.roster)
	err := s.eachRow(prefixPart, func(key, value []byte) error {
		p, err := parsePart(key, value)
		if err != nil {
			return err
		}
		if p.key != s.meta.KeyID {
			return fmt.Errorf("part %d: %w", p.number, ErrKey)
		}
		s.enterLocked(p)
		s.nextPart.Store(max(s.nextPart.Load(), p.number+1))
		return chain.add(key, p)
	})
	if err != nil {
		return err
	}
	if err := chain.end(); err != nil {
		return err
	}
	return s.loadFloors()
}

// eachRow calls yield for every row whose key begins with the prefix.
func (s *Store) eachRow(prefix byte, yield func(key, value []byte) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefix}, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := yield(it.Key(), value); err != nil {
			return err
		}
	}
	return it.Error()
}

// drain waits until every Snapshot that is open now is closed.
func (s *Store) drain(ctx context.Context) error {
	s.mu.RLock()
	open := slices.Collect(maps.Keys(s.snapshots))
	s.mu.RUnlock()
	for _, n := range open {
		select {
		case <-n.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// step marks a point between two steps of a change: see FORMAT.md.
func (s *Store) step(name string) {
	if s.hook != nil {
		s.hook(name)
	}
	step(name)
}

// Meta returns what the store was made with.
func (s *Store) Meta() Meta { return s.meta }

// Waiting returns why writers wait for the disk, or nil: see Options.Patient.
func (s *Store) Waiting() error {
	if p, ok := s.opts.FS.(*patience); ok {
		return p.reason()
	}
	return nil
}

// GiveUp has writers fail that wait for the disk, or would: the store is to be closed.
func (s *Store) GiveUp() {
	if p, ok := s.opts.FS.(*patience); ok {
		p.impatient()
	}
}

// Close closes the store, once every Snapshot is closed. Nothing may be called
// during and after it. A store that Pebble has given up is left to itself; a patient one
// can then be opened again by this process.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.drain(context.Background()) //nolint:errcheck // never ends early
	s.GiveUp()
	var err error
	if !s.logger.isStuck() {
		err = s.logger.await(s.db.Close, s.logger.stuck)
	}
	if p, ok := s.opts.FS.(*patience); ok && s.logger.isStuck() {
		err = p.revoke()
	}
	if err != nil && !s.logger.isStuck() { // then whoever wrote has been told; Pebble would hang
		return fmt.Errorf("close store in %s: %w", s.opts.Dir, err)
	}
	return nil
}

// Positions returns where each partition of a log goes on from: with E 0 where it
// has none, which is so until Begin.
func (s *Store) Positions(id windows.LogID) []windows.Position {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]windows.Position, s.meta.Partitions)
	if l := s.roster.find(id); l != nil {
		for i, p := range l.positions {
			out[i] = p.Position
		}
	}
	return out
}

// Outcomes returns what became of the records of a log so far, by outcome and
// reason: of those that are in the store.
func (s *Store) Outcomes(id windows.LogID) []windows.OutcomeCount {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []windows.OutcomeCount
	if l := s.roster.find(id); l != nil {
		for _, p := range l.positions {
			out = book(out, p.outcomes)
		}
	}
	return out
}
