// Package main is the program: one file a subcommand, the wiring of the parts in
// wire.go under its picture, and the settings in config.go.
//
// Invariants:
//
//	C1. Results go to standard output, everything else to standard error.
//	C2. The exit status is 0 when done, 1 when failed, 2 when wrongly called; a
//	    wrong call names every fault at once and has changed nothing.
//	C3. A setting is looked for as a flag, in the environment, in the file of
//	    --config, in the defaults; the first that has it wins.
//	C4. An interrupted import goes on by the same call.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// The exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(mainExit(environment{os.Stdin, os.Stdout, os.Stderr, os.Args[1:], os.Environ()}))
}

// mainExit is the program as a function: so that deferred calls run before the
// process ends, and tests can call it.
func mainExit(env environment) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for a clean end. From then on signals have their
	// default effect: a second one ends the process at once.
	context.AfterFunc(ctx, stop)

	err := newRoot(env).ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(env.stderr, "tidemark: %v\n", err)
	if usage, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(env.stderr, "See `%s --help`.\n", usage.command)
		return exitUsage
	}
	return exitFailed
}
