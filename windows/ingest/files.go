package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

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
	if err := in.check(fieldNames(f.cfg.Dimensions)); err != nil {
		return fmt.Errorf("%s: %w", in.Name, err)
	}
	return nil
}

// check returns an error if the format of the file can't be told.
func (in *input) check(names map[string]*field) error {
	r, done, err := in.open()
	if err != nil {
		return err
	}
	src, err := newSource(r)
	if err != nil {
		return errors.Join(err, done())
	}
	err = in.detect(src, names)
	src.close()
	return errors.Join(err, done())
}

func (in *input) detect(src *source, names map[string]*field) error {
	b, err := make([]byte, 0, sniffBytes), error(nil)
	for len(b) < sniffBytes && err == nil {
		var n int
		n, err = src.Read(b[len(b):sniffBytes])
		b = b[:len(b)+n]
	}
	damage, fatal := src.ended(err)
	if fatal != nil {
		return fatal
	}
	_, _, err = detect(in.path, b, err != nil && damage == "" && len(b) < sniffBytes, names)
	return err
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
	r := &reading{RunConfig: cfg, decoder: newDecoder(&f.cfg), pool: newPool(f.cfg.Partitions)}
	r.decoder.stamp = cfg.Stamp
	for _, in := range f.inputs {
		r.total += in.Size
	}
	if r.chunk, err = r.pool.get(ctx); err != nil {
		return 0, err
	}
	for _, in := range f.inputs {
		if err := r.file(ctx, in); err != nil {
			return 0, fmt.Errorf("%s: %w", in.Name, err)
		}
	}
	r.progress(0)
	return r.number, r.chunk.handOut(ctx, cfg.Submit)
}

// reading is one run over the files.
type reading struct {
	RunConfig
	decoder *decoder
	pool    *pool
	chunk   *chunk // being filled
	number  int64  // of the next record
	before  int64  // bytes of the files read to their end
	total   int64  // bytes of all files
	dropped int64
}

// file reads one file to its end.
func (r *reading) file(ctx context.Context, in *input) error {
	raw, done, err := in.open()
	if err != nil {
		return err
	}
	src, err := newSource(raw)
	if err != nil {
		return errors.Join(err, done())
	}
	err = r.records(ctx, in, src)
	src.close()
	r.before += in.Size
	return errors.Join(err, done())
}

// records reads the records of a file.
func (r *reading) records(ctx context.Context, in *input, src *source) error {
	if err := r.rotate(ctx, src, false); err != nil {
		return err
	}
	var (
		format format
		eof    bool   // the file ends with what is in the chunk
		damage string // reason why no more of it can be read
		err    error
	)
	for {
		c := r.chunk
		p := piece{found: more, next: c.pos}
		if format != nil {
			r.decoder.arena = c.arena
			p = format.next(r.decoder, c.buf, c.pos, c.end, eof, r.number >= r.From)
			c.arena = r.decoder.arena
		} else if c.end >= sniffBytes || eof || damage != "" {
			head := c.buf[:min(c.end, sniffBytes)]
			if format, c.pos, err = detect(in.path, head, eof && len(head) < sniffBytes, r.decoder.names); err != nil {
				return err
			}
			continue
		}
		switch p.found {
		case aRecord, aFault:
			r.take(p)
		case nothing:
		case more:
			c.pos = p.next
			if damage != "" {
				r.take(piece{found: aFault, reason: damage})
			}
			if eof || damage != "" {
				return nil
			}
			if eof, damage, err = r.fill(ctx, src); err != nil {
				return err
			}
			continue
		}
		c.pos = p.next
		if c.records >= chunkEvents {
			if err := r.rotate(ctx, src, true); err != nil {
				return err
			}
		}
	}
}

// take numbers the record that was found, and emits it if it is wanted.
func (r *reading) take(p piece) {
	if p.found == aFault {
		r.decoder.record.reset()
		r.decoder.record.fail(p.reason)
	}
	if r.number >= r.From {
		r.decoder.emit(r.chunk, r.number)
		r.dropped += int64(r.decoder.record.dropped)
	}
	r.number++
}

// fill reads more of the file into the chunk.
func (r *reading) fill(ctx context.Context, src *source) (eof bool, damage string, err error) {
	c := r.chunk
	if c.end+slack == len(c.buf) {
		switch {
		case c.records > 0:
			err = r.rotate(ctx, src, true)
			c = r.chunk
		case c.pos > 0:
			c.end = copy(c.buf, c.buf[c.pos:c.end])
			c.buf[c.end] = 0
			c.pos = 0
		default:
			c.grow()
		}
		if err != nil {
			return false, "", err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return false, "", err
	}
	n, err := src.Read(c.buf[c.end : len(c.buf)-slack])
	c.end += n
	c.buf[c.end] = 0
	if err == nil {
		return false, "", nil
	}
	if damage, err = src.ended(err); err != nil || damage != "" {
		return false, damage, err
	}
	return true, "", nil
}

// ended tells why there is no more to read: damage is a reason if compressed data
// are not what they should be; fatal is an error that is not the data's fault.
func (s *source) ended(err error) (damage string, fatal error) {
	switch {
	case s.raw.err != nil:
		return "", s.raw.err
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return "", fmt.Errorf("%w: needs a window of more than %d MiB to be inflated", err, maxWindow>>20)
	case err == nil || err == io.EOF: //nolint:errorlint // a reader returns io.EOF itself
		return "", nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return reasonFileCut, nil
	}
	return reasonFileDamaged, nil
}

// rotate hands out the chunk and takes another. If the file goes on, so does what
// was not used of it.
func (r *reading) rotate(ctx context.Context, src *source, goesOn bool) error {
	old := r.chunk
	old.refs.Add(1)
	defer old.release()
	if err := old.handOut(ctx, r.Submit); err != nil {
		return err
	}
	r.progress(src.raw.read.Load())
	c, err := r.pool.get(ctx)
	if err != nil {
		return err
	}
	if goesOn {
		for len(c.buf) < old.end-old.pos+slack {
			c.grow()
		}
		c.end = copy(c.buf, old.buf[old.pos:old.end])
		c.buf[c.end] = 0
	}
	r.chunk = c
	return nil
}

// progress reports how far the present file was read.
func (r *reading) progress(read int64) {
	if r.Progress != nil {
		r.Progress(Progress{Records: r.number, Read: r.before + read, Bytes: r.total, Dropped: r.dropped})
	}
}

// grow makes room for a longer record.
func (c *chunk) grow() {
	buf := make([]byte, 2*(len(c.buf)-slack)+slack)
	copy(buf, c.buf[:c.end])
	c.buf = buf
}
