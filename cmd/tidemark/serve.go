package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"tidemark/sinks"
	"tidemark/web"
	"tidemark/windows"
	"tidemark/windows/journal"
)

// serveSettings are those of a server.
var serveSettings = []string{
	"data", "hash-key-file", "listen", "open", "keys", "allow-origins", "trusted-proxies", "limit-requests", "limit-events", "max-connections", "live-questions", "live-clients", "live-message-bytes", "view-types", "dimensions", "partitions", "rules", "lateness",
	"max-lateness", "max-skew", "idle", "dedup-events", "max-items-per-window", "window-memory", "journal-retention",
	"retention.minute", "retention.quarter", "retention.hour", "retention.day",
}

// newServe returns the command that takes events and answers over HTTP.
func newServe(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Take events and answer questions over HTTP",
		Args:  withArgs(0, 0, "serve takes no arguments"),
	}
	addSettings(cmd, serveSettings...)
	addSettings(cmd, clickHouseSettings...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		if err := onlyLoopback(cmd, &c); err != nil {
			return err
		}
		if c.ClickHouse.Migrate == printMigrations {
			return printClickHouse(&c, env.stdout)
		}
		listener, err := listen(cmd.Context(), &c)
		if err != nil {
			return err
		}
		return serve(cmd.Context(), &c, listener, env.logger(slog.LevelInfo))
	}
	return cmd
}

// onlyLoopback refuses an address that others could reach, unless they need a key or
// it is meant.
func onlyLoopback(cmd *cobra.Command, c *Config) error {
	ring, err := openKeys(c)
	if err != nil {
		return err
	}
	if !ring.Made() && !c.Open && !loopback(c.Listen) {
		return wrongUsage(cmd, fmt.Errorf("listen: %s is no loopback address, so that others could ask and send: make a key with `tidemark keys add`, or listen on 127.0.0.1, or say --open if everybody may", c.Listen))
	}
	return nil
}

// listen returns a listener on the address of c.
func listen(ctx context.Context, c *Config) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = addressInUse(c, err)
	}
	return l, err
}

// keptFiles is how many files the store and what else is open may have.
const keptFiles = 1000

// maxConnections returns how many connections there may be: each is a file, of which
// the system may allow fewer.
func maxConnections(ctx context.Context, c *Config, logger *slog.Logger) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur >= uint64(c.MaxConnections)+keptFiles {
		return c.MaxConnections
	}
	most := max(int(files.Cur)/2, int(files.Cur)-keptFiles)
	logger.WarnContext(ctx, "fewer connections than max-connections: the system allows too few open files (ulimit -n)", "files", files.Cur, "connections", most)
	return most
}

// metrics are those of the parts of a server.
type metrics struct {
	registry *prometheus.Registry
	journal  *journal.Metrics
	windows  *windows.Metrics
	web      *web.Metrics
	sinks    *sinks.Metrics
}

func newMetrics(logger *slog.Logger) metrics {
	r := prometheus.NewRegistry()
	return metrics{r, journal.NewMetrics(r), windows.NewMetrics(r, logger), web.NewMetrics(r), sinks.NewMetrics(r)}
}

// newStoreMetrics registers what an operator has to see to.
func newStoreMetrics(r prometheus.Registerer, l *live) {
	gauge := func(name, help string, is func() bool) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if is() {
				return 1
			}
			return 0
		}))
	}
	gauge("tidemark_store_waiting", "1 while the store waits for a disk that is full or can't be written: see to the disk; it goes on by itself.",
		func() bool { return l.store.Waiting() != nil })
	gauge("tidemark_counting_failed", "1 once counting has ended because of a failure: see the log. Events are refused, and those accepted are in the journal.",
		func() bool { return l.failure.Load() != nil })
}

// serveOnce serves until ctx ends, or the data folder has to be opened anew. It closes
// the listener.
func serveOnce(ctx context.Context, c *Config, listener net.Listener, logger *slog.Logger) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() {
		if cause := context.Cause(ctx); errors.Is(cause, errAnew) {
			err = errors.Join(cause, err)
		}
	}()
	c.serving = "http://" + listener.Addr().String()
	ring, stop, err := watchKeys(ctx, c, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stop()
	m := newMetrics(logger)
	l, err := openLive(ctx, c, m, func(err error) { cancel(fmt.Errorf("%w: %w", errAnew, err)) }, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, l.close()) }() // once no handler uses it any more
	d, err := openDelivery(ctx, c, l.store.Store, m.sinks, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, d.close()) }()
	newBacklogMetrics(m.registry, l.store.Store)
	newStoreMetrics(m.registry, l)
	handler := web.New(web.Config{
		Questions:      newAnswers(l.store, l, d),
		Ready:          l.ready,
		Events:         l,
		Backup:         l.Backup,
		Live:           web.LiveLimits{Questions: c.LiveQuestions, Clients: c.LiveClients, MessageBytes: int64(c.LiveMessageBytes)},
		Keys:           ring,
		Origins:        c.Origins,
		Proxies:        c.Proxies,
		Limits:         web.Limits{Requests: c.LimitRequests, Events: c.LimitEvents},
		MaxConnections: maxConnections(ctx, c, logger),
		Metrics:        promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}),
		Requests:       m.web,
		Logger:         logger,
	})
	logger.InfoContext(ctx, "serving", "url", c.serving, "data", c.Data)
	err = web.Serve(ctx, listener, handler, logger)
	logger.InfoContext(ctx, "ended")
	return err
}
