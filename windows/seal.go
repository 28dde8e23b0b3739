package windows

// LogID names a log: the journal, a Kafka topic, or one import of files.
type LogID [16]byte

// Pair is where a partition's seals have got to: (F, S) of docs/exactly-once.md. The
// pair holds each record at an offset < S whose minute is < F, or that has no
// usable minute, and that no earlier pair holds.
type Pair struct {
	F Minute
	S int64
}

// Mark is a record of a log by which the log is known again: another one that was
// put in its place has another record there.
type Mark struct {
	Offset int64
	Hash   uint64 // of the record; 0: there is none to know the log by
}

// Position is what a partition goes on from.
type Position struct {
	E  uint64 // random, made by the partition's first commit
	To Pair   // the newest pair in the store
	R  int64  // where to replay from
	H  Mark   // the last record before To.S
}

// Identity names a seal, everywhere and for ever.
type Identity struct {
	Log       LogID
	Partition int
	E         uint64
	To        Pair
}

// Seal is the closing of all windows of a partition behind F at one log offset S.
type Seal struct {
	Identity
	From     Pair       // its predecessor
	R        int64      // where to replay from once this seal is stored
	H        Mark       // the last record before To.S
	Partials []*Partial // ascending by minute, one each
	Items    []ItemInfo // what was said of items since, by item
}
