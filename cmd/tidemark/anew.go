package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"tidemark/windows/store"
)

// How long after the store could not be written it is opened anew: at first, and at most.
const (
	anewFirst = time.Second
	anewMost  = 10 * time.Second
)

// serve takes events into the data folder, and answers from it, until ctx ends. It
// closes the listener. Where the store has failed in a way that it can't go on after, as
// after a failed sync, all is begun anew, as after a crash, until that works.
func serve(ctx context.Context, c *Config, listener net.Listener, logger *slog.Logger) error {
	address := listener.Addr().String()
	err := serveOnce(ctx, c, listener, logger)
	for wait := anewFirst; ctx.Err() == nil && errors.Is(err, errAnew); wait = min(2*wait, anewMost) {
		logger.ErrorContext(ctx, "the store could not be written, and is opened anew: see to the disk", "in", wait, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		again := *c
		again.Listen = address
		listener, listenErr := listen(ctx, &again)
		if listenErr != nil {
			err = fmt.Errorf("%w: %w", errAnew, listenErr)
			continue
		}
		begun := time.Now()
		if err = serveOnce(ctx, c, listener, logger); err == nil || errors.Is(err, errAnew) {
			if time.Since(begun) > anewMost {
				wait = anewFirst
			}
			continue
		}
		for _, other := range []error{store.ErrDamaged, store.ErrHeld, store.ErrKey, store.ErrSettings} {
			if errors.Is(err, other) {
				return err
			}
		}
		err = fmt.Errorf("%w: %w", errAnew, err)
	}
	return err
}

// errAnew says that the data folder has to be opened anew.
var errAnew = errors.New("the data folder has to be opened anew")
