package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/cmd/traffic"
)

// defaultServer is where a server listens that was told nothing else.
const defaultServer = "http://127.0.0.1:8080"

// loadSettings are those of a stream that is sent.
var loadSettings = []string{"rate", "duration", "backlog", "seed", "items", "connections", "batch"}

// fileSettings are those of a file that is sent.
var fileSettings = []string{"file", "speed", "dimensions"}

// newLoad returns the command that sends a stream to a server.
func newLoad(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Send a stream of made-up events to a server",
		Long: `Send a stream of made-up events to a server (default ` + defaultServer + `): videos with
titles, a few of which are seen by most, people who come back, bots, events that come
late or twice, and one video that goes viral within the first minute. The same --seed is
the same stream.

Each event has an ID, and what was not taken is sent again: nothing is lost or counted
twice. Where the server can't take so many it gets as many as it takes. With
"--batch 1 --connections 64" each event is a request of its own.

With --file it sends the events of a file instead, as if the first of them happened now,
and --speed times faster than they did.

To break the numbers down, start the server with --dimensions ` + strings.Join(traffic.Dimensions(), ","),
		Args: withArgs(0, 0, "load takes no arguments"),
	}
	addSettings(cmd, "server", "key")
	addSettings(cmd, loadSettings...)
	addSettings(cmd, fileSettings...)
	asJSON := cmd.Flags().Bool("json", false, "print what became of the events as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		if c.Server == "" {
			c.Server = defaultServer
		}
		if err := reachable(cmd.Context(), &c); err != nil {
			return err
		}
		send := sendStream
		if c.Load.File != "" {
			send = sendFile
		}
		report, err := send(cmd.Context(), env, &c)
		if err != nil {
			return err
		}
		if *asJSON {
			err = json.NewEncoder(env.stdout).Encode(report)
		} else {
			err = printSent(env.stdout, report)
		}
		if err == nil && (c.Load.Duration != forever || c.Load.File != "") && cmd.Context().Err() != nil {
			err = errors.New("interrupted")
		}
		return err
	}
	return cmd
}

// newStream returns the stream that c describes, which begins now.
func newStream(c *Config) (*traffic.Stream, error) {
	now := time.Now()
	cfg := traffic.Config{
		Seed:     uint64(c.Load.Seed),
		Start:    now.Add(-c.Load.Backlog),
		Run:      runName(now),
		Rate:     c.Load.Rate,
		Duration: forever,
		Items:    c.Load.Items,
		Viral:    c.Load.Backlog + viralAfter,
	}
	if c.Load.Duration < forever-c.Load.Backlog {
		cfg.Duration = c.Load.Backlog + c.Load.Duration
	}
	return traffic.NewStream(cfg)
}

// runName is what the event IDs of a run begin with: another run of the same stream is
// other events.
func runName(begun time.Time) string { return "load-" + strconv.FormatInt(begun.UnixMilli(), 36) }

// viralAfter is how long after now an item goes viral: whoever looks sees how it was
// before.
const viralAfter = 15 * time.Second

// reachable returns an error if no server is there, before anything is sent again and
// again.
func reachable(ctx context.Context, c *Config) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+"/healthz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("no server answers at %s: start one with `tidemark serve`, or name another with --server: %w", c.Server, err)
	}
	return resp.Body.Close()
}

// sendStream sends a stream that is made up.
func sendStream(ctx context.Context, env environment, c *Config) (traffic.Report, error) {
	stream, err := newStream(c)
	if err != nil {
		return traffic.Report{}, err
	}
	expected := int64(-1)
	if c.Load.Duration != forever {
		expected = int64(c.Load.Rate * (c.Load.Duration + c.Load.Backlog).Seconds())
	}
	return sendAll(ctx, c, stream, expected, env.stderr)
}

// sendFile sends the events of a file.
func sendFile(ctx context.Context, env environment, c *Config) (traffic.Report, error) {
	dimensions, err := dimensionsOf(ctx, c)
	if err != nil {
		return traffic.Report{}, err
	}
	h, err := openHistory(ctx, c, env.stdin, dimensions)
	if err != nil {
		return traffic.Report{}, err
	}
	report, err := sendAll(ctx, c, h, -1, env.stderr)
	if h.malformed > 0 {
		fmt.Fprintf(env.stderr, "%s records of the file are no events, and were not sent\n", count(h.malformed))
	}
	return report, errors.Join(err, h.close())
}

// sendAll sends all that a source has to the server, and shows on w how far it is;
// expected is -1 where it is not known how many there are.
func sendAll(ctx context.Context, c *Config, source traffic.Source, expected int64, w io.Writer) (traffic.Report, error) {
	sender := traffic.NewSender(traffic.SenderConfig{
		URL: c.Server + "/v1/events", Key: c.Key, Connections: c.Load.Connections, Batch: c.Load.Batch,
	})
	shown := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(shown)
		showSending(w, sender, expected, stop)
	}()
	err := sender.Run(ctx, source)
	close(stop)
	<-shown
	return sender.Report(), err
}

// showSending shows how far a sender is until stop is closed.
func showSending(w io.Writer, sender *traffic.Sender, expected int64, stop <-chan struct{}) {
	p := newProgress(w)
	defer p.end()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		r := sender.Report()
		p.show(r.Accepted+r.Rejected, expected, "events", func() string {
			return fmt.Sprintf("%s events taken, %s a second, %s requests sent again, p99 %.1f ms", count(r.Accepted), count(r.EventsPerSecond), count(r.Retried), r.Latency.P99)
		})
	}
}

// printSent prints what became of the events for a person.
func printSent(w io.Writer, r traffic.Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range [][2]string{
		{"sent", count(r.Sent) + " events"},
		{"accepted", count(r.Accepted)},
		{"rejected", count(r.Rejected)},
		{"requests", fmt.Sprintf("%s, %s of them sent again", count(r.Requests), count(r.Retried))},
		{"rate", fmt.Sprintf("%s events a second over %.1f s", count(r.EventsPerSecond), r.Seconds)},
		{"latency", fmt.Sprintf("p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, most %.1f ms", r.Latency.P50, r.Latency.P90, r.Latency.P99, r.Latency.Max)},
	} {
		fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
	}
	for _, reason := range r.Reasons {
		fmt.Fprintf(table, "\tsome were rejected: %s\n", oneLine(reason))
	}
	return table.Flush()
}
