package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// retain removes what is older than each level is kept for, in whole periods of the
// next level, as soon as that has taken them in. Ages count from the newest minute
// that is stored.
func (s *Store) retain(ctx context.Context, _ windows.Minute) error {
	keep := s.opts.Keep.levels()
	newest := s.newest()
	for l := range levelEver {
		if keep[l] == 0 {
			continue
		}
		age := windows.Minute(min(keep[l]/time.Minute, time.Duration(newest)))
		if err := s.removeUpTo(ctx, l, s.removable(l, newest-age)); err != nil {
			return fmt.Errorf("remove old %ss: %w", policy[l].name, err)
		}
	}
	return nil
}

// removable returns up to where a level can be removed: to the last period of the
// next level that ends at to or before, and up to which all is rolled up.
func (s *Store) removable(l windows.Level, to windows.Minute) windows.Minute {
	s.mu.RLock()
	defer s.mu.RUnlock()
	size := policy[l+1].size
	if l+1 == levelEver {
		size = policy[levelDay].size
	}
	to -= to % size
	s.catalogue.each(l, windows.Range{From: s.ladder.floor[l], To: to}, func(e entry) bool {
		p := periodOf(l+1, e.start())
		if !s.ladder.has(p) {
			to = p.start
			return false
		}
		return true
	})
	return to
}

// removeUpTo makes to the floor of a level, and removes what is below.
func (s *Store) removeUpTo(ctx context.Context, l windows.Level, to windows.Minute) error {
	s.mu.RLock()
	floor := s.ladder.floor[l]
	s.mu.RUnlock()
	if to <= floor {
		return nil
	}
	if err := s.moveFloor(l, windows.Range{From: floor, To: to}); err != nil {
		return err
	}
	s.step("retain.shown")
	// Excise takes the rows from under open snapshots too. Those that are opened
	// from now on know that they are gone.
	if err := s.drain(ctx); err != nil {
		return err
	}
	if err := s.removeBelow(l, to); err != nil {
		return err
	}
	s.step("retain.excised")
	return nil
}

// moveFloor takes all starts of a range out of the catalogue.
func (s *Store) moveFloor(l windows.Level, r windows.Range) error {
	s.gate.Lock() // a seal must not be on its way to what is removed
	defer s.gate.Unlock()
	var old []entry
	s.mu.RLock()
	s.catalogue.each(l, r, func(e entry) bool {
		old = append(old, e)
		return true
	})
	s.mu.RUnlock()
	changes, err := s.without(l, old)
	if err != nil {
		return err
	}
	out := newOutput(s)
	changes = append(changes, rowChange{floorKey(l), binary.AppendUvarint(nil, uint64(r.To))})
	if err := out.commit(changes...); err != nil {
		return err
	}
	s.step("retain.committed")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalogue.cut(l, r.To)
	s.ladder.rolled.cut(l, r.To)
	s.ladder.floor[l] = r.To
	return nil
}

// removeBelow removes all rows of a level before its floor, if there are any.
func (s *Store) removeBelow(l windows.Level, floor windows.Minute) error {
	from, to := startKey(l, 0), startKey(l, floor)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	any := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil || !any {
		return err
	}
	return s.logger.guard(func() error {
		return s.db.Excise(context.Background(), pebble.KeyRange{Start: from, End: to})
	})
}
