package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/sketches"
	"tidemark/windows"
)

// Snapshot is the store at one instant. It is for one goroutine at a time, and
// must be closed. What a yield is handed is borrowed until it returns; an error
// that it returns ends the call, which returns that error.
type Snapshot struct {
	store     *Store
	pebble    *pebble.Snapshot
	cursor    *cursor // made when it is first needed
	catalogue catalogue
	ladder    ladder
	logs      []*logState
	series    []windows.Series
	done      chan struct{} // closed once the snapshot is

	key    []byte
	record record
	tokens []uint32
	top    topBuilder
	list   windows.TopList
}

// Snapshot returns the store as it is now: with every seal whose Apply has returned.
func (s *Store) Snapshot() (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if err := s.logger.failure(); err != nil {
		return nil, err
	}
	s.roster.shared = true
	n := &Snapshot{
		store:     s,
		done:      make(chan struct{}),
		catalogue: s.catalogue.share(),
		ladder:    s.ladder.share(),
		logs:      s.roster.logs,
		series:    s.known.list(),
		// Under mu, so that no part that the catalogue has is removed in between.
		pebble: s.db.NewSnapshot(),
	}
	s.snapshots[n] = struct{}{}
	return n, nil
}

// Close gives back what the snapshot holds. More than once is allowed.
func (n *Snapshot) Close() error {
	if n.pebble == nil {
		return nil
	}
	var err error
	if n.cursor != nil {
		err = n.cursor.iter.Close()
	}
	if cerr := n.pebble.Close(); err == nil {
		err = cerr
	}
	n.pebble = nil
	n.store.mu.Lock()
	delete(n.store.snapshots, n)
	n.store.mu.Unlock()
	close(n.done)
	return err
}

// Span returns the minutes from the first to the last that events are counted in;
// ok is false if there are none. Where retention has left larger periods only, the
// first or last is that of such a period.
func (n *Snapshot) Span() (r windows.Range, ok bool) {
	for l := range windows.Level(levelCount) {
		first, some := n.catalogue.first(l)
		if !some {
			continue
		}
		last, _ := n.catalogue.last(l)
		at := l
		if l == levelEver {
			at = levelDay // what its entries are of
		}
		// A period says less than the minutes in it, where they are still there.
		if !ok || first < levelStart(at, r.From) {
			r.From = first
		}
		if !ok || last > levelStart(at, r.To-1) {
			r.To = last + policy[at].size
		}
		ok = true
	}
	return r, ok
}

// Logs returns all logs, oldest first.
func (n *Snapshot) Logs() []Log { return publicLogs(n.logs) }

// Position returns the newest pair of a partition of a log that the snapshot
// holds: the zero Pair if none.
func (n *Snapshot) Position(id windows.LogID, partition int) windows.Pair {
	i, found := slices.BinarySearchFunc(n.logs, id, compareLog)
	if !found || partition < 0 || partition >= len(n.logs[i].positions) {
		return windows.Pair{}
	}
	return n.logs[i].positions[partition].To
}

// Series returns all series that the store has ever seen, in the order in which it
// first saw them. The list is not to be changed.
func (n *Snapshot) Series() []windows.Series { return n.series }

// ID returns the dictionary's number of an item; ok is false for one that was never
// stored.
func (n *Snapshot) ID(item string) (id uint32, ok bool, err error) {
	id, err = n.store.items.find(n.pebble, []byte(item))
	return id, id != 0, err
}

// Name is the inverse of ID. A number that ID did not return is an error.
func (n *Snapshot) Name(id uint32) (string, error) {
	name, err := n.store.items.name(n.pebble, id)
	return string(name), err
}

// Parts returns how many parts a stretch has.
func (n *Snapshot) Parts(at windows.Stretch) int {
	parts, _ := n.Size(at)
	return parts
}

// Size returns how many parts a stretch has, and at most how many rows they have
// together, within a factor of four of it. It reads nothing.
func (n *Snapshot) Size(at windows.Stretch) (parts int, rows uint64) {
	n.eachPart(at, func(_ windows.Part, info presenceInfo) bool {
		parts++
		rows += info.rows()
		return true
	})
	return parts, rows
}

func (n *Snapshot) eachPart(at windows.Stretch, yield func(windows.Part, presenceInfo) bool) {
	if at.Level >= levelCount {
		return
	}
	if at.Level == levelEver {
		n.eachEver(yield)
		return
	}
	n.catalogue.each(at.Level, at.Range, func(e entry) bool {
		return yield(windows.Part{Level: at.Level, Start: e.start(), ID: e.part()}, e.info())
	})
}

// eachEver yields the parts of the level ever. Each is there once for each of its
// days; its start is the first day of all.
func (n *Snapshot) eachEver(yield func(windows.Part, presenceInfo) bool) {
	var seen []uint32
	n.catalogue.each(levelEver, n.ladder.ever, func(e entry) bool {
		if slices.Contains(seen, e.part()) {
			return true
		}
		seen = append(seen, e.part())
		return yield(windows.Part{Level: levelEver, Start: n.ladder.ever.From, ID: e.part()}, e.info())
	})
}

// Rows yields the rows of one key, one for each part of the stretch that has it.
// item is the number for kind Item, else 0.
func (n *Snapshot) Rows(at windows.Stretch, s windows.Series, kind windows.Kind, item uint32, yield func(windows.Part, windows.Row) error) error {
	series, err := n.seriesID(s)
	if err != nil || series == 0 {
		return err
	}
	switch kind {
	case windows.Site:
		item = itemSite
	case windows.Overflow:
		item = itemOverflow
	case windows.Item:
		if item < firstItem {
			return fmt.Errorf("rows of an item: %d is no item's number", item)
		}
	}
	want := makeRowKey(series, item)
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		err = n.find(p, want, yield)
		return err == nil
	})
	return err
}

// find yields the row of one key in one part.
func (n *Snapshot) find(p windows.Part, want rowKey, yield func(windows.Part, windows.Row) error) error {
	block, err := n.seek(p, want)
	if err != nil || block == nil {
		return err
	}
	r := &n.record
	b := newBlockReader(block)
	for {
		ok, err := b.next(r)
		if err != nil {
			return n.damaged(err)
		}
		if !ok {
			return n.damaged(errBlock) // the block ends with the key's row, and that is not before want
		}
		if r.key >= want {
			break
		}
	}
	if r.key != want {
		return nil
	}
	row, err := n.show(r)
	if err != nil {
		return err
	}
	return yield(p, row)
}

// RowsOf is Rows of many items in one pass: their numbers ascend, and yield is told
// which of them the row is of. It goes through each part once, from block to block.
func (n *Snapshot) RowsOf(at windows.Stretch, s windows.Series, items []uint32, yield func(i int, p windows.Part, row windows.Row) error) error {
	series, err := n.seriesID(s)
	if err != nil || series == 0 || len(items) == 0 {
		return err
	}
	if items[0] < firstItem {
		return fmt.Errorf("rows of items: %d is no item's number", items[0])
	}
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		err = n.findAll(p, series, items, yield)
		return err == nil
	})
	return err
}

// findAll yields the rows of some items of a series in one part.
func (n *Snapshot) findAll(p windows.Part, series uint32, items []uint32, yield func(i int, p windows.Part, row windows.Row) error) error {
	for i := 0; i < len(items); {
		block, err := n.seek(p, makeRowKey(series, items[i]))
		if err != nil || block == nil {
			return err
		}
		b := newBlockReader(block)
		r := &n.record
		for i < len(items) {
			ok, err := b.next(r)
			if err != nil {
				return n.damaged(err)
			}
			if !ok {
				if !n.endsAt(r.key) {
					return n.damaged(errBlock)
				}
				break
			}
			for i < len(items) && makeRowKey(series, items[i]) < r.key {
				i++ // not in this part
			}
			if i < len(items) && makeRowKey(series, items[i]) == r.key {
				row, err := n.show(r)
				if err != nil {
					return err
				}
				if err := yield(i, p, row); err != nil {
					return err
				}
				i++
			}
		}
	}
	return nil
}

// Scan yields all rows of a series, part by part, ascending by kind and item; item
// is 0 unless the row is of kind Item. Its yield must not ask the snapshot for
// anything but names and numbers.
func (n *Snapshot) Scan(at windows.Stretch, s windows.Series, yield func(p windows.Part, item uint32, row windows.Row) error) error {
	series, err := n.seriesID(s)
	if err != nil || series == 0 {
		return err
	}
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		err = n.scan(p, series, func(r *record) error {
			row, err := n.show(r)
			if err != nil {
				return err
			}
			item := r.key.item()
			if row.Kind != windows.Item {
				item = 0
			}
			return yield(p, item, row)
		})
		return err == nil
	})
	return err
}

// scan yields the records of a series in a part.
func (n *Snapshot) scan(p windows.Part, series uint32, yield func(r *record) error) error {
	block, err := n.seek(p, makeRowKey(series, 0))
	for block != nil && err == nil {
		b := newBlockReader(block)
		for {
			ok, err := b.next(&n.record)
			if err != nil {
				return n.damaged(err)
			}
			if !ok {
				if !n.endsAt(n.record.key) {
					return n.damaged(errBlock)
				}
				break
			}
			if n.record.key.series() > series {
				return nil
			}
			if n.record.key.series() == series {
				if err := yield(&n.record); err != nil {
					return err
				}
			}
		}
		block, err = n.next(p)
	}
	return err
}

// Lists yields one list for each part of the stretch that has items of the series:
// the stored one, or where there are few, of all of them.
func (n *Snapshot) Lists(at windows.Stretch, s windows.Series, yield func(windows.Part, windows.TopList) error) error {
	series, err := n.seriesID(s)
	if err != nil || series == 0 {
		return err
	}
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		var any bool
		if any, err = n.readList(p, series); err == nil && any {
			err = yield(p, n.list)
		}
		return err == nil
	})
	return err
}

// readList brings the list of a series in a part into n.list.
func (n *Snapshot) readList(p windows.Part, series uint32) (any bool, err error) {
	n.top.reset()
	value, err := n.value(p, makeRowKey(seriesTop, series))
	if err != nil {
		return false, err
	}
	if value != nil {
		if !parseTopList(value, &n.top.list) {
			return false, n.damaged(errors.New("not a list"))
		}
		n.top.list.show(&n.list)
		return true, nil
	}
	err = n.scan(p, series, func(r *record) error {
		if r.key.item() >= firstItem {
			n.top.add(topItem{id: r.key.item(), events: r.events, reached: r.reached, short: r.short})
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	list := n.top.finish()
	list.show(&n.list)
	return len(list.items) > 0, nil
}

// Sketches yields, for each part in which items of a type found no slot, the
// Count-Min table of all its keys, nil if it was found damaged when it was sealed,
// and the highest of the items without a slot. typ has no dimension.
func (n *Snapshot) Sketches(at windows.Stretch, typ windows.Series, yield func(windows.Part, *sketches.CountMin, *sketches.TopK) error) error {
	series, err := n.seriesID(typ)
	if err != nil || series == 0 {
		return err
	}
	n.eachPart(at, func(p windows.Part, info presenceInfo) bool {
		if !info.overflowed() {
			return true
		}
		var table *sketches.CountMin
		var heap *sketches.TopK
		if table, heap, err = n.readSketches(p, series); err == nil && heap != nil {
			err = yield(p, table, heap)
		}
		return err == nil
	})
	return err
}

func (n *Snapshot) readSketches(p windows.Part, series uint32) (table *sketches.CountMin, heap *sketches.TopK, err error) {
	value, err := n.value(p, makeRowKey(seriesHeap, series))
	if err != nil || value == nil {
		return nil, nil, err
	}
	if heap, err = sketches.DecodeTopK(value); err != nil {
		return nil, nil, n.damaged(err)
	}
	if value, err = n.value(p, makeRowKey(seriesCountMin, series)); err != nil || value == nil {
		return nil, heap, err
	}
	if table, err = sketches.DecodeCountMin(value); err != nil {
		return nil, nil, n.damaged(err)
	}
	return table, heap, nil
}

// Outcomes yields what became of the records of each minute, or other period, of
// the stretch: part by part.
func (n *Snapshot) Outcomes(at windows.Stretch, yield func(windows.Part, windows.OutcomeCount) error) error {
	var err error
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		err = n.scan(p, seriesOutcomes, func(r *record) error {
			o := windows.OutcomeCount{Outcome: windows.Outcome(r.key.item() >> 24), Records: r.events}
			if o.Outcome >= outcomeCount {
				return n.damaged(fmt.Errorf("outcome %d", o.Outcome))
			}
			if reason := r.key.item() & lastReason; reason != reasonNone {
				name, err := n.store.reasons.name(n.pebble, reason)
				if err != nil {
					return err
				}
				o.Reason = string(name)
			}
			return yield(p, o)
		})
		return err == nil
	})
	return err
}

// seriesID returns the number of a series, or 0 if it was never stored.
func (n *Snapshot) seriesID(s windows.Series) (uint32, error) {
	n.key = appendSeries(n.key[:0], s)
	return n.store.series.find(n.pebble, n.key)
}

// show makes a row of a record.
func (n *Snapshot) show(r *record) (windows.Row, error) {
	row := windows.Row{Kind: windows.Item, Events: r.events, Reached: r.reached, Short: r.short}
	switch r.key.item() {
	case itemSite:
		row.Kind = windows.Site
	case itemOverflow:
		row.Kind = windows.Overflow
	}
	if r.dense != nil {
		if !registersValid(r.dense) {
			return windows.Row{}, n.damaged(fmt.Errorf("a register of %v is too high", r.key))
		}
		row.Registers = r.dense
		return row, nil
	}
	n.tokens = decodeTokens(n.tokens[:0], r.tokens)
	row.Tokens = n.tokens
	return row, nil
}

// seek moves the cursor to the block of a part that holds a row, if the part has
// it, and returns the block; nil if all rows of the part are before it.
func (n *Snapshot) seek(p windows.Part, row rowKey) ([]byte, error) {
	if n.cursor == nil {
		c, err := openCursor(n.pebble)
		if err != nil {
			return nil, err
		}
		n.cursor = c
	}
	n.key = keyOf(p, row).append(n.key[:0])
	n.cursor.seek(n.key)
	return n.block(n.key)
}

// keyOf returns the key of a row of a part.
func keyOf(p windows.Part, row rowKey) blockKey {
	k := blockKey{level: p.Level, start: p.Start, part: p.ID, row: row}
	if p.Level == levelEver {
		k.start = 0
	}
	return k
}

// next moves on to the next block of the part.
func (n *Snapshot) next(p windows.Part) ([]byte, error) {
	n.key = keyOf(p, 0).append(n.key[:0])
	n.cursor.next()
	return n.block(n.key)
}

// block returns the value at the cursor if it is a block of the key's part.
func (n *Snapshot) block(key []byte) ([]byte, error) {
	value, err := n.current(key)
	if value == nil || err != nil {
		return nil, err
	}
	at, err := parseBlockKey(n.cursor.key())
	if err != nil || at.row.series() > lastSeries {
		return nil, err
	}
	return value, nil
}

// value returns the value of a row that is no block, or nil.
func (n *Snapshot) value(p windows.Part, row rowKey) ([]byte, error) {
	if _, err := n.seek(p, row); err != nil {
		return nil, err
	}
	if !n.cursor.valid() || string(n.cursor.key()) != string(n.key) {
		return nil, nil
	}
	return n.current(n.key)
}

// endsAt reports whether the key at the cursor is that of a block with this last row.
func (n *Snapshot) endsAt(last rowKey) bool {
	at, err := parseBlockKey(n.cursor.key())
	return err == nil && at.row == last
}

// current returns the value at the cursor if it is of the key's part and start.
func (n *Snapshot) current(key []byte) ([]byte, error) {
	if !n.cursor.valid() {
		return nil, n.cursor.err()
	}
	if !sharesPart(n.cursor.key(), key) {
		return nil, nil
	}
	value, err := n.cursor.value()
	if err == nil && len(value) == 0 {
		return nil, n.damaged(errors.New("empty"))
	}
	return value, err
}

// damaged is the error for the value at the cursor.
func (n *Snapshot) damaged(err error) error { return damaged(n.cursor.key(), "%v", err) }

// readError says what an error of reading means.
func readError(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
