package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tidemark/sinks"
)

// Sink writes seals into ClickHouse. It is a sinks.Sink.
type Sink struct {
	options Options
	conn    driver.Conn
	open    conns
	writer  *writer // nil: none that has not failed
}

// New returns a Sink. It dials nothing: a server that is away at the start is one
// that is away.
func New(o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Sink{options: o}
	conn, err := connect(o, &s.open)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	s.conn = conn
	return s, nil
}

// Close closes the connections. No other method may be running.
func (s *Sink) Close() error {
	err := s.conn.Close()
	s.open.cut()
	return err
}

// Name is that of sinks.Sink.
func (*Sink) Name() string { return "clickhouse" }

// Resume migrates the database where needed, and makes sure that it is this
// deployment's, that its tables are as they must be, that the seals delivered to it are
// still there, and none that came after what is known here (CH6).
func (s *Sink) Resume(ctx context.Context, have sinks.Progress) error {
	defer s.cutWhenDone(ctx)()
	for _, step := range []func(context.Context, driver.Conn, Options) error{migrate, checkColumns, checkDeployment, setRetention} {
		if err := step(ctx, s.conn, s.options); err != nil {
			return err
		}
	}
	return checkSeals(ctx, s.conn, s.options.Database, have)
}

// Deliver is that of sinks.Sink.
func (s *Sink) Deliver(ctx context.Context, seals []*sinks.Seal) error {
	defer s.cutWhenDone(ctx)()
	w := s.writer
	if w == nil {
		w = newWriter(s.conn, s.options.Database)
	}
	s.writer = nil
	if err := w.write(ctx, seals); err != nil {
		return err
	}
	s.writer = w
	return nil
}

// cutWhenDone closes the connections when ctx is done, until stop is called.
func (s *Sink) cutWhenDone(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, s.open.cut)
}
