package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tidemark/sketches"
	"tidemark/windows"
)

// FilesConfig is what an import of files needs to know.
type FilesConfig struct {
	Paths      []string  // in the order in which their records are numbered; "-" is Stdin
	Stdin      io.Reader // read if Paths has "-", which may stand there once
	SpoolDir   string    // an existing folder; what can't be read twice is copied there
	Partitions int       // at least 1
	Hasher     sketches.Hasher
	Type       string   // of events without one: the first of the view types
	Dimensions []string // declared, in the order of Event.Dims
	Again      bool     // a file may be named, and is counted, more than once
}

// Validate returns all that is wrong with the configuration.
func (cfg *FilesConfig) Validate() error {
	var errs []error
	if len(cfg.Paths) == 0 {
		errs = append(errs, errors.New("files: none given"))
	}
	if cfg.Partitions < 1 {
		errs = append(errs, fmt.Errorf("partitions: must be at least 1, got %d", cfg.Partitions))
	}
	if n := len(cfg.Type); n < 1 || n > MaxType {
		errs = append(errs, fmt.Errorf("type: must have 1 to %d bytes, got %q", MaxType, cfg.Type))
	}
	return errors.Join(append(errs, CheckDimensions(cfg.Dimensions))...)
}

// CheckDimensions returns an error that names each dimension that can't be
// declared, since an event has a field of that name, or that stands twice.
func CheckDimensions(dimensions []string) error {
	var errs []error
	names := fieldNames(nil)
	names["ts_ms"], names["event_id"] = names["time"], names["id"]
	for _, name := range dimensions {
		switch {
		case name == "":
			errs = append(errs, errors.New("dimensions: one has no name"))
		case names[name] == ignoredField:
			errs = append(errs, fmt.Errorf("dimensions: %q stands twice", name))
		case names[name] != nil:
			errs = append(errs, fmt.Errorf("dimensions: %q is a field of events already", name))
		}
		names[name] = ignoredField
	}
	return errors.Join(errs...)
}

// Files is history from files: one log, whose records are those of all files,
// numbered from 0 in the order of the files. Not safe for concurrent use.
type Files struct {
	cfg    FilesConfig
	inputs []*input
}

// OpenFiles reads all files once, to name the log by what they hold, and refuses
// what can't be imported: a file that is neither JSON nor CSV with a column item,
// or the same content twice. Close the result.
func OpenFiles(ctx context.Context, cfg FilesConfig) (*Files, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Files{cfg: cfg}
	for _, path := range cfg.Paths {
		if err := f.open(ctx, path); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

func (f *Files) open(ctx context.Context, path string) error {
	in, err := openInput(ctx, path, f.cfg.Stdin, f.cfg.SpoolDir)
	if err != nil {
		return err
	}
	for _, other := range f.inputs {
		if other.Content == in.Content && !f.cfg.Again {
			return errors.Join(fmt.Errorf("%s: the same content as %s", in.Name, other.Name), in.close())
		}
	}
	f.inputs = append(f.inputs, in)
	if err := f.tryFormat(ctx, in); err != nil {
		return fmt.Errorf("%s: %w", in.Name, err)
	}
	return nil
}

// tryFormat returns an error if the format of the file can't be told.
func (f *Files) tryFormat(ctx context.Context, in *input) error {
	r := f.reading(RunConfig{})
	return r.file(in, func() error {
		_, err := r.begin(ctx, byName(in.path))
		return err
	})
}

// Sources returns the files, in the order given.
func (f *Files) Sources() []Source {
	sources := make([]Source, len(f.inputs))
	for i, in := range f.inputs {
		sources[i] = in.Source
	}
	return sources
}

// Log returns the name of the log that the files are: a function of their contents
// and order. again is how many imports of the same log are to stand beside this
// one: 0 for the first.
func (f *Files) Log(again uint64) windows.LogID { return logID(f.Sources(), again) }

// Close gives up copies of what could not be read twice.
func (f *Files) Close() error {
	var errs []error
	for _, in := range f.inputs {
		errs = append(errs, in.close())
	}
	return errors.Join(errs...)
}

// Progress is how far an import has got.
type Progress struct {
	Records     int64 // read so far, those before RunConfig.From included
	Read, Bytes int64 // of the files' bytes as stored: read so far, and all
	Dropped     int64 // titles, urls and images left out so far, since they are too long
}

// RunConfig is what one reading of the files needs to know.
type RunConfig struct {
	From     int64 // number of the first record wanted
	Stamp    int64 // every record's own timestamp, Unix ms: the start of the import
	Submit   Submit
	Progress func(Progress) // called every thousand records or so, and at the end; nil: never
}

// Run reads the files from the beginning and submits the records from number
// From on, each to its partition, until the end of the log, an error, or the end
// of ctx. It returns the number of records in the log.
//
// An error is one of reading a file or of Submit; what is wrong with a record, or
// with compressed data, is a malformed record.
func (f *Files) Run(ctx context.Context, cfg RunConfig) (records int64, err error) {
	r := f.reading(cfg)
	for _, in := range f.inputs {
		if err := r.file(in, func() error { return r.records(ctx, in.path) }); err != nil {
			return 0, fmt.Errorf("%s: %w", in.Name, err)
		}
	}
	return r.number, r.finish(ctx)
}
