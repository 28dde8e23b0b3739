package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// environment is what a command has from outside, so that tests can give it.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	args           []string // without the program's name
	environ        []string // NAME=VALUE
}

// logger returns a logger to standard error.
func (env environment) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(env.stderr, &slog.HandlerOptions{Level: level}))
}

// usageError is a call that is wrong in itself, whatever the data.
type usageError struct {
	command string // as typed: "tidemark replay"
	err     error
}

// Error lists the faults, one a line where there are several.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the fault, or what joins them.
func (e *usageError) Unwrap() error { return e.err }

// wrongUsage makes err the fault of how cmd was called.
func wrongUsage(cmd *cobra.Command, err error) error {
	return &usageError{command: cmd.CommandPath(), err: err}
}

// newRoot returns the command line.
func newRoot(env environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "tidemark",
		Short: "Trending and unique viewers, exact where it is cheap, with bounds on every number",
		// Errors are printed by mainExit, once.
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			err := fmt.Errorf("unknown command %q", args[0])
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
			}
			return wrongUsage(cmd, err)
		},
	}
	root.SetArgs(env.args)
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetFlagErrorFunc(flagFaults(env.args))
	root.PersistentFlags().String("config", "", "read settings from this YAML file")
	root.AddCommand(newReplay(env), newServe(env), newRecount(env), newLoad(env), newDemo(env))
	root.AddCommand(newAsks(env)...)
	root.AddCommand(
		newBackup(env),
		newKeys(env),
		newConfig(env),
		newVersion(env),
	)
	return root
}

// flagFaults makes pflag's error one that says what would have been right. pflag
// stops at the first flag it does not know; the others are found by their look.
func flagFaults(args []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		unknown, ok := errors.AsType[*pflag.NotExistError](err)
		if !ok || unknown.GetSpecifiedShortnames() != "" {
			return wrongUsage(cmd, err)
		}
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		var faults []error
		for _, arg := range args {
			if arg == "--" {
				break
			}
			flag, _, _ := strings.Cut(arg, "=")
			if strings.HasPrefix(flag, "--") && !slices.Contains(known, flag) {
				faults = append(faults, fmt.Errorf("unknown flag %s%s", flag, didYouMean(flag, known)))
			}
		}
		return wrongUsage(cmd, errors.Join(faults...))
	}
}

// withArgs checks how many arguments a command got; max < 0 is any number.
func withArgs(minimum, maximum int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < minimum:
			return wrongUsage(cmd, fmt.Errorf("%s missing", what))
		case maximum >= 0 && len(args) > maximum:
			return wrongUsage(cmd, fmt.Errorf("%q: not expected; %s", args[maximum], what))
		}
		return nil
	}
}
