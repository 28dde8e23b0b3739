package windows

// Outcome is what became of a record. Every record has exactly one, and the
// outcomes of a log sum to its records.
type Outcome uint8

// The outcomes, in the order in which they are tried (docs/exactly-once.md): the first
// that fits is the record's.
const (
	Counted   Outcome = iota // in time, and counts
	Malformed                // not an event; its reason says why
	Future                   // more than max_skew after its record's own timestamp
	Duplicate                // its event ID stands earlier in the look-back
	Bot                      // a rule says so
	Repeat                   // the same view by the same person, again
	TooOld                   // more than max_lateness before its record's own timestamp
	Late                     // counts, but its minute had ended before
	outcomes                 // how many there are
)

var outcomeNames = [outcomes]string{"counted", "malformed", "future", "duplicate", "bot", "repeat", "too_old", "late"}

// String returns the outcome's name in the API: "counted", "late" and so on.
func (o Outcome) String() string { return outcomeNames[o] }

// OutcomeOf returns the outcome of that name.
func OutcomeOf(name string) (Outcome, bool) {
	for i, n := range outcomeNames {
		if n == name {
			return Outcome(i), true
		}
	}
	return 0, false
}

// Counts reports whether a record of this outcome is in the counts.
func (o Outcome) Counts() bool { return o == Counted || o == Late }

// Quarantined reports whether a record of this outcome has no usable minute, and
// is booked under the minute of its record's own timestamp.
func (o Outcome) Quarantined() bool { return o == Malformed || o == Future || o == TooOld }

// OutcomeCount is how many records of one minute had an outcome for a reason.
type OutcomeCount struct {
	Outcome Outcome
	Reason  string // of a malformed record, one of a fixed list; else ""
	Records uint64
}
