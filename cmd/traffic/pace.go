package traffic

import (
	"context"
	"time"
)

// Source has events for a Sender.
type Source interface {
	// Next appends the next event to b, as a line of JSON, and says when it is due;
	// the zero time is at once. ok is false where there are no more.
	Next(b []byte) (line []byte, due time.Time, ok bool, err error)
}

const (
	// linger is how long an event waits for others of its batch.
	linger = 50 * time.Millisecond
	// fullBytes is of a batch to which nothing is added: half of what a server takes.
	fullBytes = 8 << 20
)

// batch is events as they are sent.
type batch struct {
	body   []byte
	events int
	due    time.Time // the first of them
}

// pacer makes batches of what is due.
type pacer struct {
	source Source
	events int // of a full batch
	out    chan<- *batch
	free   <-chan *batch
	timer  *time.Timer
	fill   *batch // being filled
}

// run hands out batches until the source ends, or ctx: then what is not handed out yet
// is not sent.
func (p *pacer) run(ctx context.Context) error {
	p.timer = time.NewTimer(0)
	defer p.timer.Stop()
	if err := p.empty(ctx); err != nil {
		return nil // whoever ended ctx knows why
	}
	for {
		line, due, ok, err := p.source.Next(p.fill.body)
		if err != nil {
			return err
		}
		if !ok {
			return p.hand(ctx)
		}
		begin := len(p.fill.body)
		p.fill.body = line
		if err := p.wait(ctx, due, begin); err != nil {
			return nil // whoever ended ctx knows why
		}
	}
}

// wait waits until the event that begins there in the batch is due, and hands out the
// batch that it completes. What is before it does not wait for longer than linger; where
// the source is behind, nothing waits, and batches are full.
func (p *pacer) wait(ctx context.Context, due time.Time, begin int) error {
	early := time.Duration(0)
	if !due.IsZero() {
		early = time.Until(due)
	}
	if early > 0 && p.fill.events > 0 && due.Sub(p.fill.due) > linger {
		// A copy, since what is handed out is not ours any more.
		event := append([]byte{}, p.fill.body[begin:]...)
		p.fill.body = p.fill.body[:begin]
		if err := p.hand(ctx); err != nil {
			return err
		}
		if err := p.empty(ctx); err != nil {
			return err
		}
		p.fill.body = append(p.fill.body, event...)
	}
	if p.fill.events == 0 {
		p.fill.due = due
	}
	p.fill.events++
	if err := p.sleep(ctx, early); err != nil {
		return err
	}
	if p.fill.events < p.events && len(p.fill.body) < fullBytes {
		return nil
	}
	if err := p.hand(ctx); err != nil {
		return err
	}
	return p.empty(ctx)
}

func (p *pacer) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	p.timer.Reset(d)
	select {
	case <-p.timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hand hands out the batch, once there is somebody to send it.
func (p *pacer) hand(ctx context.Context) error {
	if p.fill.events == 0 {
		return nil
	}
	select {
	case p.out <- p.fill:
		p.fill = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// empty takes a batch to be filled.
func (p *pacer) empty(ctx context.Context) error {
	select {
	case p.fill = <-p.free:
		p.fill.body, p.fill.events = p.fill.body[:0], 0
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
