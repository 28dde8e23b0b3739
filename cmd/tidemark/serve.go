package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"tidemark/web"
)

// newServe returns the command that answers over HTTP.
func newServe(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer questions over HTTP",
		Args:  withArgs(0, 0, "serve takes no arguments"),
	}
	addSettings(cmd, "data", "hash-key-file", "listen", "open")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		if !c.Open && !loopback(c.Listen) {
			return wrongUsage(cmd, fmt.Errorf("listen: %s is no loopback address, so others could ask: listen on 127.0.0.1, or say --open if that is meant", c.Listen))
		}
		return serve(cmd.Context(), &c, env.logger(slog.LevelInfo))
	}
	return cmd
}

// serve answers from the data folder until ctx ends.
func serve(ctx context.Context, c *Config, logger *slog.Logger) (err error) {
	s, err := openForReading(c, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }() // once no handler reads any more
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	handler := web.New(web.Config{
		Questions: newAnswers(s),
		Ready: func(context.Context) error {
			n, err := s.Snapshot()
			if err != nil {
				return err
			}
			return n.Close()
		},
		Logger: logger,
	})
	logger.InfoContext(ctx, "serving", "url", "http://"+listener.Addr().String(), "data", c.Data)
	err = web.Serve(ctx, listener, handler, logger)
	logger.InfoContext(ctx, "ended")
	return err
}
