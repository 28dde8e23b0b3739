package journal

import "github.com/zeebo/xxh3"

// Record is one entry of the log.
type Record struct {
	Partition int    // in [0, partitions)
	Offset    int64  // in its partition, from 0; given by the journal
	Stamp     int64  // when it arrived, Unix ms; given by the journal
	Payload   []byte // opaque
}

// Hash tells a record from another one that may stand at its place in another log:
// it is over stamp and payload. It is kept in commits, so it never changes.
func (r Record) Hash() uint64 { return xxh3.HashSeed(r.Payload, uint64(r.Stamp)) }
