package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// Maintain does what is due: it rolls up every period that ended at passed or
// before, folds starts that have many parts, and removes what retention no longer
// keeps. passed is the first minute that seals to come may still have in time: the
// least of all watermarks, or after an import windows.MaxMinute, which stands for
// the newest minute stored.
//
// Seals and questions go on meanwhile. It can be ended at any time, by ctx or by a
// crash, and called again; calls wait for each other.
func (s *Store) Maintain(ctx context.Context, passed windows.Minute) error {
	if s.opts.ReadOnly {
		return pebble.ErrReadOnly
	}
	s.maintenance.Lock()
	defer s.maintenance.Unlock()
	for _, work := range []func(context.Context, windows.Minute) error{s.resume, s.rollUp, s.fold, s.retain} {
		if err := work(ctx, min(passed, s.newest())); err != nil {
			return fmt.Errorf("maintain the store: %w", err)
		}
	}
	return nil
}

// Pending reports whether Maintain would roll up or fold anything: so whether a call
// of it was ended before it was done, unless there were seals since.
func (s *Store) Pending() bool {
	s.gate.RLock()
	marked := len(s.marks) > 0
	s.gate.RUnlock()
	passed := s.newest()
	for l := range windows.Level(levelCount) {
		marked = marked || l > levelMinute && s.due(l, passed, nil) != nil || len(s.crowded(l, passed)) > 0
	}
	return marked
}

// newest returns the minute after the newest that is stored.
func (s *Store) newest() windows.Minute {
	s.mu.RLock()
	defer s.mu.RUnlock()
	newest := windows.Minute(0)
	for l := range levelEver {
		if last, ok := s.catalogue.last(l); ok {
			newest = max(newest, last+1)
		}
	}
	return newest
}

// job is a number of periods of a level that are rolled up as one part.
type job struct {
	number  uint32
	level   windows.Level
	periods []windows.Minute // ascending; of ever: days
}

// A mark's row: what is being rolled up, or folded. Part of the format:
//
//	uvarint(version) uvarint(level) uvarint(n), n × uvarint(start − start before)
const markVersion = 1

func (j *job) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, markVersion)
	dst = binary.AppendUvarint(dst, uint64(j.level))
	dst = binary.AppendUvarint(dst, uint64(len(j.periods)))
	var before windows.Minute
	for _, p := range j.periods {
		dst = binary.AppendUvarint(dst, uint64(p-before))
		before = p
	}
	return dst
}

func parseJob(key, value []byte) (*job, error) {
	if len(key) != 5 {
		return nil, damaged(key, "not the key of a mark")
	}
	d := decoder{b: value}
	if v := d.uint(math.MaxInt); v != markVersion && !d.bad {
		return nil, damaged(key, "version %d of a mark; this build knows %d", v, markVersion)
	}
	j := &job{number: binary.BigEndian.Uint32(key[1:]), level: windows.Level(d.uint(levelCount - 1))}
	n := d.uint(uint64(len(d.b)))
	var at uint64
	for i := range n {
		step := d.uint(uint64(windows.MaxMinute))
		at += step
		if d.bad || at >= uint64(windows.MaxMinute) || i > 0 && step == 0 {
			d.bad = true
			break
		}
		j.periods = append(j.periods, windows.Minute(at))
	}
	if d.bad || len(d.b) > 0 {
		return nil, damaged(key, "not the row of a mark")
	}
	return j, nil
}

// loadFloors reads where levels begin, and removes what a crash has left behind.
func (s *Store) loadFloors() error {
	err := s.eachRow(prefixFloor, func(key, value []byte) error {
		d := decoder{b: value}
		floor := windows.Minute(d.uint(uint64(windows.MaxMinute)))
		if len(key) != 2 || key[1] >= byte(levelEver) || d.bad || len(d.b) > 0 {
			return damaged(key, "not the row of a floor")
		}
		s.ladder.floor[key[1]] = floor
		return nil
	})
	if err != nil {
		return err
	}
	if s.opts.ReadOnly {
		return nil
	}
	if err := s.removeUnfinished(); err != nil {
		return err
	}
	for l, floor := range s.ladder.floor {
		if err := s.removeBelow(windows.Level(l), floor); err != nil {
			return err
		}
	}
	return s.removeFiles()
}

// loadMarks reads what was being rolled up. It comes before the parts.
func (s *Store) loadMarks() error {
	return s.eachRow(prefixMark, func(key, value []byte) error {
		j, err := parseJob(key, value)
		if err == nil {
			s.nextPart.Store(max(s.nextPart.Load(), j.number+1))
			s.mark(j)
		}
		return err
	})
}

// mark notes that periods are taken in from now on. gate must be held alone, or
// nobody else have the store.
func (s *Store) mark(j *job) {
	for _, start := range j.periods {
		s.marks[period{j.level, start}] = j.number
	}
}

// resume rolls up what a crash, or an error, has left marked.
func (s *Store) resume(ctx context.Context, _ windows.Minute) error {
	jobs := make(map[uint32]*job)
	s.gate.RLock()
	for p, number := range s.marks {
		if jobs[number] == nil {
			jobs[number] = &job{number: number, level: p.level}
		}
		jobs[number].periods = append(jobs[number].periods, p.start)
	}
	s.gate.RUnlock()
	var numbers []uint32
	for number := range jobs {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers) // lower levels were marked first
	for _, number := range numbers {
		slices.Sort(jobs[number].periods)
		n, err := s.Snapshot()
		if err != nil {
			return err
		}
		if err := errors.Join(s.roll(ctx, jobs[number], n), n.Close()); err != nil {
			return err
		}
	}
	return nil
}
