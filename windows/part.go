package windows

import "time"

// Level is a size of time that the store keeps summaries of: an index into its
// policy table. LevelMinute is what seals write; the others are made by roll-ups.
type Level uint8

// LevelMinute is the level of single minutes.
const LevelMinute Level = 0

// Part names what one seal, or one roll-up, holds of one start at one level.
type Part struct {
	Level Level
	Start Minute
	ID    uint32 // tells the parts of a start apart
}

// Stretch is all parts of a level whose start lies in a range.
type Stretch struct {
	Level Level
	Range
}

// Kept is what is kept of a level.
type Kept struct {
	Level Level
	Size  Minute        // of its periods; 0: one without end
	From  Minute        // nothing before it is kept; 0: nothing was ever removed
	For   time.Duration // it is removed when it is older; 0: never
}

// TopList is the items with the highest counts of one series in one part. Its
// slices are borrowed, like those of a Row.
type TopList struct {
	Items   []uint32 // identifiers of the store's dictionary
	Events  []uint64 // of each, exactly
	Reached []uint64 // of each
	// An item of the series that has a row in the part, and is not listed, has at
	// most so many events, and so many that reached its viewers sketch. Both are 0
	// where the list is complete.
	MaxEvents, MaxReached uint64
}
