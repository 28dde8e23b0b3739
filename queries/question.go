package queries

import (
	"time"
)

// When is the range of time that a question asks for.
type When struct {
	// Now is the instant that Last counts back from.
	Now time.Time
	// From and To are half-open; a zero one is open: as far as anything is kept.
	From, To time.Time
	// Last is the whole minutes before the current one, and the current one up to
	// Now. It is used where it is not 0; From and To are zero then.
	Last time.Duration
	// At says that Now was asked for, and is not the present: the current minute
	// is then taken whole.
	At bool
}

// Question is what Viewers and Counts are asked.
type Question struct {
	Items     []string // none: the whole site
	Together  bool     // the items as if they were one
	Types     []string // none: the view types; AllTypes: all there are
	Dimension string   // declared; none: ""
	Value     string   // of the dimension, where HasValue; else broken down by value
	HasValue  bool
	When      When
	Step      Step // of the series; "": no series
	Zone      *time.Location
}

// TopQuestion is what Top is asked.
type TopQuestion struct {
	By        By
	Limit     int  // 1 to MaxRanks
	NoViewers bool // of a ranking by views: not beside them, which takes most of the time
	Types     []string
	Dimension string // with HasValue: items within the value; without: the values themselves
	Value     string
	HasValue  bool
	When      When
	Zone      *time.Location
}

// OutcomesQuestion is what Outcomes is asked.
type OutcomesQuestion struct {
	Items []string // none: all records
	When  When
	Zone  *time.Location
}

// ItemsQuestion is what Items is asked.
type ItemsQuestion struct {
	Prefix string // "" is that of every item
	Limit  int    // 1 to MaxListed
}

// By is what a ranking goes by.
type By string

// What a ranking can go by.
const (
	ByViews   By = "views"   // events that count
	ByViewers By = "viewers" // different users
	ByRising  By = "rising"  // how much more than was to be expected
)

// Limits of a question.
const (
	MaxItems   = 100     // items asked for at once
	MaxTypes   = 64      // types asked for at once
	MaxBuckets = 10_000  // steps of one series
	MaxCells   = 100_000 // steps of all series of an answer
	MaxRanks   = 1_000   // places of a ranking
	MaxListed  = 1_000   // known items listed at once
	MaxValues  = 1_000   // values of a breakdown
)

// What names may be; the same as in events.
const (
	maxItemBytes = 1024
	maxTypeBytes = 64
)
