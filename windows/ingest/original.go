package ingest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Original is a record of a file as it was written there, to be sent elsewhere: with
// its names instead of their hashes. What nobody keeps of an event, such as addresses,
// is left out, and so are properties that are not declared. It is valid until the next
// one is read.
type Original struct {
	File   int   // which of the files
	Number int64 // in its file, from 1
	Reason string

	Time    int64 // Unix ms
	HasTime bool  // else the event says nothing of when it was
	ID      []byte

	record     *record
	dimensions []string
}

// errEnough ends a reading whose reader has had enough.
var errEnough = errors.New("enough")

// Originals reads the files from the beginning and yields their records in order. An
// error, of reading a file, is the last. It tells progress unless that is nil.
func (f *Files) Originals(ctx context.Context, progress func(Progress)) iter.Seq2[*Original, error] {
	return func(yield func(*Original, error) bool) {
		r := f.reading(RunConfig{Progress: progress})
		for i, in := range f.inputs {
			o := &Original{File: i, dimensions: f.cfg.Dimensions}
			err := r.file(in, func() error {
				return r.originals(ctx, in.path, o, func() error {
					if !yield(o, nil) {
						return errEnough
					}
					return nil
				})
			})
			if errors.Is(err, errEnough) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("%s: %w", in.Name, err))
				return
			}
		}
	}
}

// originals reads the present file into o, record by record.
func (r *reading) originals(ctx context.Context, name string, o *Original, each func() error) error {
	f, err := r.begin(ctx, byName(name))
	if err != nil {
		return err
	}
	emit := func(p piece) error {
		o.Number++
		r.number++
		o.take(&r.decoder.record, p)
		r.chunk.arena = r.chunk.arena[:0]
		return each()
	}
	for {
		p := r.next(f)
		r.chunk.pos = p.next
		var err error
		switch p.found {
		case aRecord, aFault:
			err = emit(p)
		case more:
			if r.ended() {
				if r.damage != "" {
					return emit(piece{found: aFault, reason: r.damage})
				}
				return nil
			}
			err = r.fill(ctx)
		default:
		}
		if err != nil {
			return err
		}
	}
}

// take makes o the record that was found.
func (o *Original) take(r *record, p piece) {
	if p.found == aFault {
		r.reset()
		r.fail(p.reason)
	}
	o.record, o.Reason = r, r.reason
	o.Time, o.HasTime, o.ID = r.time, r.hasTime, r.id
}

// AppendJSON appends the event, which must be one, as a line of JSON, with this ID, and
// if hasTime with this time, Unix ms.
func (o *Original) AppendJSON(b, id []byte, time int64, hasTime bool) []byte {
	r := o.record
	b = appendMember(append(b, '{'), "item", r.item)
	b = appendMember(b, "type", r.typ)
	b = appendMember(b, "user", r.user)
	b = appendMember(b, "id", id)
	b = appendMember(b, "owner", r.owner)
	b = appendMember(b, "title", r.info.Title)
	b = appendMember(b, "url", r.info.URL)
	b = appendMember(b, "image", r.info.Image)
	if r.hasDims {
		for i, v := range r.dims {
			b = appendMember(b, o.dimensions[i], v)
		}
	}
	if hasTime {
		b = strconv.AppendInt(append(b, `,"time":`...), time, 10)
	}
	if len(r.bot) > 0 {
		b = strconv.AppendBool(append(b, `,"bot":`...), isTrue(r.bot))
	}
	if len(r.watched) > 0 {
		b = strconv.AppendFloat(append(b, `,"watched_ms":`...), watchedMillis(r.watched), 'g', -1, 64)
	}
	return append(b, '}', '\n')
}

// appendMember appends a member of an object, unless it is empty.
func appendMember(b []byte, name string, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	// Neither fails: what is not UTF-8 is no event.
	b, _ = jsontext.AppendQuote(b, name)
	b, _ = jsontext.AppendQuote(append(b, ':'), v)
	return b
}
