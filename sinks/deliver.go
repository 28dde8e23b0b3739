package sinks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Config is what a Deliverer needs. All but Metrics must be set.
type Config struct {
	Sink    Sink
	Outbox  Outbox
	Logger  *slog.Logger
	Metrics *Metrics // nil: none
}

const (
	// batchBytes is how much is taken from the outbox at once, in memory, about. A
	// backlog goes faster in large pieces; this is some hundred thousand rows.
	batchBytes = 64 << 20
	// pace is the least time from the start of one delivery to the next: a sink that
	// is given a little every moment spends its time on housekeeping.
	pace = time.Second

	// A failure is tried again after firstRetry, then ever later, up to lastRetry.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 15 * time.Second
	// stoppedRetry is how often it is looked whether somebody has mended the sink.
	stoppedRetry = 10 * time.Second
)

// Deliverer moves the seals of an outbox to one sink.
type Deliverer struct {
	Config
	resumed bool // the sink has been made sure of since it last failed; of Run

	mu     sync.Mutex
	status Status
}

// State is what a Deliverer is at.
type State string

// The states of a Deliverer.
const (
	StateWorking  State = "working"  // or waiting for seals
	StateRetrying State = "retrying" // it failed, and will be tried again soon
	StateStopped  State = "stopped"  // somebody must mend it
)

// Status is what a Deliverer tells of itself.
type Status struct {
	Sink   string
	State  State
	Reason string    // unless it is working
	Since  time.Time // of the state
	Seals  uint64    // delivered since the start
}

// NewDeliverer returns a Deliverer; Run makes it work.
func NewDeliverer(cfg Config) *Deliverer {
	return &Deliverer{Config: cfg, status: Status{Sink: cfg.Sink.Name(), State: StateWorking, Since: time.Now()}}
}

// Status says what the Deliverer is at. Safe for concurrent use.
func (d *Deliverer) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

// Run delivers until ctx is done, which is no error. It returns an error if the
// outbox fails: a failure of the sink is tried again, without end.
func (d *Deliverer) Run(ctx context.Context) error {
	err := d.run(ctx)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // asked to end
	}
	return fmt.Errorf("deliver to %s: %w", d.Sink.Name(), err)
}

func (d *Deliverer) run(ctx context.Context) error {
	sink := d.Sink.Name()
	for first := true; ; first = false {
		// Before anything waits as well: what is wrong with the sink shows at once.
		var seals []*Seal
		var err error
		if !first {
			if err = d.Outbox.Wait(ctx, sink); err != nil {
				return err
			}
			if seals, err = d.Outbox.Oldest(ctx, sink, batchBytes); err != nil {
				return err
			}
		}
		start := time.Now()
		if err := d.deliver(ctx, seals); err != nil {
			return err
		}
		if len(seals) == 0 {
			continue
		}
		if err := d.Outbox.Done(ctx, sink, seals); err != nil {
			return err
		}
		d.delivered(len(seals))
		if err := sleep(ctx, pace-time.Since(start)); err != nil {
			return err
		}
	}
}

// deliver tries until the seals are in the sink, or without any, until the sink is
// fit to take some. It returns an error only of the outbox, or if ctx is done.
func (d *Deliverer) deliver(ctx context.Context, seals []*Seal) error {
	have, err := d.Outbox.Progress(ctx, d.Sink.Name())
	if err != nil {
		return err
	}
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval = firstRetry, lastRetry
	for {
		err := d.try(ctx, seals, have)
		if err == nil {
			d.enter(StateWorking, "")
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		state, wait := StateRetrying, retry.NextBackOff()
		if errors.Is(err, ErrStopped) {
			state, wait = StateStopped, stoppedRetry
		}
		d.enter(state, err.Error())
		d.Metrics.failed(d.Sink.Name())
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (d *Deliverer) try(ctx context.Context, seals []*Seal, have Progress) error {
	if !d.resumed {
		if err := d.Sink.Resume(ctx, have); err != nil {
			return err
		}
		d.resumed = true
	}
	if len(seals) == 0 {
		return nil
	}
	start := time.Now()
	if err := d.Sink.Deliver(ctx, seals); err != nil {
		d.resumed = false
		return err
	}
	d.Metrics.observe(d.Sink.Name(), time.Since(start))
	return nil
}

func (d *Deliverer) delivered(seals int) {
	d.mu.Lock()
	d.status.Seals += uint64(seals)
	d.mu.Unlock()
	d.Metrics.delivered(d.Sink.Name(), seals)
}

// enter changes the state, and says so once for each reason.
func (d *Deliverer) enter(state State, reason string) {
	d.mu.Lock()
	before := d.status
	if before.State != state {
		d.status.Since = time.Now()
	}
	d.status.State, d.status.Reason = state, reason
	d.mu.Unlock()
	if before.State == state && before.Reason == reason {
		return
	}
	sink := slog.String("sink", d.Sink.Name())
	switch state {
	case StateWorking:
		d.Logger.Info("sink goes on", sink, slog.Duration("after", time.Since(before.Since)))
	case StateRetrying:
		d.Logger.Warn("delivery failed, trying again", sink, slog.String("reason", reason))
	case StateStopped:
		d.Logger.Error("sink stopped until it is mended", sink, slog.String("reason", reason))
	}
	d.Metrics.stop(d.Sink.Name(), state == StateStopped)
}

// sleep waits, unless ctx is done before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
