package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// holder says which process has a data folder open, for whoever finds it held. Every
// command writes it once it has the store's lock, so it is that of the last who got
// the lock; it stays when that one has ended, and means nothing then.
type holder struct {
	Command string    `json:"command"`
	PID     int       `json:"pid"`
	URL     string    `json:"url,omitempty"` // of a server
	Since   time.Time `json:"since"`
}

// String says who it is.
func (h *holder) String() string {
	text := fmt.Sprintf("`%s`, process %d", h.Command, h.PID)
	if h.URL != "" {
		text += ", which serves " + h.URL
	}
	return text + ", since " + h.Since.Format(time.RFC3339)
}

func holderFile(c *Config) string { return filepath.Join(c.Data, "holder.json") }

// hold says that this process has the folder. Where it can't be written, others find
// the folder held all the same, and not by whom.
func hold(c *Config, logger *slog.Logger) {
	text, err := json.Marshal(holder{c.command, os.Getpid(), c.serving, time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		temporary := fmt.Sprintf("%s.%d", holderFile(c), os.Getpid())
		err = os.WriteFile(temporary, append(text, '\n'), 0o600)
		if err == nil {
			err = os.Rename(temporary, holderFile(c))
		}
		if err != nil {
			_ = os.Remove(temporary) // it may not be there
		}
	}
	if err != nil {
		logger.Debug("others cannot be told who holds the folder", "err", err)
	}
}

// holderOf returns who has got the folder last, nil if that is not known.
func holderOf(c *Config) *holder {
	text, err := os.ReadFile(holderFile(c))
	if err != nil {
		return nil
	}
	h := new(holder)
	if json.Unmarshal(text, h) != nil || h.PID == 0 {
		return nil
	}
	return h
}

// held says who holds the folder, where err is that somebody does.
func held(c *Config, err error) error {
	h := holderOf(c)
	if h == nil {
		return err
	}
	what := "stop that first"
	if h.URL != "" {
		what = "stop that first, or ask it with --server " + h.URL
	}
	return &heldError{fmt.Sprintf("%s is in use by %s: %s", c.Data, h, what), err}
}

// heldError says who holds a folder, in the place of what has found out that it is held.
type heldError struct {
	text  string
	cause error
}

func (e *heldError) Error() string { return e.text }

func (e *heldError) Unwrap() error { return e.cause }

// addressInUse says that another server has the address, and which where it is that of
// the folder.
func addressInUse(c *Config, err error) error {
	text := "another server may run there"
	if h := holderOf(c); h != nil && h.URL == "http://"+c.Listen && syscall.Kill(h.PID, 0) == nil {
		text = fmt.Sprintf("%s is served there by %s", c.Data, h)
	}
	return fmt.Errorf("%w: %s; name another address with --listen", err, text)
}
