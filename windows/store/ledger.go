package store

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// ledger numbers the commits of a store, so that one that got lost is missed.
//
// Pebble's log of files, the manifest, ends where it can no longer be read, and
// Pebble takes an earlier state of the store for the present one: with the newest
// write-ahead log on top, so that commits in between are missing (found by flipping
// bits). But each commit removes the row of the number before its own and sets the
// row of its own. Where commits are missing between others, the row of the last one
// before them has not been removed: then there are two.
//
// Files are ingested without a number. But with them comes a row of their own, and the
// commit after it, before which they are not used, says which row that is: the
// manifest is in the order of time, so if the newest is there, all are.
type ledger struct {
	mu   sync.Mutex // held from the choice of a number until its batch is in the log
	last uint64
	// files is the part whose files were ingested last; 0: none. Of maintenance.
	files uint32
}

func ledgerKey(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{prefixLedger}, n) }

// commit commits a batch and closes it; sync waits until it is on the disk. After
// an error that Pebble can't go on after, the batch is left to the goroutine that is
// stuck in it.
func (s *Store) commit(b *pebble.Batch, sync bool) error {
	return s.logger.guard(func() error {
		err := errors.Join(s.enter(b), b.Close())
		if err != nil || !sync {
			return err
		}
		// The log is in the order of the commits, so this has b on the disk too, and
		// whoever syncs at the same time shares the wait.
		return s.db.LogData(nil, pebble.Sync)
	})
}

// enter commits a batch under the next number.
func (s *Store) enter(b *pebble.Batch) error {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	if s.ledger.last > 0 {
		if err := b.Delete(ledgerKey(s.ledger.last), nil); err != nil {
			return err
		}
	}
	s.ledger.last++
	if err := b.Set(ledgerKey(s.ledger.last), nil, nil); err != nil {
		return err
	}
	return b.Commit(pebble.NoSync)
}

// loadLedger reads the number of the last commit. It must be the only one.
func (s *Store) loadLedger() error {
	return s.eachRow(prefixLedger, func(key, _ []byte) error {
		if len(key) != 9 {
			return damaged(key, "not the key of a commit")
		}
		if s.ledger.last != 0 {
			return damaged(key, "commits are missing between %d and this one", s.ledger.last)
		}
		s.ledger.last = binary.BigEndian.Uint64(key[1:])
		return nil
	})
}

// loadFiles looks whether the files are there that were ingested last.
func (s *Store) loadFiles() error {
	return s.eachRow(prefixIngested, func(key, value []byte) error {
		if len(key) != 1 || len(value) != 4 {
			return damaged(key, "not the row of the files that came last")
		}
		s.ledger.files = binary.BigEndian.Uint32(value)
		_, closer, err := s.db.Get(filesKey(s.ledger.files))
		if errors.Is(err, pebble.ErrNotFound) {
			return damaged(key, "the files of part %d are missing", s.ledger.files)
		}
		if err != nil {
			return err
		}
		return closer.Close()
	})
}
