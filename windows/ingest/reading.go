package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// reading is one run over the files of an import.
type reading struct {
	RunConfig
	decoder *decoder
	pool    *pool
	chunk   *chunk // being filled; nil before the first file
	number  int64  // of the next record
	before  int64  // bytes of the files read to their end
	total   int64  // bytes of all files
	dropped int64

	// Of the present file.
	src    *source
	eof    bool   // it ends with what is in the chunk
	damage string // reason why no more of it can be read; "" as long as it can
}

func (f *Files) reading(cfg RunConfig) *reading {
	r := &reading{RunConfig: cfg, decoder: newDecoder(&f.cfg), pool: newPool(f.cfg.Partitions)}
	r.decoder.stamp = cfg.Stamp
	for _, in := range f.inputs {
		r.total += in.Size
	}
	return r
}

// file opens a file and calls read.
func (r *reading) file(in *input, read func() error) error {
	raw, done, err := in.open()
	if err != nil {
		return err
	}
	if r.src, err = newSource(raw, maxWindow); err != nil {
		return errors.Join(err, done())
	}
	err = read()
	r.src.close()
	r.before += in.Size
	return errors.Join(err, done())
}

// begin reads the beginning of the present file, and tells its format.
func (r *reading) begin(ctx context.Context, tell teller) (format, error) {
	if err := r.rotate(ctx, false); err != nil {
		return nil, err
	}
	r.eof, r.damage = false, ""
	for r.chunk.end < sniffBytes && !r.ended() {
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
	}
	head := r.chunk.buf[:min(r.chunk.end, sniffBytes)]
	f, pos, err := tell(head, r.eof && len(head) < sniffBytes, r.decoder.names)
	r.chunk.pos = pos
	return f, err
}

// records reads the records of the present file.
func (r *reading) records(ctx context.Context, name string) error {
	f, err := r.begin(ctx, byName(name))
	if err != nil {
		return err
	}
	for {
		p := r.next(f)
		r.chunk.pos = p.next
		switch p.found {
		case aRecord, aFault:
			r.take(p)
		case more:
			if r.ended() {
				if r.damage != "" {
					r.take(piece{found: aFault, reason: r.damage})
				}
				return nil
			}
			if err := r.fill(ctx); err != nil {
				return err
			}
		default:
		}
		if r.chunk.records >= r.pool.events {
			if err := r.rotate(ctx, true); err != nil {
				return err
			}
		}
	}
}

// ended reports whether all that can be read of the file was read. Where it is
// damaged, what comes after its last complete record is part of the damage.
func (r *reading) ended() bool { return r.eof || r.damage != "" }

// next looks for the next record, and reads it if it is wanted.
func (r *reading) next(f format) piece {
	c, d := r.chunk, r.decoder
	d.record.arena = c.arena
	p := f.next(d, c.buf, c.pos, c.end, r.eof, r.number >= r.From)
	c.arena = d.record.arena
	return p
}

// take numbers the record that was found, and emits it if it is wanted.
func (r *reading) take(p piece) {
	d := r.decoder
	if p.found == aFault {
		d.record.reset()
		d.record.fail(p.reason)
	}
	if r.number >= r.From {
		d.emit(r.chunk, r.number)
		r.dropped += int64(d.record.dropped)
	}
	r.number++
}

// fill reads more of the file into the chunk.
func (r *reading) fill(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := r.room(ctx); err != nil {
		return err
	}
	c := r.chunk
	n, err := r.src.Read(c.buf[c.end : len(c.buf)-slack])
	c.end += n
	c.buf[c.end] = 0
	switch {
	case err == nil:
	case r.src.raw.err != nil:
		return r.src.raw.err
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("it takes too much memory to inflate: %w", err)
	case err == io.EOF: //nolint:errorlint // a reader returns io.EOF itself
		r.eof = true
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.damage = reasonFileCut
	default:
		r.damage = reasonFileDamaged
	}
	return nil
}

// room makes some in the chunk. Where events point into it, that takes another.
func (r *reading) room(ctx context.Context) error {
	c := r.chunk
	switch {
	case c.end+slack < len(c.buf):
	case c.records > 0:
		return r.rotate(ctx, true)
	case c.pos > 0:
		c.end = copy(c.buf, c.buf[c.pos:c.end])
		c.pos = 0
		r.progress()
	default:
		c.grow()
	}
	return nil
}

// rotate hands out the chunk and takes another. If the file goes on, so does what
// was not used of it.
func (r *reading) rotate(ctx context.Context, goesOn bool) (err error) {
	old := r.chunk
	if old != nil {
		old.refs.Add(1)
		defer old.release()
		if err := old.handOut(ctx, r.Submit); err != nil {
			return err
		}
		r.progress()
	}
	if r.chunk, err = r.pool.get(ctx); err != nil || !goesOn {
		return err
	}
	c := r.chunk
	for len(c.buf) < old.end-old.pos+slack {
		c.grow()
	}
	c.end = copy(c.buf, old.buf[old.pos:old.end])
	c.buf[c.end] = 0
	return nil
}

// finish hands out the last chunk.
func (r *reading) finish(ctx context.Context) error {
	r.src = nil
	r.progress()
	if r.chunk == nil {
		return nil
	}
	return r.chunk.handOut(ctx, r.Submit)
}

func (r *reading) progress() {
	if r.Progress == nil {
		return
	}
	p := Progress{Records: r.number, Read: r.before, Bytes: r.total, Dropped: r.dropped}
	if r.src != nil {
		p.Read += r.src.raw.read.Load()
	}
	r.Progress(p)
}
