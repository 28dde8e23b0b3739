package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/queries"
	"tidemark/web/keys"
)

// keysFile returns the file that API keys are kept in.
func keysFile(c *Config) string {
	if c.KeysFile != "" {
		return c.KeysFile
	}
	return filepath.Join(c.Data, "keys.json")
}

// openKeys reads the API keys. A file that is named has to be there: without one,
// everybody may do all.
func openKeys(c *Config) (*keys.Ring, error) {
	ring, err := keys.Open(keysFile(c))
	if err == nil && c.KeysFile != "" && !ring.Made() {
		return nil, fmt.Errorf("keys: there is no %s: make a key with `tidemark keys add --keys %s`", c.KeysFile, c.KeysFile)
	}
	return ring, err
}

// watchKeys reads the API keys, and follows their file until stop is called.
func watchKeys(ctx context.Context, c *Config, logger *slog.Logger) (ring *keys.Ring, stop func(), err error) {
	if ring, err = openKeys(c); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { ring.Watch(ctx, logger) })
	return ring, func() {
		cancel()
		watching.Wait()
	}, nil
}

// newKeys returns the commands for API keys.
func newKeys(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, list and revoke the API keys of a server",
		Long: `Make, list and revoke the API keys of a server, in DATA/keys.json or the file of --keys.

As long as no key was made everybody who reaches the server may read and write. From the
first key on every request needs one: Authorization: Bearer KEY. A running server knows
of a change within two seconds.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrongUsage(cmd, fmt.Errorf("unknown command %q: there are add, list and revoke", args[0]))
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(newKeysAdd(env), newKeysList(env), newKeysRevoke(env))
	return cmd
}

func newKeysAdd(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add [NAME]",
		Short: "Make a key, and print it: it cannot be had again",
		Long: `Make a key, and print it: it cannot be had again, since only its hash is kept.

A key that may only read can be bound: to one item, to one value of a dimension (what
a creator may see of a channel), or to one question. Such a key can stand in a page.`,
		Example: `  tidemark keys add shop --scope ingest
  tidemark keys add grafana --scope read
  tidemark keys add ana --dimension channel=ana
  tidemark keys add widget --question '/v1/top?last=1h&limit=10'`,
		Args: withArgs(0, 1, "one NAME, which says what the key is for"),
	}
	addSettings(cmd, "data", "keys")
	flags := cmd.Flags()
	scopes := flags.StringSlice("scope", []string{string(keys.Read)}, "what it may do: ingest (send events), read (ask questions) or admin (everything); may be repeated")
	item := flags.String("item", "", "it may read of this item only")
	dimension := flags.String("dimension", "", "it may read of this value of a dimension only: NAME=VALUE")
	question := flags.String("question", "", "it may ask this question only: its URL")
	asJSON := flags.Bool("json", false, "print it as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		binding, err := parseBinding(*item, *dimension, *question)
		if err != nil {
			return wrongUsage(cmd, err)
		}
		var which []keys.Scope
		for _, s := range *scopes {
			which = append(which, keys.Scope(s))
		}
		key, text, err := keys.New(strings.Join(args, ""), which, binding, time.Now())
		if err != nil {
			return wrongUsage(cmd, err)
		}
		err = keys.Edit(keysFile(&c), func(all []keys.Key) ([]keys.Key, error) { return append(all, key), nil })
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(env.stdout).Encode(struct {
				Text string `json:"key"`
				keys.Key
			}{text, key})
		}
		fmt.Fprintf(env.stderr, "%s may %s. Keep it: only its hash is in %s.\n", key.ID, mayDo(&key), keysFile(&c))
		_, err = fmt.Fprintln(env.stdout, text)
		return err
	}
	return cmd
}

// parseBinding reads what a key is to be bound to.
func parseBinding(item, dimension, question string) (b keys.Binding, err error) {
	b.Item = item
	if dimension != "" {
		name, value, ok := strings.Cut(dimension, "=")
		if !ok || name == "" || value == "" {
			return b, fmt.Errorf("dimension: must be NAME=VALUE such as channel=ana, got %q", dimension)
		}
		b.Dimension, b.Value = name, value
	}
	if question == "" {
		return b, nil
	}
	u, err := url.Parse(question)
	if err != nil {
		return b, fmt.Errorf("question: %w", err)
	}
	path, ok := strings.CutPrefix(u.Path, "/v1/")
	if !ok {
		return b, fmt.Errorf("question: must be the URL of one, such as /v1/top?last=1h, got %q", question)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return b, fmt.Errorf("question: %w", err)
	}
	if err := queries.Check(path, values, time.Now()); err != nil {
		return b, fmt.Errorf("question: %w", err)
	}
	b.Question = u.Path
	if len(values) > 0 {
		b.Question += "?" + values.Encode()
	}
	return b, nil
}

// mayDo says in words what a key may do.
func mayDo(k *keys.Key) string {
	text := keys.Join(k.Scopes)
	if k.Bound() {
		text += " " + k.String()
	}
	return text
}

func newKeysList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys: what each is for and may do",
		Args:  withArgs(0, 0, "list takes no arguments"),
	}
	addSettings(cmd, "data", "keys")
	asJSON := cmd.Flags().Bool("json", false, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		all, err := keys.Load(keysFile(&c))
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(env.stderr, "No key was made yet: everybody who reaches the server may read and write.\n")
			err = nil
		}
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(env.stdout).Encode(append([]keys.Key{}, all...))
		}
		table := tabwriter.NewWriter(env.stdout, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "id\tname\tmay\tcreated\trevoked")
		for i := range all {
			k, revoked := &all[i], ""
			if k.Revoked != nil {
				revoked = k.Revoked.Format(time.RFC3339)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, mayDo(k), k.Created.Format(time.RFC3339), revoked)
		}
		return table.Flush()
	}
	return cmd
}

func newKeysRevoke(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID...",
		Short: "Revoke keys: they are worth nothing any more",
		Args:  withArgs(1, -1, "the ID of a key, as `tidemark keys list` has it,"),
	}
	addSettings(cmd, "data", "keys")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		file := keysFile(&c)
		if _, err := keys.Load(file); err != nil { // Edit would make one
			return fmt.Errorf("no key can be revoked: %w", err)
		}
		now := time.Now().UTC().Truncate(time.Second)
		return keys.Edit(file, func(all []keys.Key) ([]keys.Key, error) {
			for _, id := range args {
				i := slices.IndexFunc(all, func(k keys.Key) bool { return k.ID == id })
				if i < 0 {
					return nil, fmt.Errorf("there is no key %q in %s: `tidemark keys list` has those that there are", id, file)
				}
				if all[i].Revoked == nil {
					all[i].Revoked = &now
				}
			}
			return all, nil
		})
	}
	return cmd
}
