package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// maxSinkName bounds the names of sinks.
const maxSinkName = 64

// Subscribe has every seal from the next one on wait for a sink. It does nothing if
// they do already.
func (s *Store) Subscribe(sink string) error {
	if sink == "" || len(sink) > maxSinkName {
		return fmt.Errorf("subscribe %q: a name has 1 to %d bytes", sink, maxSinkName)
	}
	s.gate.Lock() // no seal is on its way, with or without a place in the outbox
	defer s.gate.Unlock()
	if s.subscribed(sink) {
		return nil
	}
	if s.opts.ReadOnly {
		return pebble.ErrReadOnly
	}
	b := s.db.NewBatch()
	if err := b.Set(sinkKey(sink), nil, nil); err != nil {
		return errors.Join(err, b.Close())
	}
	if err := s.commit(b, true); err != nil {
		return fmt.Errorf("subscribe %s: %w", sink, err)
	}
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sinks[sink] = make(map[outboxAt]delivered)
	return nil
}

// Unsubscribe drops what waits for a sink alone, and forgets what it has.
func (s *Store) Unsubscribe(sink string) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	o := &s.outbox
	o.marking.Lock()
	defer o.marking.Unlock()
	if !s.subscribed(sink) {
		return nil
	}
	others := maps.Clone(o.sinks) // neither changes while gate and marking are held
	delete(others, sink)
	b := s.db.NewBatch()
	err := b.DeleteRange(sinkKey(sink), nextKey(sinkKey(sink)), nil)
	left := make(map[outboxAt][]waitingSeal)
	for at, waiting := range o.waiting {
		drop := hadByAll(waiting, others, at)
		left[at] = waiting[len(drop):]
		err = errors.Join(err, deleteWaiting(b, at, drop))
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := s.commit(b, true); err != nil {
		return fmt.Errorf("unsubscribe %s: %w", sink, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sinks, o.waiting = others, left
	return nil
}

// Sinks returns the sinks that seals wait for, by name.
func (s *Store) Sinks() []string {
	s.outbox.mu.Lock()
	defer s.outbox.mu.Unlock()
	return slices.Sorted(maps.Keys(s.outbox.sinks))
}

func (s *Store) subscribed(sink string) bool { return slices.Contains(s.Sinks(), sink) }

// nextKey is the first key behind all that begin with this one, whose last byte is
// not 0xff: names of sinks are text.
func nextKey(key []byte) []byte {
	next := bytes.Clone(key)
	next[len(next)-1]++
	return next
}

// hadByAll returns the first seals, those that every sink has.
func hadByAll(waiting []waitingSeal, sinks map[string]map[outboxAt]delivered, at outboxAt) []waitingSeal {
	n := len(waiting)
	for _, marks := range sinks {
		n = min(n, len(waiting)-len(behind(waiting, marks[at].seq)))
	}
	return waiting[:n]
}

// behind returns the seals behind a mark.
func behind(waiting []waitingSeal, seq uint64) []waitingSeal {
	i, _ := slices.BinarySearchFunc(waiting, seq+1, func(w waitingSeal, seq uint64) int { return cmp.Compare(w.seq, seq) })
	return waiting[i:]
}

func deleteWaiting(b *pebble.Batch, at outboxAt, seals []waitingSeal) error {
	if len(seals) == 0 {
		return nil
	}
	return b.DeleteRange(outboxKey(at, seals[0].seq, 0), outboxKey(at, seals[len(seals)-1].seq+1, 0), nil)
}
