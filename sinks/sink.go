package sinks

import (
	"context"
	"errors"

	"tidemark/windows"
)

// ErrStopped is wrapped by errors that time alone does not mend: somebody must do
// what the message says. It is tried again all the same, but seldom.
var ErrStopped = errors.New("stopped")

// Sink takes seals to where others read them.
//
// Its guarantee: delivering is idempotent. A seal is delivered again after a
// failure, whatever the sink had taken of it, after a crash, and in other company;
// made again from the log it is the same seal under the same Identity. However often,
// the effect is that of once.
//
// A sink is called by one goroutine at a time.
type Sink interface {
	// Name names the sink in the outbox, in metrics and in messages: for ever.
	Name() string

	// Resume is called before the first Deliver, and before the first one after an
	// error. It makes sure that the place is fit to take seals, and that it still has
	// those it was given, and no others of the same logs. If it has lost any, or has
	// some that nobody here knows, its error wraps ErrStopped.
	Resume(ctx context.Context, have Progress) error

	// Deliver takes whole seals, those of a partition in their order. When it returns
	// nil they are all there for good: they outlast a crash of whatever took them.
	// After an error any part of them may be there.
	Deliver(ctx context.Context, seals []*Seal) error
}

// Outbox keeps seals until every sink has them. It is safe for concurrent use.
type Outbox interface {
	// Wait returns nil when there is a seal that the sink does not have.
	Wait(ctx context.Context, sink string) error

	// Oldest returns seals that the sink does not have, those of a partition in their
	// order without a gap, the oldest of each first. It takes about as many as fit
	// into so many bytes of memory, but at least one if there is any.
	Oldest(ctx context.Context, sink string, bytes int) ([]*Seal, error)

	// Done marks the seals as delivered to the sink, all or none of them. A mark
	// that is lost in a crash only means that they are delivered again.
	Done(ctx context.Context, sink string, seals []*Seal) error

	// Progress says how far the sink is.
	Progress(ctx context.Context, sink string) (Progress, error)
}

// Progress is how far a sink is, by the outbox.
type Progress struct {
	// Delivered is the newest seal of each partition of each log that is marked as
	// delivered to the sink.
	Delivered []windows.Identity
	// Sealed is the newest seal that there is of each partition of each log, with a
	// pair of zeros where there is none. What a sink has beyond it was made by a later
	// state of what is here: this is an older copy, and would make other seals of the
	// same records.
	Sealed []windows.Identity
}
