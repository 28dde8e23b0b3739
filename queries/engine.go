package queries

import (
	"slices"
	"strings"
	"time"

	"tidemark/sketches"
)

// Config is what an Engine answers from.
type Config struct {
	// Snapshot takes one of the store. It is called by many goroutines at once.
	Snapshot func() (Snapshot, error)
	// Live is the logs that are being read.
	Live   []Live
	Hasher sketches.Hasher
	// ViewTypes is what a question means that names no type. At least one.
	ViewTypes []string
	// Dimensions are the declared ones.
	Dimensions []string
	// Settling is how long after the watermark has passed a minute an event can
	// still be counted there: max_lateness + max_skew + a minute.
	Settling time.Duration
	// Sinks says how far the sinks are, for Status; nil: there are none.
	Sinks func() []SinkStatus
	// Version is this build's, for Status.
	Version string
}

// Engine answers questions. It is safe for concurrent use.
type Engine struct {
	cfg  Config
	sums sumCache
}

// New returns an engine.
func New(cfg Config) *Engine { return &Engine{cfg: cfg} }

// declared refuses a dimension that numbers are not broken down by.
func (e *Engine) declared(dimension string) error {
	switch {
	case dimension == "" || slices.Contains(e.cfg.Dimensions, dimension):
		return nil
	case len(e.cfg.Dimensions) == 0:
		return malformed("dimension", "%q: no dimension is declared", dimension)
	default:
		return malformed("dimension", "%q is not declared; declared: %s", dimension, strings.Join(e.cfg.Dimensions, ", "))
	}
}
