package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"tidemark/windows"
)

// Done marks seals as delivered to a sink, all or none of them, and drops what every
// sink has. Those of a partition come in their order. The marks are not synced: one that
// is lost in a crash brings its seal again.
func (s *Store) Done(sink string, seals []windows.Identity) error {
	o := &s.outbox
	o.marking.Lock()
	defer o.marking.Unlock()
	d, err := o.done(sink, seals)
	if err != nil {
		return fmt.Errorf("mark seals as delivered: %w", err)
	}
	b := s.db.NewBatch()
	for at, m := range d.marks {
		err = errors.Join(err, b.Set(deliveredKey(sink, at), m.append(nil), nil), deleteWaiting(b, at, d.dropped[at]))
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	s.step("done.begin")
	if err := s.commit(b, false); err != nil {
		return fmt.Errorf("mark seals as delivered: %w", err)
	}
	s.step("done.committed")
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.sinks[sink], d.marks)
	for at, seals := range d.dropped {
		o.waiting[at] = o.waiting[at][len(seals):]
	}
	return nil
}

// delivery is what changes when seals were delivered.
type delivery struct {
	marks   map[outboxAt]delivered
	dropped map[outboxAt][]waitingSeal // that every sink has then
}

// done works out what changes when a sink has seals. marking must be held.
func (o *outbox) done(sink string, seals []windows.Identity) (d delivery, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sinks[sink] == nil {
		return d, fmt.Errorf("sink %q is not subscribed", sink)
	}
	d = delivery{make(map[outboxAt]delivered), make(map[outboxAt][]waitingSeal)}
	for _, id := range seals {
		at := outboxAt{id.Log, id.Partition}
		i := slices.IndexFunc(o.waiting[at], func(w waitingSeal) bool { return w.to == id.To })
		if i < 0 {
			return d, fmt.Errorf("none of partition %d to %v waits", id.Partition, id.To)
		}
		d.marks[at] = delivered{o.waiting[at][i].seq, id.E, id.To}
	}
	after := maps.Clone(o.sinks)
	after[sink] = maps.Clone(after[sink])
	maps.Copy(after[sink], d.marks)
	for at := range d.marks {
		d.dropped[at] = hadByAll(o.waiting[at], after, at)
	}
	return d, nil
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
