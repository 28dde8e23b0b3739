package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Time limits of a connection. A request is only a header; what is slow to send
// one, or to take its answer, may not hold a connection for ever.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = questionTimeout + 30*time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 8 * time.Second
	// maxHeader holds the longest question: 100 items of 1,024 bytes, escaped.
	maxHeader = 512 << 10
)

// Serve serves a handler until ctx ends; then it takes no more requests, lets
// those under way end, for drainTimeout, asks those who watch to come back, and
// returns. It closes the listener.
func Serve(ctx context.Context, l net.Listener, h *Handler, logger *slog.Logger) error {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         h.connections.changed,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		h.live.drain()
	}()
	err := s.Shutdown(drain)
	<-drained
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close() // whoever has waited so long asks again
	}
	if serr := <-failed; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}
