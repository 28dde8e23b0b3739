package windows

import "tidemark/sketches"

// Series is what the summaries of many items have in common: the event type, and
// where they are a breakdown, the dimension and its value. Dimension "" is the
// item as such.
//
// What overflows a limit goes under a value that is no name: a kind of its own,
// which no event can forge.
type Series struct {
	Type, Dimension, Value string
	Other                  Other
}

// Other says which parts of a Series are "the rest" instead of a name.
type Other uint8

// The parts of a series that can stand for the rest.
const (
	OtherType  Other = 1 << iota // the types beyond MaxTypes in a window
	OtherValue                   // the values of a dimension beyond its limit
)

// OtherName is how "the rest" is shown. As a name it is an ordinary one.
const OtherName = "(other)"

// OutcomeDimension is the dimension of the summaries that say, by item, what became
// of the events that do not count: the value is the Outcome's name. They have
// counts and no viewers. No dimension of this name can be declared.
const OutcomeDimension = "(outcome)"

// Kind says what a Row is about.
type Kind uint8

// The kinds of a row. Their numbers are part of the store's format.
const (
	Item     Kind = iota // one item
	Site                 // all items of the series together
	Overflow             // the items of the series that found no slot, together: an exact count, no viewers
)

// Row is the summary of one key (series, item) in one minute of one seal, or in
// an open window. Its slices are borrowed: they are valid until the call that
// handed them out returns, and must not be changed.
type Row struct {
	Kind    Kind
	Item    []byte // of kind Item; nil where the reader knows it by its id
	Events  uint64 // that count, exactly; of a Short row, at least
	Reached uint64 // that reached the viewers sketch; at least the distinct users among them

	// Short says that the item had no slot in some window of the period, so that
	// events of it may be missing: they are in the Count-Min table alone. Never so in
	// a window, or a part of a seal.
	Short bool

	// Viewers, in one of two forms: at most sketches.MaxTokens different tokens
	// in no order, or registers (then Tokens is nil).
	Tokens    []uint32
	Registers sketches.Registers
}
