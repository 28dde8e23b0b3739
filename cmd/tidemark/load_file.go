package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"strconv"
	"time"

	"tidemark/queries"
	"tidemark/windows/ingest"
)

// history is the events of a file, to be sent as if they happened now: the first at
// the start, and what lay between two of them speed times shorter. It is a
// traffic.Source.
type history struct {
	files *ingest.Files
	next  func() (*ingest.Original, error, bool)
	stop  func()

	start time.Time
	run   string // before each event ID: another run is other events
	speed float64

	first     int64     // time of the first event, Unix ms
	begun     bool      // it is known
	last      time.Time // when the last one was due
	malformed int64     // records that are no events, and were not sent
	id        []byte
}

// openHistory opens the file that c names. Close it.
func openHistory(ctx context.Context, c *Config, stdin io.Reader, dimensions []string) (*history, error) {
	files, err := ingest.OpenFiles(ctx, ingest.FilesConfig{
		Paths: []string{c.Load.File}, Stdin: stdin, SpoolDir: os.TempDir(), Partitions: 1, Type: "view", Dimensions: dimensions,
	})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	h := &history{files: files, start: now, last: now, run: runName(now), speed: c.Load.Speed}
	h.next, h.stop = iter.Pull2(files.Originals(ctx, nil))
	return h, nil
}

func (h *history) close() error {
	h.stop()
	return h.files.Close()
}

// Next implements traffic.Source. An event that does not say when it was happens with
// the one before it.
func (h *history) Next(b []byte) (line []byte, due time.Time, ok bool, err error) {
	o, err := h.event()
	if o == nil || err != nil {
		return b, due, false, err
	}
	if o.HasTime {
		if !h.begun {
			h.first, h.begun = o.Time, true
		}
		h.last = h.start.Add(time.Duration(float64(o.Time-h.first) / h.speed * float64(time.Millisecond)))
	}
	h.id = append(append(h.id[:0], h.run...), '-')
	if len(o.ID) > 0 {
		h.id = append(h.id, o.ID...)
	} else {
		h.id = strconv.AppendInt(append(h.id, "line-"...), o.Number, 10)
	}
	if len(h.id) > ingest.MaxID {
		sum := sha256.Sum256(h.id)
		h.id = hex.AppendEncode(h.id[:0], sum[:])
	}
	return o.AppendJSON(b, h.id, h.last.UnixMilli(), true), h.last, true, nil
}

// event returns the next record that is an event; nil: there is none.
func (h *history) event() (*ingest.Original, error) {
	for {
		o, err, ok := h.next()
		switch {
		case !ok:
			return nil, nil
		case err != nil:
			return nil, err
		case o.Reason == "":
			return o, nil
		}
		h.malformed++
	}
}

// dimensionsOf returns the properties of events that a server breaks numbers down by.
func dimensionsOf(ctx context.Context, c *Config) ([]string, error) {
	if c.Given("dimensions") {
		return c.Dimensions, nil
	}
	body, err := askServer(ctx, c, nil, "status", url.Values{})
	if err != nil {
		return nil, fmt.Errorf("which properties of events the server keeps can't be asked; name them with --dimensions: %w", err)
	}
	var status queries.StatusAnswer
	if err := json.Unmarshal(body, &status); err != nil {
		return nil, fmt.Errorf("%s: no status: %w", c.Server, err)
	}
	return status.Dimensions, nil
}
