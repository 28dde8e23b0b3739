// Package sinkstest has an outbox in memory, for tests of sinks and of deliverers.
package sinkstest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"tidemark/sinks"
	"tidemark/windows"
)

// Outbox is a sinks.Outbox in memory. It keeps every seal, so that tests can look
// at them and have them delivered again.
type Outbox struct {
	mu      sync.Mutex
	seals   []*sinks.Seal
	done    map[string]map[windows.Identity]bool
	changed chan struct{} // closed at the next Add
}

// NewOutbox returns an empty outbox.
func NewOutbox() *Outbox {
	return &Outbox{done: make(map[string]map[windows.Identity]bool), changed: make(chan struct{})}
}

// Add appends seals, those of a partition in their order.
func (o *Outbox) Add(seals ...*sinks.Seal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seals = append(o.seals, seals...)
	close(o.changed)
	o.changed = make(chan struct{})
}

// Forget takes back all marks of a sink, as a crash before they were synced would.
func (o *Outbox) Forget(sink string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.done, sink)
	close(o.changed)
	o.changed = make(chan struct{})
}

// Waiting returns how many seals the sink does not have.
func (o *Outbox) Waiting(sink string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting(sink))
}

func (o *Outbox) waiting(sink string) []*sinks.Seal {
	return slices.DeleteFunc(slices.Clone(o.seals), func(s *sinks.Seal) bool { return o.done[sink][s.Identity] })
}

// Wait is that of sinks.Outbox.
func (o *Outbox) Wait(ctx context.Context, sink string) error {
	for {
		o.mu.Lock()
		n, changed := len(o.waiting(sink)), o.changed
		o.mu.Unlock()
		if n > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Oldest is that of sinks.Outbox.
func (o *Outbox) Oldest(_ context.Context, sink string, bytes int) ([]*sinks.Seal, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting := o.waiting(sink)
	for i, s := range waiting {
		if bytes -= s.Bytes; bytes < 0 && i > 0 {
			return waiting[:i], nil
		}
	}
	return waiting, nil
}

// Done is that of sinks.Outbox.
func (o *Outbox) Done(_ context.Context, sink string, seals []*sinks.Seal) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done[sink] == nil {
		o.done[sink] = make(map[windows.Identity]bool)
	}
	for _, s := range seals {
		o.done[sink][s.Identity] = true
	}
	return nil
}

// Progress is that of sinks.Outbox.
func (o *Outbox) Progress(_ context.Context, sink string) (sinks.Progress, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := slices.DeleteFunc(slices.Clone(o.seals), func(s *sinks.Seal) bool { return !o.done[sink][s.Identity] })
	return sinks.Progress{Delivered: newest(done), Sealed: newest(o.seals)}, nil
}

// newest returns the last seal of each partition of each log.
func newest(seals []*sinks.Seal) []windows.Identity {
	type partition struct {
		log    windows.LogID
		number int
	}
	last := make(map[partition]windows.Identity)
	for _, s := range seals {
		last[partition{s.Log, s.Partition}] = s.Identity
	}
	return slices.Collect(maps.Values(last))
}
