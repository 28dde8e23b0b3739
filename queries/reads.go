package queries

import (
	"tidemark/sketches"
	"tidemark/windows"
)

// Snapshot is the store as it was at one instant; cmd passes the one on disk. It
// is used by one goroutine at a time and closed by who asked for it. A yield
// that returns an error ends its call, which returns that error. What a yield is
// handed is borrowed until it returns.
//
// Questions make many short calls, so an implementation keeps its iterator open
// between them.
type Snapshot interface {
	Close() error

	// Span returns the minutes from the first to the last that events are counted
	// in; ok is false if there are none.
	Span() (r windows.Range, ok bool)
	// Logs returns the logs that the store has taken from, oldest first.
	Logs() []Log
	// Position returns the newest pair of a partition of a log that the snapshot
	// holds: the zero Pair if none.
	Position(log windows.LogID, partition int) windows.Pair
	// Series returns all series that the store has ever seen, in a fixed order.
	Series() []windows.Series

	// ID returns the dictionary's identifier of an item; ok is false for one that
	// was never stored.
	ID(item string) (id uint32, ok bool, err error)
	// Name is the inverse of ID.
	Name(id uint32) (string, error)
	// Items yields the items that begin with a prefix, in byte order, until yield
	// returns false.
	Items(prefix string, yield func(id uint32, name string) bool) error
	// Texts returns the title, url and image of an item, empty where nothing was said.
	Texts(id uint32) (windows.ItemInfo, error)

	// Plan covers the range between each two edges, which ascend, by the largest
	// periods that lie in it. The steps are disjoint, and a part of theirs lies
	// between the same two edges as its Start. gone is what of the range can't be
	// told any more: retention has taken it, or left it in larger periods only.
	Plan(edges []windows.Minute) (steps []windows.Stretch, gone []windows.Range)
	// EachPart yields the parts of a stretch, in a fixed order. What a part holds never
	// changes, and no other part ever has its identifier.
	EachPart(at windows.Stretch, yield func(windows.Part))
	// Kept returns what is kept of each level, from the smallest.
	Kept() []windows.Kept
	// Rows yields the rows of one key, one for each part of the stretch that has
	// it. item is the identifier for kind Item, else 0.
	Rows(at windows.Stretch, s windows.Series, kind windows.Kind, item uint32, yield func(windows.Part, windows.Row) error) error
	// RowsOf is Rows of many items in one pass: their identifiers ascend, each once,
	// and yield is told which of them the row is of.
	RowsOf(at windows.Stretch, s windows.Series, items []uint32, yield func(i int, p windows.Part, row windows.Row) error) error
	// Scan yields all rows of a series, part by part; item is 0 unless the row is
	// of kind Item. Its yield must not ask the snapshot for anything but ID and Name.
	Scan(at windows.Stretch, s windows.Series, yield func(p windows.Part, item uint32, row windows.Row) error) error
	// Lists yields one list for each part of the stretch that has items of the
	// series: where the part keeps no list, because they are few, of all of them.
	Lists(at windows.Stretch, s windows.Series, yield func(windows.Part, windows.TopList) error) error
	// Sketches yields, for each part in which items of a type found no slot, the
	// Count-Min table of all its keys (nil if it was found damaged) and the
	// highest of the items without a slot. typ has no dimension. It costs nothing
	// where no part of the stretch overflowed.
	Sketches(at windows.Stretch, typ windows.Series, yield func(windows.Part, *sketches.CountMin, *sketches.TopK) error) error
	// Outcomes yields what became of the records of each part.
	Outcomes(at windows.Stretch, yield func(windows.Part, windows.OutcomeCount) error) error
}

// Log is one log that the store has taken from.
type Log struct {
	ID       windows.LogID
	Names    []string // for people: of an import, its files
	Done     bool     // read to its end: nothing of it is to come
	Files    bool     // an import: the same call goes on with it
	Started  int64    // when it was begun, Unix ms
	Settings string   // that decide what becomes of its records, as text
}

// Windows is what is not stored yet of a log that is being read: an engine.
type Windows interface {
	Log() windows.LogID
	Partitions() int
	// Read yields every summary of a partition that a store at the pair stored
	// does not hold, at one instant; they are valid until Read returns. It returns
	// false, having yielded nothing, where the store has taken more since: then a
	// newer snapshot is needed.
	Read(partition int, stored windows.Pair, yield func(*windows.Content)) bool
	// State returns where a partition stands.
	State(partition int) windows.State
}

// Live is a log that is being read.
type Live struct {
	Windows Windows
	// Watermark returns the least watermark of the partitions in Unix ms. It is nil
	// for an import of history: then nothing is complete before its end. MaxInt64 says
	// that the log has never had a record: nothing waits for it.
	Watermark func() int64
	// Ends returns of each partition the offset that comes next in the log. It is nil
	// where nothing is read.
	Ends func() []int64
}
