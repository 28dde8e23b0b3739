package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// outbox is the seals that some sink does not have yet. They are on the disk; in
// memory lies which there are.
//
// A sink is subscribed, by its name, and from then on every seal waits for it, until
// it is marked as delivered or the sink is unsubscribed: also while nothing delivers.
type outbox struct {
	mu      sync.Mutex
	sinks   map[string]map[outboxAt]delivered
	waiting map[outboxAt][]waitingSeal // ascending, without a gap
	changed chan struct{}              // closed when one more waits, or more than before
}

// outboxAt is a partition of a log, whose seals are delivered in their order.
type outboxAt struct {
	log       windows.LogID
	partition int
}

// delivered is the mark of the newest seal of a partition that a sink has.
type delivered struct {
	seq uint64
	e   uint64
	to  windows.Pair
}

type waitingSeal struct {
	seq   uint64
	to    windows.Pair
	bytes int
}

func newOutbox() outbox {
	return outbox{
		sinks:   make(map[string]map[outboxAt]delivered),
		waiting: make(map[outboxAt][]waitingSeal), changed: make(chan struct{}),
	}
}

// Keys of the outbox. Part of the format:
//
//	o log(16) partition(2) seq(8) piece(4)   head (piece 0), or a piece
//	d len(1) sink                            - ; the sink is subscribed
//	d len(1) sink log(16) partition(2)       mark
func outboxKey(at outboxAt, seq uint64, piece int) []byte {
	key := append([]byte{prefixOutbox}, at.log[:]...)
	key = binary.BigEndian.AppendUint16(key, uint16(at.partition))
	key = binary.BigEndian.AppendUint64(key, seq)
	return binary.BigEndian.AppendUint32(key, uint32(piece))
}

const outboxKeySize = 1 + 16 + 2 + 8 + 4

func parseOutboxKey(key []byte) (at outboxAt, seq uint64, piece int, err error) {
	if len(key) != outboxKeySize {
		return at, 0, 0, damaged(key, "not the key of a waiting seal")
	}
	copy(at.log[:], key[1:])
	at.partition = int(binary.BigEndian.Uint16(key[17:]))
	return at, binary.BigEndian.Uint64(key[19:]), int(binary.BigEndian.Uint32(key[27:])), nil
}

func sinkKey(sink string) []byte { return append([]byte{prefixSink, byte(len(sink))}, sink...) }

func deliveredKey(sink string, at outboxAt) []byte {
	return binary.BigEndian.AppendUint16(append(sinkKey(sink), at.log[:]...), uint16(at.partition))
}

// A mark's row. Part of the format:
//
//	uvarint(version) uvarint(seq) E(8, little-endian) uvarint(F) uvarint(S)
const deliveredVersion = 1

func (m delivered) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, deliveredVersion)
	dst = binary.AppendUvarint(dst, m.seq)
	dst = binary.LittleEndian.AppendUint64(dst, m.e)
	return appendPair(dst, m.to)
}

func parseDelivered(key, value []byte) (delivered, error) {
	d := decoder{b: value}
	if v := d.uint(math.MaxInt); v != deliveredVersion && !d.bad {
		return delivered{}, damaged(key, "version %d of a mark; this build knows %d", v, deliveredVersion)
	}
	m := delivered{seq: d.uint(math.MaxUint64), e: d.uint64(), to: d.pair()}
	if d.bad || len(d.b) > 0 {
		return delivered{}, damaged(key, "not a mark")
	}
	return m, nil
}

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
	if !s.subscribed(sink) {
		return nil
	}
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	others := maps.Clone(o.sinks)
	delete(others, sink)
	b := s.db.NewBatch()
	err := b.DeleteRange(sinkKey(sink), nextKey(sinkKey(sink)), nil)
	left := make(map[outboxAt][]waitingSeal)
	for at, waiting := range o.waiting {
		left[at] = waiting[dropped(waiting, others, at):]
		err = errors.Join(err, deleteWaiting(b, at, waiting, len(waiting)-len(left[at])))
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := s.commit(b, true); err != nil {
		return fmt.Errorf("unsubscribe %s: %w", sink, err)
	}
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

// dropped returns how many of the first seals every sink has.
func dropped(waiting []waitingSeal, sinks map[string]map[outboxAt]delivered, at outboxAt) int {
	n := len(waiting)
	for _, marks := range sinks {
		n = min(n, len(waiting)-len(behind(waiting, marks[at].seq)))
	}
	return n
}

// behind returns the seals behind a mark.
func behind(waiting []waitingSeal, seq uint64) []waitingSeal {
	i, _ := slices.BinarySearchFunc(waiting, seq+1, func(w waitingSeal, seq uint64) int { return cmp.Compare(w.seq, seq) })
	return waiting[i:]
}

func deleteWaiting(b *pebble.Batch, at outboxAt, waiting []waitingSeal, n int) error {
	if n == 0 {
		return nil
	}
	return b.DeleteRange(outboxKey(at, waiting[0].seq, 0), outboxKey(at, waiting[n-1].seq+1, 0), nil)
}

// add makes a stored seal one that waits.
func (o *outbox) add(seal *windows.Seal, seq uint64, h *waitingHead) {
	if h == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	at := outboxAt{seal.Log, seal.Partition}
	o.waiting[at] = append(o.waiting[at], waitingSeal{seq, h.to, h.bytes})
	close(o.changed)
	o.changed = make(chan struct{})
}

// any reports whether there is a sink that seals wait for.
func (o *outbox) any() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sinks) > 0
}

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

// Done marks seals as delivered to a sink, all or none of them, and drops what every
// sink has. Those of a partition come in their order. The marks are not synced: one that
// is lost in a crash brings its seal again.
func (s *Store) Done(sink string, seals []windows.Identity) error {
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sinks[sink] == nil {
		return fmt.Errorf("mark seals as delivered: sink %q is not subscribed", sink)
	}
	marks := make(map[outboxAt]delivered)
	for _, id := range seals {
		at := outboxAt{id.Log, id.Partition}
		i := slices.IndexFunc(o.waiting[at], func(w waitingSeal) bool { return w.to == id.To })
		if i < 0 {
			return fmt.Errorf("mark seals as delivered: none of partition %d to %v waits", id.Partition, id.To)
		}
		marks[at] = delivered{o.waiting[at][i].seq, id.E, id.To}
	}
	b := s.db.NewBatch()
	var err error
	drop := make(map[outboxAt]int)
	for at, m := range marks {
		err = errors.Join(err, b.Set(deliveredKey(sink, at), m.append(nil), nil))
		drop[at] = len(o.waiting[at]) - len(behind(o.waiting[at], m.seq))
		for other, have := range o.sinks {
			if other != sink {
				drop[at] = min(drop[at], len(o.waiting[at])-len(behind(o.waiting[at], have[at].seq)))
			}
		}
		err = errors.Join(err, deleteWaiting(b, at, o.waiting[at], drop[at]))
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	s.step("done.begin")
	if err := s.commit(b, false); err != nil {
		return fmt.Errorf("mark seals as delivered: %w", err)
	}
	s.step("done.committed")
	maps.Copy(o.sinks[sink], marks)
	for at, n := range drop {
		o.waiting[at] = o.waiting[at][n:]
	}
	return nil
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
