package store

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// logger takes what Pebble says. Its chatter goes to debug; what Pebble can't go
// on after ends all writing.
type logger struct {
	log *slog.Logger

	hang  sync.Once
	stuck chan struct{} // closed once a goroutine was left inside of Pebble, with its locks

	once   sync.Once
	failed chan struct{} // closed once writing is over
	err    error         // why; set before failed is closed
}

func newLogger(log *slog.Logger) *logger {
	return &logger{log: log, failed: make(chan struct{}), stuck: make(chan struct{})}
}

// Infof takes a message of no consequence.
func (l *logger) Infof(format string, args ...any) {
	l.log.Debug("pebble", "message", fmt.Sprintf(format, args...))
}

// Errorf takes a message about something that went wrong, and is handled.
func (l *logger) Errorf(format string, args ...any) {
	l.log.Warn("pebble reports a problem", "message", fmt.Sprintf(format, args...))
}

// Fatalf must not return, says Pebble: the goroutine holds its locks, in a state
// that is not to be relied on. It is left where it stands; everybody who writes
// gets the error, and the process is expected to end with it.
func (l *logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...) //nolint:err113 // Pebble's own text
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err = cause
		}
	}
	l.leave(err)
	select {}
}

// backgroundError takes the error of a flush or a compaction, which Pebble tries
// again for ever. Writers would hang once memory is full, so on those that won't
// pass by themselves writing ends.
func (l *logger) backgroundError(err error) {
	if errors.Is(err, syscall.ENOSPC) || pebble.IsCorruptionError(err) {
		l.fail(err)
		return
	}
	l.log.Warn("writing in the background failed and is tried again", "err", err)
}

// corruption takes the news that a file is damaged. Whoever reads there gets an
// error; that it is also told to the log lets the operator know which file.
func (l *logger) corruption(info pebble.DataCorruptionInfo) {
	l.log.Error("a file of the store is damaged: bring it back from a backup, or import again into a new folder", "file", info.Path, "err", info.Details)
}

func (l *logger) fail(err error) {
	l.once.Do(func() {
		switch {
		case errors.Is(err, syscall.ENOSPC):
			err = fmt.Errorf("%w: the disk is full: free some space, and start again: nothing that was taken is lost: %w", ErrBroken, err)
		case pebble.IsCorruptionError(err):
			err = fmt.Errorf("%w: %w: %w", ErrBroken, ErrDamaged, err)
		default:
			err = fmt.Errorf("%w: %w", ErrBroken, err)
		}
		l.err = err
		close(l.failed)
	})
}

// failure returns why nothing more can be written, or nil.
func (l *logger) failure() error {
	select {
	case <-l.failed:
		return l.err
	default:
		return nil
	}
}

// leave notes that a goroutine is left inside of Pebble.
func (l *logger) leave(err error) {
	l.fail(err)
	l.hang.Do(func() { close(l.stuck) })
}

// isStuck reports whether Pebble can't even be closed.
func (l *logger) isStuck() bool {
	select {
	case <-l.stuck:
		return true
	default:
		return false
	}
}

// guard calls f, which writes by Pebble, and returns its error, or why writing
// has ended: then f may never return.
func (l *logger) guard(f func() error) error {
	if err := l.failure(); err != nil {
		return err
	}
	return l.await(f, l.failed)
}

// await calls f and returns its error, or where the channel is closed before, why
// writing has ended.
func (l *logger) await(f func() error, ended <-chan struct{}) error {
	done := make(chan error, 1)
	go func() {
		// Pebble panics with the error where its log can't be written.
		defer func() {
			switch r := recover().(type) {
			case nil:
			case runtime.Error:
				panic(r)
			case error:
				l.leave(r)
			default:
				panic(r)
			}
		}()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-ended:
		return l.failure()
	}
}
