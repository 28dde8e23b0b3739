package store

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"

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

// EachPart yields the parts of a stretch, ascending by start.
func (n *Snapshot) EachPart(at windows.Stretch, yield func(windows.Part)) {
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		yield(p)
		return true
	})
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
