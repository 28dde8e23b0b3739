package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/cmd/traffic"
	"tidemark/queries"
)

// demoBacklog is what happened before a demo begins, so that there is something to look
// back at.
const demoBacklog = time.Hour

// demoItems is about how many videos a demo is: few, so that all is counted again within
// seconds.
const demoItems = 500

// newDemo returns the command that shows what a server does.
func newDemo(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a server that is fed with a live stream of made-up events, and show what trends",
		Long: `Run a server that is fed with a live stream of made-up events, as "tidemark load" sends it,
the last hour of it at once, and show what trends. The data are in a temporary folder that
is removed at the end, unless --data names one.`,
		Args: withArgs(0, 0, "demo takes no arguments"),
	}
	addSettings(cmd, "key")
	addSettings(cmd, append(append([]string{}, serveSettings...), loadSettings...)...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		if !c.Given("data") {
			if c.Data, err = os.MkdirTemp("", "tidemark-demo-*"); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(c.Data)) }()
		}
		if err := onlyLoopback(cmd, &c); err != nil {
			return err
		}
		if !c.Given("dimensions") {
			c.Dimensions = traffic.Dimensions()
		}
		if !c.Given("backlog") {
			c.Load.Backlog = demoBacklog
		}
		if !c.Given("items") {
			c.Load.Items = demoItems
		}
		c.ClickHouse.Addr = nil // made-up events are for nobody else
		return demo(cmd.Context(), env, &c)
	}
	return cmd
}

// demo runs a server, a sender and a screen, until ctx ends or one of them fails.
func demo(ctx context.Context, env environment, c *Config) error {
	listener, err := listen(ctx, c)
	if err != nil {
		return err
	}
	c.Server = "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	// Its log would be in the middle of the screen, but for what is wrong.
	logger := env.logger(slog.LevelWarn)
	go func() {
		defer stop()
		served <- serve(ctx, c, listener, logger)
	}()
	err = feedAndShow(ctx, env, c)
	stop()
	return errors.Join(err, <-served)
}

// feedAndShow sends the stream, and shows what has become of it.
func feedAndShow(ctx context.Context, env environment, c *Config) error {
	if err := ready(ctx, c); err != nil {
		return err
	}
	stream, err := newStream(c)
	if err != nil {
		return err
	}
	sender := traffic.NewSender(traffic.SenderConfig{URL: c.Server + "/v1/events", Key: c.Key, Connections: c.Load.Connections, Batch: c.Load.Batch})
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan error, 1)
	go func() {
		err := sender.Run(ctx, stream)
		if err != nil {
			stop()
		}
		sent <- err
	}()
	err = showDemo(ctx, newScreen(env.stdout, time.Minute), c, sender)
	stop()
	return errors.Join(err, <-sent)
}

// ready waits until the server answers, or ctx ends.
func ready(ctx context.Context, c *Config) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil // why is known to whoever ended it
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// showDemo shows once a second what trends, and what else can be tried.
func showDemo(ctx context.Context, s *screen, c *Config, sender *traffic.Sender) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		trends, rising, total, err := askDemo(ctx, c)
		// Where texts stand one below the other, the first one is one that says something.
		if err == nil && (s.terminal || len(trends.Items) > 0) {
			err = s.show(demoText(c, sender.Report(), trends, rising, total))
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// askDemo asks what a demo shows: what is watched, what rises, and how many people there were.
func askDemo(ctx context.Context, c *Config) (trends, rising queries.TopAnswer, total queries.Answers, err error) {
	for _, q := range []struct {
		path   string
		values url.Values
		into   any
	}{
		{"top", url.Values{"last": {"1m"}}, &trends},
		{"top", url.Values{"by": {"rising"}, "last": {"5m"}, "limit": {"3"}}, &rising},
		{"viewers", url.Values{"last": {"1h"}}, &total},
	} {
		body, err := askServer(ctx, c, nil, q.path, q.values)
		if err != nil {
			return trends, rising, total, err
		}
		if err := json.Unmarshal(body, q.into); err != nil {
			return trends, rising, total, err
		}
	}
	return trends, rising, total, nil
}

// demoText is what a demo shows at one moment.
func demoText(c *Config, r traffic.Report, trends, rising queries.TopAnswer, total queries.Answers) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Tidemark at %s, fed with made-up events: %s taken.\n", c.Server, count(r.Accepted))
	for _, a := range total {
		if a.Viewers != nil {
			fmt.Fprintf(&b, "In the last hour there were %s different people (%s to %s).\n", count(a.Viewers.Value), count(a.Viewers.Low), count(a.Viewers.High))
		}
	}
	for _, r := range rising.Items {
		fmt.Fprintf(&b, "Rising: %s, %s (%s views in five minutes)\n", r.Item, r.Title, count(r.Views.Value))
	}
	fmt.Fprintf(&b, "\nThe last minute: %s top --last 1m --watch --server %s\n", os.Args[0], c.Server)
	_ = printTable(&b, withTitles(&trends)) // a Builder takes all
	b.WriteString("\n")
	for _, line := range tryIt(c) {
		fmt.Fprintf(&b, "%-7s %s\n", line[0], line[1])
	}
	b.WriteString("Ctrl-C ends it.\n")
	return b.String()
}

// tryIt is what somebody who looks at the demo can type elsewhere.
func tryIt(c *Config) [][2]string {
	return [][2]string{
		{"ask", "curl -s '" + c.Server + "/v1/viewers?item=video-0&last=5m'"},
		{"send", "curl -s " + c.Server + `/v1/events -d '{"item":"mine","user":"me"}'; sleep 1; curl -s '` + c.Server + `/v1/counts?item=mine&last=5m'`},
		{"prove", os.Args[0] + " recount --data " + c.Data + " --server " + c.Server},
	}
}
