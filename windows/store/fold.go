package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

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
	var old []entry
	for _, start := range starts {
		within := windows.Range{From: start, To: start + 1}
		if l == levelEver {
			within = n.ladder.ever
		}
		from := blockKey{level: l, start: start}.append(nil)
		to := blockKey{level: l, start: start, part: number}.append(nil)
		out.deleteRange(from, to)
		info, err := r.merge(ctx, blockKey{level: l, start: start, part: number}, n.older(l, within, number))
		if err != nil {
			return err
		}
		n.catalogue.each(l, within, func(e entry) bool {
			if e.part() >= number {
				return true
			}
			old = append(old, e)
			if k := len(p.starts[l]); k == 0 || p.starts[l][k-1].start != e.start() {
				p.starts[l] = append(p.starts[l], presence{e.start(), info})
			}
			return true
		})
	}
	s.step("fold.merged")
	changes, err := s.without(l, old)
	if err != nil {
		return err
	}
	if len(out.paths) > 0 {
		if err := s.reserve(&job{number: number, level: l, periods: starts}); err != nil {
			return err
		}
		changes = append(changes, rowChange{key: reservedKey(number)})
	}
	if err := out.ingest(number); err != nil {
		return err
	}
	s.step("fold.ingested")
	s.gate.Lock()
	defer s.gate.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := out.commit(append(changes, rowChange{partKey(number), p.append(nil)})...); err != nil {
		return err
	}
	s.step("fold.committed")
	for _, e := range old {
		s.catalogue.remove(l, e.start(), e.part())
		s.ladder.rolled.remove(l, e.start(), e.part())
	}
	s.enterLocked(p)
	return nil
}

// reserve notes that files of a folding are about to be ingested: if it ends there,
// they lie in the store without a catalogue row, and the number must not be given to
// another part before they are removed.
func (s *Store) reserve(j *job) error {
	b := s.db.NewBatch()
	if err := b.Set(reservedKey(j.number), j.append(nil), nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return s.commit(b, true)
}

// removeUnfinished removes what foldings that were never committed have left.
func (s *Store) removeUnfinished() error {
	b := s.db.NewBatch()
	err := s.eachRow(prefixReserved, func(key, value []byte) error {
		j, err := parseJob(key, value)
		if err != nil {
			return err
		}
		s.nextPart.Store(max(s.nextPart.Load(), j.number+1))
		for _, start := range j.periods {
			from := blockKey{level: j.level, start: start, part: j.number}.append(nil)
			to := blockKey{level: j.level, start: start, part: j.number + 1}.append(nil)
			if err := b.DeleteRange(from, to, nil); err != nil {
				return err
			}
		}
		return b.Delete(key, nil)
	})
	if err != nil || b.Empty() {
		return errors.Join(err, b.Close())
	}
	return s.commit(b, true)
}

// without returns the changes of the catalogue's rows that take starts of a level
// away from parts. A row that has no starts left goes, but for that of the newest
// seal of a partition, which the position is held against.
func (s *Store) without(l windows.Level, old []entry) ([]rowChange, error) {
	slices.SortFunc(old, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.part(), b.part()), cmp.Compare(a.start(), b.start()))
	})
	var changes []rowChange
	for len(old) > 0 {
		n := 1
		for n < len(old) && old[n].part() == old[0].part() {
			n++
		}
		gone := old[:n]
		old = old[n:]
		c := rowChange{key: partKey(gone[0].part())}
		p, err := s.readPart(c.key)
		if err != nil {
			return nil, err
		}
		p.starts[l] = slices.DeleteFunc(p.starts[l], func(at presence) bool {
			_, found := slices.BinarySearchFunc(gone, at.start, func(e entry, start windows.Minute) int { return cmp.Compare(e.start(), start) })
			return found
		})
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
