package sinks

import "tidemark/windows"

// Seal is a seal as it waits in the outbox. Sinks read it, and keep nothing of it
// once they have returned.
type Seal struct {
	windows.Identity
	From     windows.Pair // its predecessor
	R        int64        // where to replay from once every sink has it
	Settings string       // V of the commit that made it: the settings in force
	H        windows.Mark // the last record before To.S
	Partials []Partial    // ascending by minute, one each
	Items    []windows.ItemInfo
	Bytes    int // in memory, about
}

// Partial is what a seal holds of one minute. *windows.Partial is one.
type Partial interface {
	Minute() windows.Minute
	// Series returns what the rows' numbers stand for.
	Series() []windows.Series
	// Each calls yield for every row until it returns false, in the same order each
	// time. Rows are borrowed.
	Each(yield func(series int, r windows.Row) bool)
	// Outcomes returns what became of the records of the minute, by outcome and reason.
	Outcomes() []windows.OutcomeCount
}
