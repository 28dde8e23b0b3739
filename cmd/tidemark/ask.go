package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/queries"
)

// A parameter of a question is a flag of its command: the value goes into the
// question as it is, and the question says what is allowed.
type parameter struct{ name, usage string }

var (
	rangeParameters = []parameter{
		{"type", "an event type, may be repeated; * is all types together (default the view types)"},
		{"from", "start of the range: RFC 3339, Unix milliseconds, or a date"},
		{"to", "end of the range, not itself part of it"},
		{"last", "in the place of from and to: 5m, 24h, 30d, or all"},
		{"at", "another instant in the place of now"},
		{"tz", "time zone of dates, an IANA name (default UTC)"},
	}
	itemParameters = append([]parameter{
		{"item", "an item; the arguments are items too, and none is the whole site"},
		{"step", "also a series, by minute, hour, day, week or month"},
		{"dimension", "broken down by the values of a declared dimension"},
		{"value", "narrowed to this value of the dimension"},
	}, rangeParameters...)
	topParameters = append([]parameter{
		{"by", "views, viewers, or rising: how much more than was to be expected, of the last 1m to 6h (default views)"},
		{"limit", "how many places (default 10)"},
		{"viewers", "false leaves out the viewers of a ranking by views, which take most of its time"},
		{"dimension", "of the values of a declared dimension, instead of items"},
		{"value", "of the items within this value of the dimension"},
	}, rangeParameters...)
)

// newAsks returns the commands that ask questions.
func newAsks(env environment) []*cobra.Command {
	return []*cobra.Command{
		newAsk(env, "viewers", "Ask how many different users there were, and how many events", itemParameters),
		newAsk(env, "counts", "Ask how many events there were", itemParameters),
		newAsk(env, "top", "Ask which items had the most", topParameters),
	}
}

func newAsk(env environment, path, short string, parameters []parameter) *cobra.Command {
	cmd := &cobra.Command{Use: path, Short: short, Args: withArgs(0, 0, path+" takes no arguments")}
	values := url.Values{}
	for _, p := range parameters {
		cmd.Flags().Func(p.name, p.usage, func(v string) error {
			values.Add(p.name, v)
			return nil
		})
	}
	if path != "top" {
		cmd.Use += " [ITEM...]"
		cmd.Args = cobra.ArbitraryArgs
		cmd.Flags().BoolFunc("together", "one answer for all the items, as if they were one", func(v string) error {
			values.Set("together", v)
			return nil
		})
	}
	addSettings(cmd, "data", "hash-key-file", "server", "key")
	asJSON := cmd.Flags().Bool("json", !isTerminal(env.stdout), "as JSON, which is the default where the output is no terminal")
	watch := new(bool)
	if path == "top" {
		watch = cmd.Flags().Bool("watch", false, "ask a server again every second, until Ctrl-C: drawn in place on a terminal, elsewhere printed when it changes")
	}

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		if *watch && c.Server == "" {
			return wrongUsage(cmd, errors.New("watch: it is a server that is watched; name it with --server"))
		}
		for _, item := range args {
			values.Add("item", item)
		}
		ask := askFolder
		if c.Server != "" {
			ask = askServer
		}
		print := func() (string, error) {
			body, err := ask(cmd.Context(), &c, env.logger(slog.LevelWarn), path, values)
			if err != nil {
				return "", err
			}
			return printed(path, body, *asJSON)
		}
		text, err := print()
		switch {
		case err != nil && isOurFault(err):
			return err
		case err != nil:
			return wrongUsage(cmd, err)
		case *watch:
			s := newScreen(env.stdout, 0)
			s.terminal = s.terminal && !*asJSON
			return watchIt(cmd.Context(), s, text, print)
		}
		_, err = io.WriteString(env.stdout, text)
		return err
	}
	return cmd
}

// printed returns an answer as it is printed.
func printed(path string, body []byte, asJSON bool) (string, error) {
	if asJSON {
		return string(bytes.TrimSpace(body)) + "\n", nil
	}
	var b strings.Builder
	err := printAnswer(&b, path, body)
	return b.String(), err
}

// watchIt shows a text, and once a second what print returns then, until ctx ends. A
// server that is away for a while is waited for.
func watchIt(ctx context.Context, s *screen, text string, print func() (string, error)) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if err := s.show(text); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		next, err := print()
		switch {
		case err == nil:
			text = next
		case ctx.Err() == nil:
			text = fmt.Sprintf("(no answer: %v)\n", err)
		}
	}
}

// isOurFault tells a failure from a question that cannot be answered as it was asked.
func isOurFault(err error) bool {
	if _, ok := errors.AsType[*queries.Fault](err); ok {
		return false
	}
	p, ok := errors.AsType[*problem](err)
	return !ok || p.Status != http.StatusBadRequest && p.Status != http.StatusUnprocessableEntity
}

// askFolder answers a question from the data folder, in JSON.
func askFolder(ctx context.Context, c *Config, logger *slog.Logger, path string, values url.Values) (body []byte, err error) {
	s, err := openForReading(c, logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	reply, err := newAnswers(s, nil, &delivery{store: s.Store}).Ask(ctx, path, values, time.Now())
	if err != nil {
		return nil, err
	}
	return json.Marshal(reply)
}

// Limits of a question to a server.
const (
	answerTimeout = time.Minute
	answerBytes   = 256 << 20
)

// askServer answers a question by the server's answer, in its JSON.
func askServer(ctx context.Context, c *Config, _ *slog.Logger, path string, values url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+"/v1/"+path+"?"+values.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	authorize(req, c)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.Server, err)
	}
	if resp.StatusCode == http.StatusOK {
		return body, nil
	}
	return nil, refusalOf(c.Server, resp, body)
}

// refusalOf returns what a server says in the place of an answer.
func refusalOf(server string, resp *http.Response, body []byte) error {
	p := &problem{Status: resp.StatusCode, Title: resp.Status}
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && kind == "application/problem+json" {
		if err := json.Unmarshal(body, p); err != nil {
			return fmt.Errorf("%s answers %s, and not why: %w", server, resp.Status, err)
		}
	}
	return fmt.Errorf("%s: %w", server, p)
}

// authorize gives a request to a server the key that the server asks for, if there is one.
func authorize(req *http.Request, c *Config) {
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
}

// problem is the document that a server sends in the place of an answer (RFC 9457).
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// Error says what was wrong.
func (p *problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}
