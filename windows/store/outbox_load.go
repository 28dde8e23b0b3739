package store

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// loadOutbox reads which seals wait, and for whom.
func (s *Store) loadOutbox() error {
	s.outbox = newOutbox()
	if err := s.eachRow(prefixSink, s.loadSink); err != nil {
		return err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixOutbox}, UpperBound: prefixEnd(prefixOutbox)})
	if err != nil {
		return readError(err)
	}
	defer it.Close()
	for ok := it.First(); ok; {
		at, seq, piece, err := parseOutboxKey(it.Key())
		if err != nil {
			return err
		}
		if piece != 0 {
			return damaged(it.Key(), "a piece of a waiting seal without its head")
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return readError(err)
		}
		h, err := parseWaitingHead(it.Key(), value)
		if err != nil {
			return err
		}
		waiting := s.outbox.waiting[at]
		if n := len(waiting); n > 0 && waiting[n-1].seq+1 != seq {
			return damaged(it.Key(), "seals are missing among those that wait")
		}
		s.outbox.waiting[at] = append(waiting, waitingSeal{seq, h.to, h.bytes})
		ok = it.SeekGE(outboxKey(at, seq, h.pieces+1))
	}
	if err := it.Error(); err != nil {
		return readError(err)
	}
	for at, waiting := range s.outbox.waiting {
		l := s.roster.find(at.log)
		if last := waiting[len(waiting)-1]; l == nil || at.partition >= len(l.positions) || l.positions[at.partition].seq != last.seq {
			return damaged(outboxKey(at, last.seq, 0), "the last seal that waits is not the newest one")
		}
	}
	return nil
}

func (s *Store) loadSink(key, value []byte) error {
	if len(key) < 2 || len(key) < 2+int(key[1]) {
		return damaged(key, "not the key of a sink")
	}
	sink, rest := string(key[2:2+int(key[1])]), key[2+int(key[1]):]
	if len(rest) == 0 {
		s.outbox.sinks[sink] = make(map[outboxAt]delivered)
		return nil
	}
	var at outboxAt
	if s.outbox.sinks[sink] == nil || len(rest) != len(at.log)+2 {
		return damaged(key, "not the key of a mark")
	}
	copy(at.log[:], rest)
	at.partition = int(binary.BigEndian.Uint16(rest[len(at.log):]))
	m, err := parseDelivered(key, value)
	if err != nil {
		return err
	}
	s.outbox.sinks[sink][at] = m
	return nil
}
