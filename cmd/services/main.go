// Command services brings up the real services that Tidemark works with, for
// tests and trials, without an engine for containers: ClickHouse from the npm
// package that holds its library, Apache Kafka from its Maven artifacts. It is a
// module of its own, so that what it needs is nothing that the product needs.
//
// Invariants:
//
//	V1. What is fetched comes by npm and mvn with their user's own settings, once,
//	    into the user's cache folder, under its version. It is whole or absent.
//	V2. An instance is a folder (--dir); instances know nothing of one another.
//	V3. A service counts as started when it answers what a client would ask first.
//	V4. A service that was killed or stopped starts again on the same folder and
//	    the same ports.
//	V5. After `down`, and after `run` whatever became of its command, no process
//	    and no file of the instance is left; of a `run` that was itself killed, no
//	    process.
//
// It is for Linux, whose /proc and signals it uses.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const usage = `Real services for tests and trials.

  services up [NAME…]            start services that do not run, wait until they answer, print addresses
  services status                say what runs and where
  services stop NAME…            end services cleanly; data and ports are kept
  services kill NAME…            end services as a crash would (SIGKILL); data and ports are kept
  services start NAME…           start stopped or killed services on the same data and ports
  services down                  end all services and remove what they left
  services run [NAME…] -- CMD…   up, run CMD with the addresses in its environment, down
  services run [NAME…]           up, stay until standard input ends or a signal comes, down

NAME is clickhouse or kafka; none means both. CMD finds TIDEMARK_TEST_CLICKHOUSE
and TIDEMARK_TEST_KAFKA (HOST:PORT) and TIDEMARK_TEST_SERVICES (this program).

Flags, before the names:
  --dir DIR   the folder of the instance (up: one in the user's cache folder; run: a new one)
  --json      print JSON
`

// The exit statuses; `run` ends with that of its command.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// errUsage is wrapped by what a wrong call gets.
var errUsage = errors.New("see `services help`")

func main() { os.Exit(mainExit()) }

func mainExit() int {
	if len(os.Args) > 1 && os.Args[1] == launcherCommand {
		fmt.Fprintln(os.Stderr, launchClickHouse(os.Args[2:]))
		return exitFailed
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	status, err := call(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "services: %v\n", err)
	}
	return status
}

// call is one call of the program; it returns the exit status.
func call(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	if len(args) == 0 || slices.Contains([]string{"help", "--help", "-h"}, args[0]) {
		fmt.Fprint(stdout, usage)
		return exitDone, nil
	}
	err := command(ctx, args[0], args[1:], stdout, stderr)
	if ended, ok := errors.AsType[*endedError](err); ok {
		return ended.status, nil
	}
	switch {
	case errors.Is(err, errUsage):
		return exitUsage, err
	case err != nil:
		return exitFailed, err
	}
	return exitDone, nil
}

func command(ctx context.Context, name string, args []string, stdout, stderr io.Writer) error {
	var own []string // the command of run
	if i := slices.Index(args, "--"); i >= 0 && name == "run" {
		if own = args[i+1:]; len(own) == 0 {
			return fmt.Errorf("run: no command follows --; %w", errUsage)
		}
		args = args[:i]
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	dir := flags.String("dir", "", "")
	asJSON := flags.Bool("json", false, "")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%s: %w; %w", name, err, errUsage)
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return fmt.Errorf("%s: %w; %w", name, err, errUsage)
	}
	show := printer{stdout, *asJSON}
	if name == "run" {
		return run(ctx, *dir, chosen, own, show, stderr)
	}
	named := flags.NArg() > 0
	switch name {
	case "stop", "kill", "start":
		if !named {
			return fmt.Errorf("%s: name a service: %s; %w", name, strings.Join(names(), ", "), errUsage)
		}
	case "status", "down":
		if named {
			return fmt.Errorf("%s: takes no names; %w", name, errUsage)
		}
	case "up":
	default:
		return fmt.Errorf("unknown command %q; %w", name, errUsage)
	}
	if *dir == "" {
		if *dir, err = cacheFolder("run"); err != nil {
			return err
		}
	}
	return inInstance(ctx, *dir, name, func(i *instance) error {
		i.progress = stderr
		switch name {
		case "up":
			if err := i.up(ctx, chosen); err != nil {
				return err
			}
			return show.print(i.status())
		case "start":
			return i.start(ctx, chosen)
		case "stop":
			return i.end(chosen, syscall.SIGTERM)
		case "kill":
			return i.end(chosen, syscall.SIGKILL)
		case "down":
			return i.down()
		}
		return show.print(i.status())
	})
}

// cacheFolder is where this program keeps what it fetched, and by default its instance.
func cacheFolder(part string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder of the user (set XDG_CACHE_HOME or HOME): %w", err)
	}
	return filepath.Join(dir, "tidemark-services", part), nil
}

// choose returns the services of these names, in the order of the table: all of
// them for none.
func choose(wanted []string) ([]*service, error) {
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("unknown service %q: there are %s", name, strings.Join(names(), ", "))
		}
	}
	if len(wanted) == 0 {
		return services, nil
	}
	return slices.DeleteFunc(slices.Clone(services), func(s *service) bool { return !slices.Contains(wanted, s.name) }), nil
}
