package store

import (
	"encoding/binary"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/sketches"
	"tidemark/windows"
)

// Waiting is a seal as it waits in the outbox.
type Waiting struct {
	windows.Identity
	From     windows.Pair // its predecessor
	R        int64
	H        windows.Mark // the last record before To.S
	Settings string       // of its log, when it was stored
	Items    []windows.ItemInfo
	Partials []*WaitingPartial // ascending by minute, one each
	Bytes    int               // that it takes in memory, about
}

// WaitingPartial is what a waiting seal holds of one minute. Its rows lie in memory
// as they lie on the disk.
type WaitingPartial struct {
	minute   windows.Minute
	series   []windows.Series
	outcomes []windows.OutcomeCount
	rows     []byte // behind which is their end
}

// Minute returns the minute that the partial is about.
func (p *WaitingPartial) Minute() windows.Minute { return p.minute }

// Series returns what the rows' numbers stand for.
func (p *WaitingPartial) Series() []windows.Series { return p.series }

// Outcomes returns what became of the records of the minute.
func (p *WaitingPartial) Outcomes() []windows.OutcomeCount { return p.outcomes }

// Each calls yield for every row, in the order of the seal, until it returns false.
// Rows are borrowed.
func (p *WaitingPartial) Each(yield func(series int, r windows.Row) bool) {
	var row waitingRow
	for d := (decoder{b: p.rows}); row.next(&d, len(p.series)) && yield(row.series, row.Row); {
	}
}

// The rows of a seal that waits, beside its head, are one text in pieces of
// pieceBytes. Part of the format:
//
//	uvarint(n), n × (item, 3 × (uvarint at (Unix ms), text)): title, url, image
//	for each minute, until the end:
//	  uvarint(minute)
//	  uvarint(n), n × series
//	  uvarint(n), n × (uvarint(outcome) reason uvarint(records))
//	  for each row: uvarint(1 + (series<<3 | unequal<<2 | kind)) [item, of kind Item]
//	    uvarint(events) [zigzag(reached − events), if unequal]
//	    uvarint(n) n × token (4, little-endian), or n = denseShape and the registers
//	  0
//
// Names, series and texts are uvarint length and bytes.
const (
	pieceBytes = 1 << 20

	waitingUnequal = 1 << 2
	waitingKind    = waitingUnequal - 1
	waitingSeries  = 3
)

// outboxPartial is what of a minute is written: a windows.Partial, or one that waits.
type outboxPartial interface {
	Minute() windows.Minute
	Series() []windows.Series
	Outcomes() []windows.OutcomeCount
	Each(yield func(series int, r windows.Row) bool)
}

// waitingWriter writes the text of a seal in pieces.
type waitingWriter struct {
	buf   []byte
	bytes int // emitted
	emit  func(piece []byte) error
}

func (w *waitingWriter) write(items []windows.ItemInfo, partials []outboxPartial) error {
	w.buf = binary.AppendUvarint(w.buf, uint64(len(items)))
	for i := range items {
		w.buf = appendString(w.buf, items[i].Item)
		for _, t := range []windows.Text{items[i].Title, items[i].URL, items[i].Image} {
			w.buf = binary.AppendUvarint(w.buf, uint64(t.At))
			w.buf = appendString(w.buf, t.Value)
		}
		if err := w.spill(); err != nil {
			return err
		}
	}
	for _, p := range partials {
		if err := w.partial(p); err != nil {
			return err
		}
	}
	return w.flush()
}

func (w *waitingWriter) partial(p outboxPartial) error {
	w.buf = binary.AppendUvarint(w.buf, uint64(p.Minute()))
	series := p.Series()
	w.buf = binary.AppendUvarint(w.buf, uint64(len(series)))
	for _, s := range series {
		w.buf = appendString(w.buf, string(appendSeries(nil, s)))
	}
	outcomes := p.Outcomes()
	w.buf = binary.AppendUvarint(w.buf, uint64(len(outcomes)))
	for _, o := range outcomes {
		w.buf = binary.AppendUvarint(w.buf, uint64(o.Outcome))
		w.buf = appendString(w.buf, o.Reason)
		w.buf = binary.AppendUvarint(w.buf, o.Records)
	}
	var err error
	for s, r := range p.Each {
		w.row(s, &r)
		if err = w.spill(); err != nil {
			return err
		}
	}
	w.buf = append(w.buf, 0)
	return nil
}

func (w *waitingWriter) row(series int, r *windows.Row) {
	head := uint64(series)<<waitingSeries | uint64(r.Kind)
	if r.Reached != r.Events {
		head |= waitingUnequal
	}
	w.buf = binary.AppendUvarint(w.buf, head+1)
	if r.Kind == windows.Item {
		w.buf = binary.AppendUvarint(w.buf, uint64(len(r.Item)))
		w.buf = append(w.buf, r.Item...)
	}
	w.buf = binary.AppendUvarint(w.buf, r.Events)
	if r.Reached != r.Events {
		w.buf = binary.AppendUvarint(w.buf, zigzag(int64(r.Reached-r.Events)))
	}
	if r.Registers != nil {
		w.buf = binary.AppendUvarint(w.buf, denseShape)
		w.buf = append(w.buf, r.Registers...)
		return
	}
	w.buf = binary.AppendUvarint(w.buf, uint64(len(r.Tokens)))
	for _, t := range r.Tokens {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, t)
	}
}

func (w *waitingWriter) spill() error {
	if len(w.buf) < pieceBytes {
		return nil
	}
	return w.flush()
}

func (w *waitingWriter) flush() error {
	w.bytes += len(w.buf)
	err := w.emit(w.buf)
	w.buf = w.buf[:0]
	return err
}

// parseWaiting reads the text of a seal.
func parseWaiting(text []byte, w *Waiting) bool {
	d := decoder{b: text}
	w.Items = d.items()
	for len(d.b) > 0 && !d.bad {
		p := d.waitingPartial()
		if n := len(w.Partials); n > 0 && p.minute <= w.Partials[n-1].minute {
			return false
		}
		w.Partials = append(w.Partials, p)
	}
	return !d.bad
}

func (d *decoder) items() []windows.ItemInfo {
	n := d.uint(uint64(len(d.b))) // each has at least one byte
	var out []windows.ItemInfo
	for range n {
		i := windows.ItemInfo{Item: d.string()}
		for _, t := range []*windows.Text{&i.Title, &i.URL, &i.Image} {
			t.At = int64(d.uint(uint64(windows.MaxTime)))
			t.Value = d.string()
		}
		if d.bad {
			return nil
		}
		out = append(out, i)
	}
	return out
}

// waitingPartial reads a partial, and makes sure of its rows.
func (d *decoder) waitingPartial() *WaitingPartial {
	p := &WaitingPartial{minute: windows.Minute(d.uint(uint64(windows.MaxMinute) - 1))}
	for range d.uint(uint64(len(d.b))) {
		s, ok := parseSeries([]byte(d.string()))
		if d.bad = d.bad || !ok; d.bad {
			return p
		}
		p.series = append(p.series, s)
	}
	for range d.uint(uint64(len(d.b))) {
		o := windows.OutcomeCount{Outcome: windows.Outcome(d.uint(uint64(outcomeCount) - 1))}
		o.Reason = d.string()
		o.Records = d.uint(math.MaxUint64)
		if d.bad {
			return p
		}
		p.outcomes = append(p.outcomes, o)
	}
	p.rows = d.b
	var row waitingRow
	for row.next(d, len(p.series)) {
	}
	return p
}

// waitingRow is a row that is being read.
type waitingRow struct {
	series int
	windows.Row
	tokens []uint32
}

// next reads a row. It returns false at the end of the partial, or when d is bad.
func (r *waitingRow) next(d *decoder, series int) bool {
	head := d.uint(math.MaxUint32)
	if d.bad || head == 0 {
		return false
	}
	head--
	r.series = int(head >> waitingSeries)
	r.Row = windows.Row{Kind: windows.Kind(head & waitingKind)}
	if r.series >= series || r.Kind > windows.Overflow {
		d.bad = true
		return false
	}
	if r.Kind == windows.Item {
		r.Item = d.bytes(int(d.uint(uint64(len(d.b)))))
	}
	r.Events = d.uint(math.MaxUint64)
	r.Reached = r.Events
	if head&waitingUnequal != 0 {
		z := d.uint(math.MaxUint64)
		r.Reached += uint64(unzigzag(z))
		d.bad = d.bad || z == 0
	}
	if n := d.uint(denseShape); n == denseShape {
		r.Registers = d.bytes(sketches.RegisterCount)
		d.bad = d.bad || !registersValid(r.Registers)
	} else {
		r.tokens = decodeTokens(r.tokens[:0], d.bytes(4*int(n)))
		r.Tokens = r.tokens
	}
	return !d.bad
}

// waitingHead is the row of a waiting seal that its pieces follow. Part of the format:
//
//	uvarint(version) E(8, little-endian) uvarint each: from F, from S, to F, to S, R
//	settings uvarint(pieces) uvarint(bytes)
type waitingHead struct {
	e        uint64
	from, to windows.Pair
	r        int64
	h        windows.Mark
	settings string
	pieces   int
	bytes    int // of all of them
}

const waitingVersion = 1

// maxPieces bounds the pieces of a seal: 4 TiB.
const maxPieces = 1 << 22

func (h *waitingHead) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, waitingVersion)
	dst = binary.LittleEndian.AppendUint64(dst, h.e)
	dst = appendPair(appendPair(dst, h.from), h.to)
	dst = appendMark(binary.AppendUvarint(dst, uint64(h.r)), h.h)
	dst = appendString(dst, h.settings)
	dst = binary.AppendUvarint(dst, uint64(h.pieces))
	return binary.AppendUvarint(dst, uint64(h.bytes))
}

func parseWaitingHead(key, value []byte) (*waitingHead, error) {
	d := decoder{b: value}
	if v := d.uint(math.MaxInt); v != waitingVersion && !d.bad {
		return nil, damaged(key, "version %d of a waiting seal; this build knows %d", v, waitingVersion)
	}
	h := &waitingHead{e: d.uint64(), from: d.pair(), to: d.pair()}
	h.r = int64(d.uint(math.MaxInt64))
	h.h = d.mark()
	h.settings = d.string()
	h.pieces = int(d.uint(maxPieces))
	h.bytes = int(d.uint(maxPieces * pieceBytes * 2))
	if d.bad || len(d.b) > 0 {
		return nil, damaged(key, "not the head of a waiting seal")
	}
	return h, nil
}

// putWaiting adds a seal to the outbox, in the batch of its blocks.
func putWaiting(batch *pebble.Batch, seal *windows.Seal, seq uint64, settings string) (*waitingHead, error) {
	at := outboxAt{seal.Log, seal.Partition}
	h := &waitingHead{e: seal.E, from: seal.From, to: seal.To, r: seal.R, h: seal.H, settings: settings}
	w := waitingWriter{emit: func(piece []byte) error {
		h.pieces++
		return batch.Set(outboxKey(at, seq, h.pieces), piece, nil)
	}}
	partials := make([]outboxPartial, len(seal.Partials))
	for i, p := range seal.Partials {
		partials[i] = p
	}
	if err := w.write(seal.Items, partials); err != nil {
		return nil, err
	}
	h.bytes = w.bytes
	return h, batch.Set(outboxKey(at, seq, 0), h.append(nil), nil)
}
