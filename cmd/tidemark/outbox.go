package main

import (
	"context"

	"tidemark/sinks"
	"tidemark/windows"
	"tidemark/windows/store"
)

// outbox is the store's, as sinks know it.
type outbox struct{ store *store.Store }

// Wait implements sinks.Outbox.
func (o outbox) Wait(ctx context.Context, sink string) error { return o.store.Await(ctx, sink) }

// Oldest implements sinks.Outbox.
func (o outbox) Oldest(_ context.Context, sink string, bytes int) ([]*sinks.Seal, error) {
	waiting, err := o.store.Oldest(sink, bytes)
	out := make([]*sinks.Seal, len(waiting))
	for i, w := range waiting {
		out[i] = &sinks.Seal{Identity: w.Identity, From: w.From, R: w.R, H: w.H, Settings: w.Settings, Items: w.Items, Bytes: w.Bytes}
		for _, p := range w.Partials {
			out[i].Partials = append(out[i].Partials, p)
		}
	}
	return out, err
}

// Done implements sinks.Outbox.
func (o outbox) Done(_ context.Context, sink string, seals []*sinks.Seal) error {
	ids := make([]windows.Identity, len(seals))
	for i, s := range seals {
		ids[i] = s.Identity
	}
	return o.store.Done(sink, ids)
}

// Progress implements sinks.Outbox.
func (o outbox) Progress(_ context.Context, sink string) (sinks.Progress, error) {
	have := sinks.Progress{Delivered: o.store.Delivered(sink)}
	for _, l := range o.store.Logs() {
		for p, at := range o.store.Positions(l.ID) {
			have.Sealed = append(have.Sealed, windows.Identity{Log: l.ID, Partition: p, E: at.E, To: at.To})
		}
	}
	return have, nil
}
