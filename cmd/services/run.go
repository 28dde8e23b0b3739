package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// endedError is how the command of `run` failed; it has said why itself.
type endedError struct{ status int }

func (e *endedError) Error() string { return fmt.Sprintf("ended with status %d", e.status) }

// run is up, a command or the wait for the end of standard input, and down.
func run(ctx context.Context, dir string, chosen []*service, own []string, show printer, stderr io.Writer) (err error) {
	// Services end when the thread ends that started them, so that none is left of a
	// run that was killed. This one lasts as long as the program.
	runtime.LockOSThread()
	if dir == "" {
		if dir, err = os.MkdirTemp("", "tidemark-services-"); err != nil {
			return err
		}
	}
	var r report
	defer func() {
		// Also when up has failed half-way, and after a signal.
		down := inInstance(context.WithoutCancel(ctx), dir, "down", (*instance).down)
		if down == nil && r.Dir == "" {
			os.Remove(dir) //nolint:errcheck // there may be other things in it
		}
		err = errors.Join(err, down)
	}()
	if err := inInstance(ctx, dir, "run", func(i *instance) error {
		i.progress, i.attached = stderr, true
		if err := i.up(ctx, chosen); err != nil {
			return err
		}
		r = i.status()
		return nil
	}); err != nil {
		return err
	}
	if own != nil {
		return runCommand(ctx, own, r)
	}
	if err := show.print(r); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // whatever ends it, it has ended
		close(ended)
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	}
	return nil
}

// runCommand runs the command with the addresses in its environment. A signal to
// this program is passed on, and the command may take its time to end.
func runCommand(ctx context.Context, own []string, r report) error {
	cmd := exec.CommandContext(ctx, own[0], own[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	cmd.Env = os.Environ()
	for _, s := range r.Services {
		cmd.Env = append(cmd.Env, s.Env+"="+s.Address)
	}
	if self, err := os.Executable(); err == nil {
		cmd.Env = append(cmd.Env, "TIDEMARK_TEST_SERVICES="+self)
	}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &endedError{max(exit.ExitCode(), exitFailed)}
	}
	return err
}
