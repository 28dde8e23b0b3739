package windowstest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/klauspost/compress/gzip"
)

// Event is one event as a file has it: names, no hashes.
type Event struct {
	Time int64  // Unix ms
	User string // empty: a view by nobody
	Item string
	Type string
	ID   string // empty: nothing deduplicates it
	Bot  string // as the file has it: "", "0" or "1"
	Dims []string
}

// ReadFile reads the events of a file NAME.events.csv.gz in their order. It uses
// the standard CSV reader on purpose: not the decoder that is under test.
func ReadFile(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	events, err := Read(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return events, nil
}

// Read reads CSV with the header of the data sets. Other columns are dimensions,
// in their order.
func Read(r io.Reader) ([]Event, error) {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return nil, err
	}
	fields := make([]func(*Event) *string, len(header))
	timeColumn := -1
	for i, name := range header {
		switch name {
		case "ts_ms":
			timeColumn = i
		case "user":
			fields[i] = func(e *Event) *string { return &e.User }
		case "item":
			fields[i] = func(e *Event) *string { return &e.Item }
		case "type":
			fields[i] = func(e *Event) *string { return &e.Type }
		case "event_id":
			fields[i] = func(e *Event) *string { return &e.ID }
		case "bot":
			fields[i] = func(e *Event) *string { return &e.Bot }
		}
	}
	if timeColumn < 0 {
		return nil, fmt.Errorf("no column ts_ms in %q", header)
	}
	var events []Event
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		var e Event
		if e.Time, err = strconv.ParseInt(row[timeColumn], 10, 64); err != nil {
			return nil, err
		}
		for i, value := range row {
			switch {
			case i == timeColumn:
			case fields[i] != nil:
				*fields[i](&e) = value
			default:
				e.Dims = append(e.Dims, value)
			}
		}
		events = append(events, e)
	}
}
