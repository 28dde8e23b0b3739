package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// Await returns nil when a seal waits for the sink.
func (s *Store) Await(ctx context.Context, sink string) error {
	o := &s.outbox
	for {
		o.mu.Lock()
		changed, any := o.changed, false
		for at, waiting := range o.waiting {
			any = any || len(behind(waiting, o.sinks[sink][at].seq)) > 0
		}
		o.mu.Unlock()
		if any {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Backlog is what waits for a sink.
type Backlog struct {
	Seals  int
	Bytes  int64          // on the disk
	Oldest windows.Minute // F of the oldest seal: what it closed lies before; 0: there is none
}

// Backlog returns what waits for a sink.
func (s *Store) Backlog(sink string) (b Backlog) {
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, waiting := range o.waiting {
		for i, w := range behind(waiting, o.sinks[sink][at].seq) {
			if i == 0 && (b.Seals == 0 || w.to.F < b.Oldest) {
				b.Oldest = w.to.F
			}
			b.Seals++
			b.Bytes += int64(w.bytes)
		}
	}
	return b
}

// Delivered returns the newest seal of each partition of each log that is marked as
// delivered to the sink.
func (s *Store) Delivered(sink string) []windows.Identity {
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []windows.Identity
	for at, m := range o.sinks[sink] {
		out = append(out, windows.Identity{Log: at.log, Partition: at.partition, E: m.e, To: m.to})
	}
	return out
}

// Oldest returns seals that wait for a sink, those of a partition in their order
// without a gap. Of the partitions' next ones that of the lowest F comes first. It takes
// as many as fit into so many bytes, but at least one if there is any.
func (s *Store) Oldest(sink string, limit int) ([]*Waiting, error) {
	o := &s.outbox
	next := make(map[outboxAt][]waitingSeal)
	o.mu.Lock()
	for at, waiting := range o.waiting {
		if w := behind(waiting, o.sinks[sink][at].seq); len(w) > 0 {
			next[at] = w
		}
	}
	o.mu.Unlock()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixOutbox}, UpperBound: prefixEnd(prefixOutbox)})
	if err != nil {
		return nil, readError(err)
	}
	defer it.Close()
	var out []*Waiting
	for len(next) > 0 {
		at := oldest(next)
		w := next[at][0]
		if limit -= w.bytes; limit < 0 && len(out) > 0 {
			break
		}
		seal, err := readWaiting(it, at, w.seq)
		if err != nil {
			return nil, err
		}
		out = append(out, seal)
		if next[at] = next[at][1:]; len(next[at]) == 0 {
			delete(next, at)
		}
	}
	return out, nil
}

// oldest returns the partition whose first seal has the lowest F.
func oldest(next map[outboxAt][]waitingSeal) (first outboxAt) {
	began := false
	for at, waiting := range next {
		order := cmp.Or(
			cmp.Compare(waiting[0].to.F, firstF(next[first])),
			slices.Compare(at.log[:], first.log[:]), cmp.Compare(at.partition, first.partition))
		if !began || order < 0 {
			first, began = at, true
		}
	}
	return first
}

func firstF(waiting []waitingSeal) windows.Minute {
	if len(waiting) == 0 {
		return 0
	}
	return waiting[0].to.F
}

// readWaiting reads a seal that waits.
func readWaiting(it *pebble.Iterator, at outboxAt, seq uint64) (*Waiting, error) {
	key := outboxKey(at, seq, 0)
	if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
		return nil, errors.Join(readError(it.Error()), damaged(key, "a waiting seal is missing"))
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, readError(err)
	}
	h, err := parseWaitingHead(key, value)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, min(h.bytes, math.MaxInt32))
	for piece := 1; piece <= h.pieces; piece++ {
		key := outboxKey(at, seq, piece)
		if !it.Next() || !bytes.Equal(it.Key(), key) {
			return nil, errors.Join(readError(it.Error()), damaged(key, "a piece of a waiting seal is missing"))
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, readError(err)
		}
		text = append(text, value...)
	}
	w := &Waiting{
		Identity: windows.Identity{Log: at.log, Partition: at.partition, E: h.e, To: h.to},
		From:     h.from, R: h.r, H: h.h, Settings: h.settings, Bytes: len(text),
	}
	if len(text) != h.bytes || !parseWaiting(text, w) {
		return nil, damaged(key, "the pieces are not those of a waiting seal")
	}
	return w, nil
}
