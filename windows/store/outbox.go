package store

import (
	"encoding/binary"
	"sync"

	"tidemark/windows"
)

// outbox is the seals that some sink does not have yet. They are on the disk; in
// memory lies which there are.
//
// A sink is subscribed, by its name, and from then on every seal waits for it, until
// it is marked as delivered or the sink is unsubscribed: also while nothing delivers.
type outbox struct {
	mu      sync.Mutex // guards what follows, up to changed
	sinks   map[string]map[outboxAt]delivered
	waiting map[outboxAt][]waitingSeal // ascending, without a gap
	changed chan struct{}              // closed when one more waits, or more than before

	// marking is held while marks are written, which a disk may take its time for;
	// it is taken before mu.
	marking sync.Mutex
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
