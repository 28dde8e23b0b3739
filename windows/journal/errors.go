package journal

import "errors"

// What callers decide by. The errors that wrap them say more.
var (
	// ErrFull: more waits to be written than the queue takes. Nothing of the group
	// was taken; try again later.
	ErrFull = errors.New("the journal's queue is full")
	// ErrTooLarge: a group that no journal takes, however often it is tried.
	ErrTooLarge = errors.New("the group is too large for the journal")
	// ErrUnavailable: the disk does not take what is written. The journal tries by
	// itself until it does. A group that fails with it is not acknowledged; after a
	// crash it may be found to have been taken, whole.
	ErrUnavailable = errors.New("the journal can't be written at present")
	// ErrDamaged: what was read from the disk is not what was written.
	ErrDamaged = errors.New("the journal is damaged")
	// ErrTrimmed: what was asked for has been removed by Trim.
	ErrTrimmed = errors.New("no longer in the journal")
	// ErrPartitions: the journal was made with another number of partitions.
	ErrPartitions = errors.New("the journal was made with another number of partitions")
	// ErrNoJournal: there is no journal in the folder.
	ErrNoJournal = errors.New("no journal")
	// ErrHeld: another process has the journal open.
	ErrHeld = errors.New("the journal is in use")
	// ErrReadOnly: the journal was opened to be read only.
	ErrReadOnly = errors.New("the journal was opened to be read only")
	// ErrClosed: the journal has been closed.
	ErrClosed = errors.New("the journal is closed")
)
