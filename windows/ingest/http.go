package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"tidemark/sketches"
	"tidemark/windows/journal"
)

// Limits of a body.
const (
	MaxBody       = 16 << 20  // bytes as sent
	MaxUnpacked   = 128 << 20 // bytes once inflated
	MaxBodyEvents = 100_000
	MaxRejections = 100 // of a Receipt; the others are counted

	// bodyWindow is the largest window of zstd that is inflated of a body: RFC 9659.
	bodyWindow = 8 << 20
	// acceptBytes is how much bodies and what is read of them may take together,
	// until the journal has it.
	acceptBytes = 256 << 20
	// keptBytes is how much an acceptance keeps for the next one.
	keptBytes = 1 << 20
)

// Form is what a body says that it is.
type Form uint8

// The forms. JSON is one object, an array, or objects one after the other.
const (
	AnyForm Form = iota // its first byte tells
	JSON
	NDJSON
	CSV
)

// Body is events as they are sent, plain, gzip or zstd.
type Body struct {
	Reader io.Reader
	Size   int64 // as announced, bytes; -1 if it is not
	Form   Form
	// History lifts the limit on lateness: the events may be of any age. It is kept
	// with each, so that they are counted again as they were.
	History bool
	// Imported says of a batch of an import how far it is once this is durable: with it,
	// or not at all. It is kept with the first of the events.
	Imported Imported
}

// Receipt says what became of the records of a body.
type Receipt struct {
	Accepted, Rejected int
	Errors             []Rejection // the first MaxRejections
}

// Rejection is a record that is no event.
type Rejection struct {
	Line   int64 // of the body where it begins, from 1
	Reason string
}

var (
	// ErrBusy says that more comes in than can be made durable. Nothing of the body was taken.
	ErrBusy = errors.New("more events come in than can be made durable at present")
	// ErrLimit is of a body that is never taken, since it is too large.
	ErrLimit = errors.New("too large")
	// ErrUnreadable is of a body that could not be received or inflated.
	ErrUnreadable = errors.New("the body can't be read")
)

// Appender is a journal.Journal.
type Appender interface {
	Append(ctx context.Context, records []journal.Record) error
}

// AccepterConfig is what an Accepter needs to know.
type AccepterConfig struct {
	Journal    Appender
	Partitions int // of the journal
	Hasher     sketches.Hasher
	Type       string   // of events without one
	Dimensions []string // declared; no others are kept
}

// Accepter takes events in: each body becomes one group of the journal. Here is the
// edge of privacy: users, owners and event IDs are hashed, addresses and user agents
// are dropped, and nothing else of them goes on. It is safe for concurrent use.
type Accepter struct {
	cfg    AccepterConfig
	slots  chan *intake // as many bodies are taken apart at once
	groups sync.Pool    // of *group
	held   atomic.Int64 // bytes, of all groups
	turn   atomic.Uint64
}

// NewAccepter returns an accepter of events for a journal.
func NewAccepter(cfg AccepterConfig) *Accepter {
	n := 2 * runtime.GOMAXPROCS(0)
	a := &Accepter{cfg: cfg, slots: make(chan *intake, n)}
	for range n {
		d := newDecoder(&FilesConfig{Partitions: cfg.Partitions, Hasher: cfg.Hasher, Type: cfg.Type, Dimensions: cfg.Dimensions})
		a.slots <- &intake{reading: reading{decoder: d, pool: newPool(1)}, accepter: a}
	}
	return a
}

// Accept takes a body, and returns once its events are durable: all of them or, with
// an error, none. One that holds no event is not kept at all.
//
// The error wraps ErrBusy, ErrLimit, ErrUnreadable, or what Journal.Append returns.
// If that was journal.ErrUnavailable, or ctx ended, the body may have been taken, whole.
func (a *Accepter) Accept(ctx context.Context, body Body) (Receipt, error) {
	g, _ := a.groups.Get().(*group)
	if g == nil {
		g = &group{}
	}
	g.accepter, g.history, g.imported = a, body.History, body.Imported
	defer g.free()
	if err := g.hold(cap(g.body) + cap(g.out)); err != nil {
		return Receipt{}, err
	}
	if err := g.receive(body); err != nil {
		return Receipt{}, err
	}
	select {
	case in := <-a.slots:
		err := in.take(ctx, g, body.Form)
		a.slots <- in
		if err != nil {
			return Receipt{}, err
		}
	case <-ctx.Done():
		return Receipt{}, ctx.Err()
	}
	if g.receipt.Accepted == 0 {
		return g.receipt, nil
	}
	err := a.cfg.Journal.Append(ctx, g.finished())
	switch {
	case errors.Is(err, journal.ErrFull):
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	case errors.Is(err, journal.ErrTooLarge):
		err = fmt.Errorf("%w: %w", ErrLimit, err)
	}
	if err != nil {
		return Receipt{}, err
	}
	return g.receipt, nil
}

// group is a body on its way into the journal.
type group struct {
	accepter *Accepter
	held     int64
	history  bool
	imported Imported
	body     []byte // as received
	out      []byte // the records' payloads
	ends     []int  // of each, in out
	records  []journal.Record
	receipt  Receipt
}

// hold takes so many bytes of what all groups may take.
func (g *group) hold(bytes int) error {
	if g.accepter.held.Add(int64(bytes)) > acceptBytes {
		g.accepter.held.Add(-int64(bytes))
		return ErrBusy
	}
	g.held += int64(bytes)
	return nil
}

func (g *group) free() {
	a := g.accepter
	a.held.Add(-g.held)
	if cap(g.body)+cap(g.out) > keptBytes || cap(g.records) > MaxBodyEvents/10 {
		return
	}
	clear(g.records)
	*g = group{body: g.body[:0], out: g.out[:0], ends: g.ends[:0], records: g.records[:0]}
	a.groups.Put(g)
}

// grow makes room for more bytes behind those of b.
func (g *group) grow(b []byte, more int) ([]byte, error) {
	if cap(b)-len(b) >= more {
		return b, nil
	}
	size := max(2*cap(b), len(b)+more)
	if err := g.hold(size - cap(b)); err != nil {
		return b, err
	}
	return append(make([]byte, 0, size), b...), nil
}

// firstBytes is how much room a body of unknown size gets at first.
const firstRoom = 4 << 10

// receive reads the whole body. A client that is slow holds what it has sent, and
// none of the slots.
func (g *group) receive(body Body) error {
	room := int64(firstRoom)
	switch {
	case body.Size > MaxBody:
		return errBody
	case body.Size >= 0:
		room = min(body.Size+1, 64<<10) // and one to see the end
	}
	for {
		var err error
		if len(g.body) == cap(g.body) {
			if g.body, err = g.grow(g.body, int(room)); err != nil {
				return err
			}
		}
		n, err := body.Reader.Read(g.body[len(g.body):cap(g.body)])
		g.body = g.body[:len(g.body)+n]
		switch {
		case len(g.body) > MaxBody:
			return errBody
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
	}
}

var (
	errBody     = fmt.Errorf("%w: a body may have %d MiB as it is sent", ErrLimit, MaxBody>>20)
	errUnpacked = fmt.Errorf("%w: a body may have %d MiB unpacked", ErrLimit, MaxUnpacked>>20)
	errBlanks   = fmt.Errorf("%w: a body may have %d blank lines", ErrLimit, MaxBodyEvents)
	errEvents   = fmt.Errorf("%w: a body may have %d events", ErrLimit, MaxBodyEvents)
)

// finished returns the records. What they point into does not move any more.
func (g *group) finished() []journal.Record {
	from := 0
	for i, to := range g.ends {
		g.records[i].Payload = g.out[from:to:to]
		from = to
	}
	return g.records
}

// intake takes bodies apart: a reading whose records become payloads.
type intake struct {
	reading

	accepter *Accepter
	record   stored
	line     int64 // of where the reading is
}

// take reads all records of the group's body.
func (in *intake) take(ctx context.Context, g *group, form Form) (err error) {
	if in.src, err = newSource(bytes.NewReader(g.body), bodyWindow); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	defer in.src.close()
	unpacked := &limited{r: in.src.Reader, left: MaxUnpacked}
	in.src.Reader = unpacked
	err = in.records(ctx, g, form)
	if unpacked.left < 0 {
		return errUnpacked
	}
	return err
}

// limited reads until there is more than it may.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errUnpacked
	}
	return n, err
}

func (in *intake) records(ctx context.Context, g *group, form Form) error {
	var unreadable error // what the records are can't be told
	f, err := in.begin(ctx, func(b []byte, eof bool, names map[string]*field) (f format, pos int, err error) {
		f, pos, unreadable = byForm(form, b, eof, names)
		return f, pos, nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	case unreadable != nil:
		g.reject(1, unreadable.Error())
		return nil //nolint:nilerr // it is told to who sent the body
	}
	c := in.chunk
	in.line = 1 + lineEnds(c.buf[:c.pos])
	for blanks := 0; ; {
		from := c.pos
		p := in.next(f)
		switch p.found {
		case aRecord, aFault:
			if p.found == aFault {
				in.decoder.record.reset()
				in.decoder.record.fail(p.reason)
			}
			if err := in.emit(g, in.line+lineEnds(c.buf[from:skipWhite(c.buf[:p.next], from)])); err != nil {
				return err
			}
		case more:
			if in.ended() {
				if in.damage != "" {
					g.reject(in.line, in.damage)
				}
				return nil
			}
		default:
			if blanks++; blanks > MaxBodyEvents { // they pack well, and each takes time
				return errBlanks
			}
		}
		in.line += lineEnds(c.buf[from:p.next])
		c.pos, c.arena = p.next, c.arena[:0] // a payload is a copy
		if p.found == more {
			if err := in.fill(ctx); err != nil {
				return fmt.Errorf("%w: %w", ErrUnreadable, err)
			}
		}
	}
}

func lineEnds(b []byte) int64 { return int64(bytes.Count(b, []byte{'\n'})) }

// emit makes a payload of the record that was read at that line.
func (in *intake) emit(g *group, line int64) error {
	if len(g.ends) == MaxBodyEvents {
		return errEvents
	}
	r, s := &in.decoder.record, &in.record
	partition := -1
	if r.reason != "" {
		g.reject(line, r.reason)
		*s = stored{reason: []byte(r.reason)[:min(len(r.reason), MaxReason)], dims: s.dims[:0]}
	} else {
		g.receipt.Accepted++
		partition = in.anonymize(r)
		s.history = g.history
		if g.receipt.Accepted == 1 {
			s.imported = g.imported
		}
	}
	if partition < 0 {
		partition = int(in.accepter.turn.Add(1) % uint64(in.accepter.cfg.Partitions))
	}
	var err error
	if g.out, err = g.grow(g.out, s.size()); err != nil {
		return err
	}
	g.out = s.append(g.out)
	g.ends = append(g.ends, len(g.out))
	g.records = append(g.records, journal.Record{Partition: partition})
	return nil
}

// anonymize makes an event of the record that tells nobody who somebody is. It
// returns the event's partition, chosen as decoder.route does, or -1 for any.
func (in *intake) anonymize(r *record) (partition int) {
	d, s := in.decoder, &in.record
	*s = stored{
		time: r.time, hasTime: r.hasTime,
		kid:     d.hasher.KeyID(),
		hasUser: len(r.user) > 0, hasID: len(r.id) > 0, hasOwner: len(r.owner) > 0,
		item: r.item, typ: r.typ,
		hasWatched: len(r.watched) > 0, botKnown: len(r.bot) > 0,
		dims: s.dims[:0],
	}
	partition = -1
	if len(s.typ) == 0 {
		s.typ = d.typ
	}
	if s.hasID {
		s.id = d.hasher.ID(r.id)
		partition = int(s.id % d.partitions)
	}
	if s.hasUser {
		s.user = d.hasher.User(r.user)
		partition = int(s.user % d.partitions)
	}
	if s.hasOwner {
		s.owner = d.hasher.User(r.owner)
	}
	if r.hasInfo {
		s.info = r.info
	}
	if s.hasWatched {
		s.watched = watchedMillis(r.watched)
	}
	if s.botKnown {
		s.bot = isTrue(r.bot)
	}
	if r.hasDims {
		for i, v := range r.dims {
			if v != nil {
				s.dims = append(s.dims, storedDim{name: []byte(in.accepter.cfg.Dimensions[i]), value: v})
			}
		}
	}
	return partition
}

// watchedMillis returns what a number says that was written.
func watchedMillis(text []byte) float64 {
	v, _ := strconv.ParseFloat(string(text), 64) // it is a number; one that is too large is +Inf
	return max(-math.MaxFloat64, min(v, math.MaxFloat64))
}

// isTrue returns what a bool says that was written.
func isTrue(text []byte) bool { return string(text) == "true" || string(text) == "1" }

// reject takes note of a record that is no event.
func (g *group) reject(line int64, reason string) {
	g.receipt.Rejected++
	if len(g.receipt.Errors) < MaxRejections {
		g.receipt.Errors = append(g.receipt.Errors, Rejection{line, reason})
	}
}

// byForm tells the format of a body. Where nothing says so, an object that goes over
// several lines is told from one a line by how its first line ends.
func byForm(form Form, b []byte, eof bool, names map[string]*field) (f format, pos int, err error) {
	if bytes.HasPrefix(b, []byte("\ufeff")) {
		pos = len("\ufeff")
	}
	line, _, several := bytes.Cut(b[skipWhite(b, pos):], []byte{'\n'})
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0 || form == NDJSON:
		return &lines{}, pos, nil
	case form != CSV && line[0] == '[':
		return &values{array: true}, pos, nil
	case form == JSON, form == AnyForm && line[0] == '{' && several && line[len(line)-1] != '}':
		return &values{}, pos, nil
	case form == CSV:
		t, next, item, err := newRows(b[pos:], eof, names)
		if err == nil && !item {
			err = errors.New("no column named item in the first line")
		}
		if err != nil {
			return nil, 0, err
		}
		return t, pos + next, nil
	}
	f, pos, err = detect("", b, eof, names)
	if err != nil && line[0] != '{' {
		// Not err: it shows the line, and here that may hold what nobody may keep.
		err = errors.New("neither JSON nor CSV with a column named item")
	}
	return f, pos, err
}
