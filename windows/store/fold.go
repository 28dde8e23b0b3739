package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// foldFrom is how many parts a start may have; with more they are folded into one.
// A minute may have one of each partition beside: they are soon rolled up.
const foldFrom = 8

// fold folds starts that have many parts, which late seals bring: of each a read is
// one more seek.
func (s *Store) fold(ctx context.Context, passed windows.Minute) error {
	for l := range windows.Level(levelCount) {
		for {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			starts := s.crowded(l, passed)
			if len(starts) == 0 {
				break
			}
			if err := s.foldStarts(ctx, l, starts); err != nil {
				return fmt.Errorf("fold parts of level %s: %w", policy[l].name, err)
			}
		}
	}
	return nil
}

// crowded returns some starts of a level that have too many parts. Where the level
// above has not been rolled up they are left: that merges them anyway.
func (s *Store) crowded(l windows.Level, passed windows.Minute) (starts []windows.Minute) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	limit := foldFrom
	if l == levelMinute {
		limit += s.meta.Partitions
	}
	if l == levelEver {
		seen := make(map[uint32]bool)
		s.catalogue.each(l, s.ladder.ever, func(e entry) bool {
			seen[e.part()] = true
			return true
		})
		if len(seen) > limit {
			starts = append(starts, 0)
		}
		return starts
	}
	var at windows.Minute
	var parts int
	var rows, all uint64
	end := func() {
		if parts > limit && s.ladder.has(periodOf(l+1, at)) {
			starts = append(starts, at)
			all += rows
		}
		parts, rows = 0, 0
	}
	s.catalogue.each(l, windows.Range{To: passed}, func(e entry) bool {
		if e.start() != at {
			end()
			at = e.start()
		}
		parts++
		rows += e.info().rows()
		return len(starts) < periodsAJob && all < rowsAJob
	})
	end()
	return starts
}

// foldStarts folds all parts of some starts into one part. Nobody sees the store
// between the commit and the new catalogue, so no reader looks for a part that is
// gone.
func (s *Store) foldStarts(ctx context.Context, l windows.Level, starts []windows.Minute) error {
	s.gate.Lock() // all seals with a lower number are shown
	number := s.nextPart.Add(1) - 1
	n, err := s.Snapshot()
	s.gate.Unlock()
	if err != nil {
		return err
	}
	err = s.foldSnapshot(ctx, l, starts, number, n)
	return errors.Join(err, n.Close())
}

func (s *Store) foldSnapshot(ctx context.Context, l windows.Level, starts []windows.Minute, number uint32, n *Snapshot) error {
	p := &part{number: number, kind: partFold, key: s.meta.KeyID}
	out := newOutput(s)
	defer out.abandon()
	r := newRoller(s, n, out)
	old := make(parts)
	for _, start := range starts {
		within := windows.Range{From: start, To: start + 1}
		if l == levelEver {
			within = n.ladder.ever
		}
		parts := n.older(l, within, number)
		from := blockKey{level: l, start: start}.append(nil)
		to := blockKey{level: l, start: start, part: number}.append(nil)
		if err := out.deleteRange(from, to); err != nil {
			return err
		}
		info, err := r.merge(ctx, blockKey{level: l, start: start, part: number}, parts)
		if err != nil {
			return err
		}
		n.catalogue.each(l, within, func(e entry) bool {
			if e.part() >= number {
				return true
			}
			if k := len(p.starts[l]); k == 0 || p.starts[l][k-1].start != e.start() {
				p.starts[l] = append(p.starts[l], presence{e.start(), info})
			}
			old.add(e.part(), l, e.start())
			return true
		})
	}
	s.step("fold.merged")
	changes, err := s.without(old)
	if err != nil {
		return err
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := out.commit(append(changes, rowChange{partKey(number), p.append(nil)})...); err != nil {
		return err
	}
	s.step("fold.committed")
	s.leaveLocked(old)
	s.enterLocked(p)
	return nil
}

// parts is what is taken away from parts, by their numbers.
type parts map[uint32]map[period]bool

func (o parts) add(number uint32, l windows.Level, start windows.Minute) {
	if o[number] == nil {
		o[number] = make(map[period]bool)
	}
	o[number][period{l, start}] = true
}

// without returns the changes of the catalogue's rows that take something away. A
// row that has no starts left goes, but for that of the newest seal of a partition,
// which the position is held against.
func (s *Store) without(old parts) ([]rowChange, error) {
	var changes []rowChange
	for number, gone := range old {
		key := partKey(number)
		p, err := s.readPart(key)
		if err != nil {
			return nil, err
		}
		for l := range p.starts {
			kept := p.starts[l][:0]
			for _, at := range p.starts[l] {
				if !gone[period{windows.Level(l), at.start}] {
					kept = append(kept, at)
				}
			}
			p.starts[l] = kept
		}
		c := rowChange{key: key}
		if !p.empty() || s.isNewest(p) {
			c.value = p.append(nil)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (s *Store) readPart(key []byte) (*part, error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, damaged(key, "the row of a part is missing")
	}
	if err != nil {
		return nil, readError(err)
	}
	defer closer.Close()
	return parsePart(key, value)
}

// isNewest reports whether a part is the newest seal of its partition.
func (s *Store) isNewest(p *part) bool {
	if p.kind != partSeal {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	l := s.roster.find(p.seal.Log)
	return l != nil && l.positions[p.seal.Partition].part == p.number
}

// leaveLocked takes what is gone out of what readers see. gate and mu must be held.
func (s *Store) leaveLocked(old parts) {
	for number, gone := range old {
		for p := range gone {
			s.catalogue.remove(p.level, p.start, number)
			s.ladder.rolled.remove(p.level, p.start, number)
		}
	}
}
