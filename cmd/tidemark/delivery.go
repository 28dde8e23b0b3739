package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark/queries"
	"tidemark/sinks"
	"tidemark/sinks/clickhouse"
	"tidemark/windows/store"
)

// clickHouse is the name of the sink in the outbox, in metrics and in the status.
const clickHouse = "clickhouse"

// noClickHouse is the address that says that ClickHouse is not wanted any more.
const noClickHouse = "none"

// subscribe has seals wait for the sinks that are configured, from the next one on.
// Once they do, they go on to do so whoever writes to the folder, until told otherwise:
// else an import, or a start without the setting, would leave a hole in the tables.
func subscribe(c *Config, s *store.Store, logger *slog.Logger) error {
	switch {
	case len(c.ClickHouse.Addr) == 0:
		if len(s.Sinks()) > 0 {
			logger.Warn("what is sealed waits for ClickHouse, and nothing delivers it: name its address (--clickhouse.addr), or say --clickhouse.addr=none if it is not wanted any more",
				"waiting", s.Backlog(clickHouse).Seals)
		}
		return nil
	case c.ClickHouse.Addr[0] == noClickHouse:
		return s.Unsubscribe(clickHouse)
	}
	return s.Subscribe(clickHouse)
}

// clickHouseOptions returns what the sink needs, but for whose database it is.
func clickHouseOptions(c *Config) (clickhouse.Options, error) {
	ch := &c.ClickHouse
	o := clickhouse.Options{
		Addr: ch.Addr, Database: ch.Database, User: ch.User,
		Retention: int(ch.Retention / (24 * time.Hour)),
	}
	if ch.Retention == forever {
		o.Retention = 0
	}
	if ch.PasswordFile != "" {
		text, err := os.ReadFile(ch.PasswordFile)
		if err != nil {
			return o, fmt.Errorf("clickhouse.password-file: %w", err)
		}
		o.Password = strings.TrimRight(string(text), "\r\n")
	}
	if ch.TLSCA != "" {
		text, err := os.ReadFile(ch.TLSCA)
		if err != nil {
			return o, fmt.Errorf("clickhouse.tls-ca: %w", err)
		}
		o.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		if !o.TLS.RootCAs.AppendCertsFromPEM(text) {
			return o, fmt.Errorf("clickhouse.tls-ca: there is no certificate in %s", ch.TLSCA)
		}
	} else if ch.TLS {
		o.TLS = &tls.Config{}
	}
	return o, nil
}

// printMigrations is the value of clickhouse.migrate that has the SQL printed.
const printMigrations = "print"

// printClickHouse prints the SQL that makes the tables, or brings them up to date.
func printClickHouse(c *Config, w io.Writer) error {
	o, err := clickHouseOptions(c)
	if err != nil {
		return err
	}
	return clickhouse.Script(w, o)
}

// delivery brings what waits in the outbox to ClickHouse. Its methods may be called
// where there is none.
type delivery struct {
	store     *store.Store
	logger    *slog.Logger
	sink      *clickhouse.Sink
	deliverer *sinks.Deliverer

	stop    context.CancelFunc
	running sync.WaitGroup
}

// deliverAgain is how long after a failure of the outbox it is tried again.
const deliverAgain = 10 * time.Second

// openDelivery begins to deliver, if an address is set. Close it before the store.
func openDelivery(ctx context.Context, c *Config, s *store.Store, m *sinks.Metrics, logger *slog.Logger) (*delivery, error) {
	d := &delivery{store: s, logger: logger, stop: func() {}}
	if len(c.ClickHouse.Addr) == 0 || c.ClickHouse.Addr[0] == noClickHouse {
		return d, nil
	}
	o, err := clickHouseOptions(c)
	if err != nil {
		return nil, err
	}
	o.Deployment, o.Logger = clickhouse.Deployment{Key: s.Meta().KeyID}, logger
	if d.sink, err = clickhouse.New(o); err != nil {
		return nil, err
	}
	d.deliverer = sinks.NewDeliverer(sinks.Config{Sink: d.sink, Outbox: outbox{s}, Logger: logger, Metrics: m})
	ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	d.running.Go(func() { d.run(ctx) })
	return d, nil
}

func (d *delivery) run(ctx context.Context) {
	for {
		err := d.deliverer.Run(ctx)
		if err == nil {
			return // asked to end
		}
		d.logger.ErrorContext(ctx, "delivery has ended, since the store can't be read or written; it begins again soon", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(deliverAgain):
		}
	}
}

// status says how far the sinks are that seals wait for.
func (d *delivery) status() []queries.SinkStatus {
	out := []queries.SinkStatus{}
	for _, name := range d.store.Sinks() {
		b := d.store.Backlog(name)
		s := queries.SinkStatus{Name: name, State: "off", Reason: "no address is set here", Waiting: b.Seals, WaitingBytes: b.Bytes}
		if b.Seals > 0 {
			oldest := b.Oldest.Time()
			s.Oldest = &oldest
		}
		if d.deliverer != nil {
			now := d.deliverer.Status()
			since := now.Since.UTC()
			s.State, s.Reason, s.Since, s.Delivered = string(now.State), now.Reason, &since, now.Seals
		}
		out = append(out, s)
	}
	return out
}

// finish waits until nothing waits any more. It returns an error if the sink can't
// go on before somebody mends it, or if ctx ends.
func (d *delivery) finish(ctx context.Context) error {
	if d.deliverer == nil {
		return nil
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		b, now := d.store.Backlog(clickHouse), d.deliverer.Status()
		switch {
		case b.Seals == 0:
			return nil
		case now.State == sinks.StateStopped:
			return fmt.Errorf("everything is imported, but %d seals wait for ClickHouse; a server with this folder delivers them once it is mended: %s", b.Seals, now.Reason)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted; everything is imported, but %d seals wait for ClickHouse, and a server with this folder delivers them", b.Seals)
		case <-tick.C:
		}
	}
}

// close ends delivering; what waits goes on waiting.
func (d *delivery) close() error {
	d.stop()
	defer time.AfterFunc(giveUpAfter, d.store.GiveUp).Stop() // a mark may wait for a disk that is full
	d.running.Wait()
	if d.sink == nil {
		return nil
	}
	return d.sink.Close()
}

// newBacklogMetrics registers what waits for the sinks.
func newBacklogMetrics(r prometheus.Registerer, s *store.Store) {
	for _, name := range s.Sinks() {
		gauge := func(metric, help string, value func(store.Backlog) float64) {
			r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: metric, Help: help, ConstLabels: prometheus.Labels{"sink": name},
			}, func() float64 { return value(s.Backlog(name)) }))
		}
		gauge("tidemark_sink_waiting_seals", "Seals in the outbox that the sink does not have. Grows while the sink is away; one a minute and partition is usual.",
			func(b store.Backlog) float64 { return float64(b.Seals) })
		gauge("tidemark_sink_waiting_bytes", "Size of those seals on the disk: it is what the disk must hold while the sink is away.",
			func(b store.Backlog) float64 { return float64(b.Bytes) })
	}
}
