package store

import (
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// period is one start of a level; of ever, one day.
type period struct {
	level windows.Level
	start windows.Minute
}

func periodOf(l windows.Level, m windows.Minute) period {
	if l == levelEver {
		return period{l, levelStart(levelDay, m)}
	}
	return period{l, levelStart(l, m)}
}

// reach returns the levels that a sealed minute goes to: from the lowest that keeps
// it to the highest that has taken in the period it lies in, since a roll-up that is
// past does not see it. All in between have it too, also where they had nothing of
// that time to be rolled up. gate must be held.
func (s *Store) reach(m windows.Minute) (base, top windows.Level) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for base < levelEver && m < s.ladder.floor[base] {
		base++
	}
	for top = levelEver; top > base; top-- {
		if s.takenInLocked(periodOf(top, m)) {
			break
		}
	}
	return base, top
}

// takenInLocked reports whether a roll-up has taken a period in, or is about to.
// gate and mu must be held.
func (s *Store) takenInLocked(p period) bool {
	if len(s.marks) > 0 {
		if _, ok := s.marks[p]; ok {
			return true
		}
	}
	return s.ladder.has(p)
}

// lateRows gathers the minutes of a seal that are late for some level, and writes
// them there: a part of each period.
type lateRows struct {
	minutes []lateMinute
	text    []byte
	ends    []int // of the blocks in text
}

type lateMinute struct {
	start     windows.Minute
	base, top windows.Level
	from, to  int // its blocks
	tables    []typeTables
}

func (l *lateRows) reset() {
	clear(l.minutes)
	l.minutes, l.text, l.ends = l.minutes[:0], l.text[:0], l.ends[:0]
}

// begin begins a minute, whose blocks follow by add.
func (l *lateRows) begin(m windows.Minute, base, top windows.Level, tables []typeTables) {
	l.minutes = append(l.minutes, lateMinute{start: m, base: base, top: top, from: len(l.ends), to: len(l.ends), tables: tables})
}

func (l *lateRows) add(block []byte) {
	l.text = append(l.text, block...)
	l.ends = append(l.ends, len(l.text))
	l.minutes[len(l.minutes)-1].to++
}

// write writes the parts of all levels above the minute to the batch, and enters
// them in starts.
func (l *lateRows) write(s *Store, number uint32, batch *pebble.Batch, starts *[levelCount][]presence) error {
	if len(l.minutes) == 0 {
		return nil
	}
	m := newMerger(s)
	w := partWriter{known: &s.known}
	for lv := levelMinute + 1; lv < levelCount; lv++ {
		var group []*lateMinute
		flush := func() error {
			if len(group) == 0 {
				return nil
			}
			info, err := l.merge(m, &w, lv, number, group, batch)
			for _, g := range group {
				at := presence{periodOf(lv, g.start).start, info}
				if n := len(starts[lv]); n == 0 || starts[lv][n-1].start != at.start {
					starts[lv] = append(starts[lv], at)
				}
			}
			group = group[:0]
			return err
		}
		for i := range l.minutes {
			late := &l.minutes[i]
			if lv < late.base || lv > late.top {
				continue
			}
			if len(group) > 0 && levelStart(lv, group[0].start) != levelStart(lv, late.start) {
				if err := flush(); err != nil {
					return err
				}
			}
			group = append(group, late)
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

func (l *lateRows) merge(m *merger, w *partWriter, lv windows.Level, number uint32, group []*lateMinute, batch *pebble.Batch) (presenceInfo, error) {
	sources := make([]*source, len(group))
	for i, late := range group {
		at := late.from
		sources[i] = &source{types: typesOf(late.tables), load: loadOf(late.tables), block: func() ([]byte, error) {
			if at == late.to {
				return nil, nil
			}
			from := 0
			if at > 0 {
				from = l.ends[at-1]
			}
			at++
			return l.text[from:l.ends[at-1]], nil
		}}
	}
	key := blockKey{level: lv, start: levelStart(lv, group[0].start), part: number}.append(nil)
	w.begin(func(row rowKey, value []byte) error {
		binary.BigEndian.PutUint64(key[blockKeySize-8:], uint64(row))
		return batch.Set(key, value, nil)
	})
	return m.merge(sources, w)
}

func typesOf(tables []typeTables) (types []uint32) {
	for _, t := range tables {
		types = append(types, t.series)
	}
	return types
}

// loadOf returns the load of a source whose tables are in memory.
func loadOf(tables []typeTables) func(uint32) (typeTables, error) {
	return func(typ uint32) (typeTables, error) {
		return tables[slices.IndexFunc(tables, func(t typeTables) bool { return t.series == typ })], nil
	}
}
