package windows

import "tidemark/sketches"

// Event is one record of a log, decoded. Its byte slices point into the buffer
// that it was decoded from and are valid until its batch has been handled:
// whoever keeps a name copies it.
type Event struct {
	Offset int64 // of its record in the log; grows, gaps are fine
	Stamp  int64 // its record's own timestamp, Unix ms
	Time   int64 // event time, Unix ms, in [0, MaxTime) unless Malformed

	Item []byte   // 1–1,024 bytes, compared byte by byte
	Type []byte   // 1–64 bytes
	Dims [][]byte // values of the declared dimensions, in their order; nil: the event has none
	Info *Info    // what it says of its item; nil: nothing

	ItemHash sketches.Hash128 // Hasher.Item of Item
	User     uint64           // Hasher.User, if HasUser
	ID       uint64           // Hasher.ID of the event ID, if HasID
	Hash     uint64           // of its record, as the log has it; 0 in history, whose files are known by their contents

	Reason  string // why it is Malformed
	Outcome Outcome
	HasUser bool // else it counts as a view by nobody
	HasID   bool // else nothing deduplicates it
	History bool // it may be of any age: never TooOld
}

// Minute returns the minute that the event is booked under: of its own time, or
// where that is not usable, of its record's timestamp.
func (e *Event) Minute() Minute {
	if e.Outcome.Quarantined() {
		return MinuteOf(e.Stamp)
	}
	return MinuteOf(e.Time)
}
