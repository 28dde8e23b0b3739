// Package queriestest holds a store in memory that questions can be tested
// against, and the way from events to an engine of questions over it. Tests use
// it; nothing else does.
package queriestest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"tidemark/queries"
	"tidemark/sketches"
	"tidemark/windows"
)

// Store keeps seals as they are. It is a windows.Applier, and its snapshots are
// what queries reads. Safe for concurrent use.
type Store struct {
	// ListSize is how many items a part's list names; 0: all.
	ListSize int

	mu        sync.Mutex
	parts     []part // ascending by start once sorted
	sorted    bool
	series    []windows.Series
	known     map[windows.Series]bool
	positions map[position]windows.Pair
	logs      []queries.Log
	names     []string // by identifier
	ids       map[string]uint32
	infos     map[string]windows.ItemInfo
	hasher    sketches.Hasher
}

type position struct {
	log       windows.LogID
	partition int
}

type part struct {
	windows.Part
	content *windows.Content
}

// firstID leaves identifiers below it to kinds that are no item, as stores do.
const firstID = 2

// NewStore returns an empty store.
func NewStore(h sketches.Hasher) *Store {
	return &Store{
		positions: make(map[position]windows.Pair),
		known:     make(map[windows.Series]bool),
		ids:       make(map[string]uint32),
		infos:     make(map[string]windows.ItemInfo),
		names:     make([]string, firstID),
		hasher:    h,
	}
}

// Begin implements Backing.
func (s *Store) Begin(id windows.LogID, name string, _ []uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, queries.Log{ID: id, Names: []string{name}, Files: true})
	return nil
}

// Finish implements Backing.
func (s *Store) Finish(id windows.LogID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.logs {
		if s.logs[i].ID == id {
			s.logs[i].Done = true
		}
	}
	return nil
}

// Apply implements windows.Applier.
func (s *Store) Apply(seal *windows.Seal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := position{seal.Log, seal.Partition}
	if s.positions[at] != seal.From {
		return fmt.Errorf("a seal from %+v, the store is at %+v", seal.From, s.positions[at])
	}
	s.positions[at] = seal.To
	s.sorted = false
	for _, p := range seal.Partials {
		for _, series := range p.Series() {
			if !s.known[series] {
				s.known[series] = true
				s.series = append(s.series, series)
			}
		}
		s.parts = append(s.parts, part{windows.Part{Start: p.Minute(), ID: uint32(len(s.parts))}, &p.Content})
		p.Each(func(_ int, r windows.Row) bool {
			if _, ok := s.ids[string(r.Item)]; !ok && r.Kind == windows.Item {
				s.ids[string(r.Item)] = uint32(len(s.names))
				s.names = append(s.names, string(r.Item))
			}
			return true
		})
	}
	for _, i := range seal.Items {
		have := s.infos[i.Item]
		have.Merge(i)
		s.infos[i.Item] = have
	}
	return nil
}

// Snapshot returns the store as it is now.
func (s *Store) Snapshot() (queries.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sorted {
		s.sorted = true
		s.parts = slices.Clone(s.parts) // older snapshots have the old one
		slices.SortStableFunc(s.parts, func(a, b part) int { return cmp.Compare(a.Start, b.Start) })
	}
	return &snapshot{
		store:     s,
		positions: maps.Clone(s.positions),
		logs:      slices.Clone(s.logs),
		parts:     s.parts,
		series:    s.series,
		names:     s.names,
		infos:     maps.Clone(s.infos),
	}, nil
}

type snapshot struct {
	store     *Store
	positions map[position]windows.Pair
	logs      []queries.Log
	parts     []part
	series    []windows.Series
	names     []string
	infos     map[string]windows.ItemInfo
	closed    bool
}

func (n *snapshot) Close() error {
	if n.closed {
		return errors.New("closed twice")
	}
	n.closed = true
	return nil
}

func (n *snapshot) Span() (windows.Range, bool) {
	r := windows.Range{From: windows.MaxMinute}
	for _, p := range n.parts {
		if !p.content.Empty() {
			r = windows.Range{From: min(r.From, p.Start), To: max(r.To, p.Start+1)}
		}
	}
	return r, !r.Empty()
}

func (n *snapshot) Logs() []queries.Log { return n.logs }

func (n *snapshot) Position(log windows.LogID, partition int) windows.Pair {
	return n.positions[position{log, partition}]
}

func (n *snapshot) Series() []windows.Series { return n.series }

func (n *snapshot) ID(item string) (uint32, bool, error) {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	id, ok := n.store.ids[item]
	return id, ok && int(id) < len(n.names), nil
}

func (n *snapshot) Name(id uint32) (string, error) {
	if id < firstID || int(id) >= len(n.names) {
		return "", fmt.Errorf("no item %d", id)
	}
	return n.names[id], nil
}

func (n *snapshot) Items(prefix string, yield func(uint32, string) bool) error {
	for _, name := range slices.Sorted(slices.Values(n.names[firstID:])) {
		if strings.HasPrefix(name, prefix) && !yield(n.id([]byte(name)), name) {
			break
		}
	}
	return nil
}

func (n *snapshot) Texts(id uint32) (windows.ItemInfo, error) {
	name, err := n.Name(id)
	return n.infos[name], err
}

func (n *snapshot) Outcomes(at windows.Stretch, yield func(windows.Part, windows.OutcomeCount) error) error {
	return n.in(at, func(p part) error {
		for _, o := range p.content.Outcomes() {
			if err := yield(p.Part, o); err != nil {
				return err
			}
		}
		return nil
	})
}

func (n *snapshot) in(at windows.Stretch, yield func(part) error) error {
	if at.Level != windows.LevelMinute {
		return nil
	}
	first, _ := slices.BinarySearchFunc(n.parts, at.From, func(p part, m windows.Minute) int { return cmp.Compare(p.Start, m) })
	for _, p := range n.parts[first:] {
		if p.Start >= at.To {
			break
		}
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

func (n *snapshot) Plan(edges []windows.Minute) (steps []windows.Stretch, gone []windows.Range) {
	return []windows.Stretch{{Range: windows.Range{From: edges[0], To: edges[len(edges)-1]}}}, nil
}

func (n *snapshot) EachPart(at windows.Stretch, yield func(windows.Part)) {
	_ = n.in(at, func(p part) error { // which does not fail
		yield(p.Part)
		return nil
	})
}

func (n *snapshot) Kept() []windows.Kept { return []windows.Kept{{Size: 1}} }

func (n *snapshot) RowsOf(at windows.Stretch, s windows.Series, items []uint32, yield func(int, windows.Part, windows.Row) error) error {
	hashes := make([]sketches.Hash128, len(items))
	for i, id := range items {
		name, err := n.Name(id)
		if err != nil {
			return err
		}
		hashes[i] = n.store.hasher.Item([]byte(name))
	}
	return n.in(at, func(p part) error {
		if len(items) > p.content.Items() {
			var err error
			p.content.EachOf(s, func(r windows.Row) bool {
				if i, ok := slices.BinarySearch(items, n.id(r.Item)); ok && r.Kind == windows.Item {
					err = yield(i, p.Part, r)
				}
				return err == nil
			})
			return err
		}
		for i := range items {
			if r, ok := p.content.Find(s, windows.Item, hashes[i]); ok {
				if err := yield(i, p.Part, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (n *snapshot) Rows(at windows.Stretch, s windows.Series, kind windows.Kind, item uint32, yield func(windows.Part, windows.Row) error) error {
	var hash sketches.Hash128
	if kind == windows.Item {
		name, err := n.Name(item)
		if err != nil {
			return err
		}
		hash = n.store.hasher.Item([]byte(name))
	}
	return n.in(at, func(p part) error {
		if r, ok := p.content.Find(s, kind, hash); ok {
			return yield(p.Part, r)
		}
		return nil
	})
}

func (n *snapshot) Scan(at windows.Stretch, s windows.Series, yield func(windows.Part, uint32, windows.Row) error) error {
	return n.in(at, func(p part) error {
		var err error
		p.content.EachOf(s, func(r windows.Row) bool {
			err = yield(p.Part, n.id(r.Item), r)
			return err == nil
		})
		return err
	})
}

func (n *snapshot) id(item []byte) uint32 {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	return n.store.ids[string(item)]
}

func (n *snapshot) Lists(at windows.Stretch, s windows.Series, yield func(windows.Part, windows.TopList) error) error {
	return n.in(at, func(p part) error {
		type item struct {
			name            string
			events, reached uint64
		}
		var items []item
		p.content.EachOf(s, func(r windows.Row) bool {
			if r.Kind == windows.Item {
				items = append(items, item{string(r.Item), r.Events, r.Reached})
			}
			return true
		})
		if len(items) == 0 {
			return nil
		}
		slices.SortFunc(items, func(a, b item) int {
			return cmp.Or(cmp.Compare(b.events, a.events), strings.Compare(a.name, b.name))
		})
		var l windows.TopList
		for i, x := range items {
			if n.store.ListSize > 0 && i >= n.store.ListSize {
				l.MaxEvents, l.MaxReached = max(l.MaxEvents, x.events), max(l.MaxReached, x.reached)
				continue
			}
			l.Items = append(l.Items, n.id([]byte(x.name)))
			l.Events, l.Reached = append(l.Events, x.events), append(l.Reached, x.reached)
		}
		return yield(p.Part, l)
	})
}

func (n *snapshot) Sketches(at windows.Stretch, typ windows.Series, yield func(windows.Part, *sketches.CountMin, *sketches.TopK) error) error {
	return n.in(at, func(p part) error {
		if table, heap, ok := p.content.Sketch(typ); ok {
			return yield(p.Part, table, heap)
		}
		return nil
	})
}
