package windows

// Limits bound the memory of one window. They are counted in the order of the
// log, so a replay decides alike.
type Limits struct {
	// Items is how many keys (series, item) get a slot of their own: an exact
	// count and viewers. At least 1; breakdowns may use at most half.
	Items int
	// Values is how many values of one dimension a type has of its own; the rest
	// goes under OtherValue. At least 1.
	Values int
}

const (
	// MaxTypes is how many event types a window has of their own; the rest goes
	// under OtherType.
	MaxTypes = 64

	// nameBytesPerItem bounds the names of a window: together they may take this
	// much for each slot of the limit. Longer names on average than this, and the
	// budget of slots is spent earlier.
	nameBytesPerItem = 128

	// countMinFrom is how many items a type has in a window before a Count-Min table
	// (1 MiB) is made of them when it is sealed, though all have a slot: it is
	// compared with their exact counts.
	countMinFrom = 1024

	// topK is how many items the heap and the live ranking of a window keep.
	topK = 1000
)
