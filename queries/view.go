package queries

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"tidemark/sketches"
	"tidemark/windows"
)

// view is one consistent look at the store and the windows (Q1). One goroutine
// uses it, and closes it.
type view struct {
	snap      Snapshot
	live      []*frozen
	hasher    sketches.Hasher
	kept      windows.Range // all that is kept; empty if nothing is
	unwritten bool          // an import has not been read to its end
	brokenOff string        // the files of one that nobody is reading
	watched   bool          // a log is being read that has a watermark, which is
	watermark int64         // Unix ms
	settling  time.Duration
	names     map[uint32]string
	ids       map[string]itemID
}

type itemID struct {
	id     uint32
	stored bool
}

// key is what a question is about: an item, or in every series the site.
type key struct {
	kind windows.Kind
	item string
	hash sketches.Hash128
}

var site = key{kind: windows.Site}

func (v *view) item(name string) key { return itemKey(v.hasher, name) }

func itemKey(h sketches.Hasher, name string) key {
	return key{kind: windows.Item, item: name, hash: h.Item([]byte(name))}
}

// wanted is what a question needs of the windows. It has to be said before they
// are read, since they move on.
type wanted struct {
	series func(windows.Series) bool
	whole  func(windows.Series) bool // those of the series that every item is wanted of; nil: none
	keys   []key                     // wanted of all of them, beside the site
	within When
	tokens bool // the viewers too, not only the counts
}

var everyItem = wanted{series: ofNoDimension, whole: ofNoDimension}

func ofNoDimension(s windows.Series) bool { return s.Dimension == "" }

// maxTries bounds how often a view is begun again because a seal was stored
// between the snapshot and the look at the windows. A partition cuts a few times a
// minute at most while it keeps up, and a snapshot takes microseconds.
const maxTries = 100

var errMoving = errors.New("the store moves faster than it can be read")

// open takes a snapshot, and freezes what is wanted of the windows. Close the view.
func (e *Engine) open(ctx context.Context, w wanted) (*view, error) {
	for range maxTries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		snap, err := e.cfg.Snapshot()
		if err != nil {
			return nil, err
		}
		v := &view{snap: snap, hasher: e.cfg.Hasher, settling: e.cfg.Settling, names: make(map[uint32]string), ids: make(map[string]itemID)}
		if v.look(e.cfg.Live, w) {
			v.setKept(w.within.Now)
			return v, nil
		}
		if err := snap.Close(); err != nil {
			return nil, err
		}
	}
	return nil, errMoving
}

func (v *view) close(err *error) { *err = errors.Join(*err, v.snap.Close()) }

// look reads the windows; false means that the snapshot is older than them.
func (v *view) look(live []Live, w wanted) bool {
	running := make(map[windows.LogID]bool)
	v.watermark = math.MaxInt64
	v.kept = windows.Range{From: windows.MaxMinute}
	for _, l := range live {
		running[l.Windows.Log()] = true
		if l.Watermark == nil {
			v.unwritten = true
		} else {
			// Before the windows are read: what it has passed is all in them.
			v.watched, v.watermark = true, min(v.watermark, l.Watermark())
		}
		for p := range l.Windows.Partitions() {
			if !l.Windows.Read(p, v.snap.Position(l.Windows.Log(), p), func(c *windows.Content) { v.freeze(c, w) }) {
				return false
			}
		}
	}
	for _, l := range v.snap.Logs() {
		if !l.Done && !running[l.ID] {
			v.unwritten, v.brokenOff = true, strings.Join(l.Names, ", ")
		}
	}
	return true
}

// setKept adds the store's span to that of the windows.
func (v *view) setKept(now time.Time) {
	if r, ok := v.snap.Span(); ok {
		v.kept = windows.Range{From: min(v.kept.From, r.From), To: max(v.kept.To, r.To)}
	}
	if v.kept.Empty() {
		m := windows.MinuteOf(max(0, min(now.UnixMilli(), windows.MaxTime)))
		v.kept = windows.Range{From: m, To: m}
	}
}

// extent says how far the answer about s can be relied on.
func (v *view) extent(s *span) Extent {
	e := Extent{From: s.from(), To: s.to, Complete: v.complete(s.Range), Final: !v.unwritten}
	switch {
	case v.watched:
		t := time.UnixMilli(v.watermark).In(s.zone)
		e.Watermark = &t
		e.Final = e.Final && !t.Before(s.To.Time().Add(v.settling))
	case !v.unwritten && !v.kept.Empty():
		t := s.at(v.kept.To)
		e.Watermark = &t
	}
	return e
}

func (v *view) complete(r windows.Range) bool {
	return !v.unwritten && (!v.watched || r.To.UnixMilli() <= v.watermark)
}

// series returns every series there is, in the store or in what is live.
func (v *view) series() []windows.Series {
	all := slices.Clone(v.snap.Series())
	for _, f := range v.live {
		for s := range f.series {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// rows yields the rows of a key in a series, one for each part that has it.
func (v *view) rows(r windows.Range, s windows.Series, k key, yield func(windows.Part, windows.Row) error) error {
	id, err := v.id(k)
	if err != nil {
		return err
	}
	if id.stored {
		for _, at := range plan(r) {
			if err := v.snap.Rows(at, s, k.kind, id.id, yield); err != nil {
				return err
			}
		}
	}
	return v.liveRows(r, s, k, yield)
}

func (v *view) liveRows(r windows.Range, s windows.Series, k key, yield func(windows.Part, windows.Row) error) error {
	for _, f := range v.live {
		if !r.Contains(f.part.Start) {
			continue
		}
		if row, ok := f.find(s, k); ok {
			if err := yield(f.part, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// read yields the rows of some keys in a series: by looking for each in each part,
// or where that is more work, by going through all rows.
func (v *view) read(ctx context.Context, r windows.Range, s windows.Series, keys []key, yield func(i int, p windows.Part, row windows.Row)) error {
	if scan, err := v.scans(r, s, len(keys)); err != nil {
		return err
	} else if scan {
		return v.pick(ctx, r, s, keys, yield)
	}
	for i, k := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := v.rows(r, s, k, func(p windows.Part, row windows.Row) error {
			yield(i, p, row)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	// rowsPerSeek is how many rows are gone through while one key is looked for in
	// one part: 0.1 µs against 0.7 µs.
	rowsPerSeek = 7
	// fewSeeks is not worth a trial.
	fewSeeks = 1000
)

// scans decides whether a series is to be gone through for so many keys: if it has
// few rows, for the seeks that are saved. It counts them as far as that, so that
// all rows are gone through twice, with a seek for each part.
func (v *view) scans(r windows.Range, s windows.Series, keys int) (bool, error) {
	parts := 0
	for _, at := range plan(r) {
		parts += v.snap.Parts(at)
	}
	left := rowsPerSeek * (keys - 2) * parts / 2
	if keys*parts < fewSeeks || left <= 0 {
		return false, nil
	}
	for _, at := range plan(r) {
		err := v.snap.Scan(at, s, func(windows.Part, uint32, windows.Row) error {
			if left--; left < 0 {
				return errStop
			}
			return nil
		})
		if errors.Is(err, errStop) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// pick is read by going through all rows.
func (v *view) pick(ctx context.Context, r windows.Range, s windows.Series, keys []key, yield func(i int, p windows.Part, row windows.Row)) error {
	type rowKey struct {
		kind windows.Kind
		item uint32
	}
	index := make(map[rowKey][]int, len(keys)) // an item may be asked for twice
	for i, k := range keys {
		id, err := v.id(k)
		if err != nil {
			return err
		}
		if at := (rowKey{k.kind, id.id}); id.stored {
			index[at] = append(index[at], i)
		}
	}
	for _, at := range plan(r) {
		var last windows.Part
		err := v.snap.Scan(at, s, func(p windows.Part, item uint32, row windows.Row) error {
			for _, i := range index[rowKey{row.Kind, item}] {
				yield(i, p, row)
			}
			if p != last {
				last = p
				return ctx.Err()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, k := range keys {
		if err := v.liveRows(r, s, k, func(p windows.Part, row windows.Row) error {
			yield(i, p, row)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// sketches yields what is known of the items of a type that found no slot.
func (v *view) sketches(r windows.Range, typ windows.Series, yield func(windows.Part, *sketches.CountMin, *sketches.TopK) error) error {
	typ = windows.Series{Type: typ.Type, Other: typ.Other & windows.OtherType}
	for _, at := range plan(r) {
		if err := v.snap.Sketches(at, typ, yield); err != nil {
			return err
		}
	}
	for _, f := range v.live {
		if fs := f.series[typ]; r.Contains(f.part.Start) && fs != nil && fs.heap != nil {
			if err := yield(f.part, fs.table, fs.heap); err != nil {
				return err
			}
		}
	}
	return nil
}

// errStop ends a reading early.
var errStop = errors.New("stop")

// overflowed reports whether some item of the series' type found no slot.
func (v *view) overflowed(r windows.Range, s windows.Series) (bool, error) {
	err := v.sketches(r, s, func(windows.Part, *sketches.CountMin, *sketches.TopK) error { return errStop })
	if errors.Is(err, errStop) {
		return true, nil
	}
	return false, err
}

// overflow returns how many events of a series had no slot, by part.
func (v *view) overflow(r windows.Range, s windows.Series) (map[windows.Part]uint64, error) {
	some, err := v.overflowed(r, s)
	if err != nil || !some {
		return nil, err
	}
	overflow := make(map[windows.Part]uint64)
	err = v.rows(r, s, key{kind: windows.Overflow}, func(p windows.Part, r windows.Row) error {
		overflow[p] = r.Events
		return nil
	})
	return overflow, err
}

// id is Snapshot.ID of a key, remembered.
func (v *view) id(k key) (itemID, error) {
	if k.kind != windows.Item {
		return itemID{stored: true}, nil
	}
	if id, ok := v.ids[k.item]; ok {
		return id, nil
	}
	id, stored, err := v.snap.ID(k.item)
	if err == nil {
		v.ids[k.item] = itemID{id, stored}
	}
	return itemID{id, stored}, err
}

// name is Snapshot.Name, remembered.
func (v *view) name(id uint32) (string, error) {
	if name, ok := v.names[id]; ok {
		return name, nil
	}
	name, err := v.snap.Name(id)
	if err == nil {
		v.names[id] = name
	}
	return name, err
}

// plan covers a range with what the store keeps of it.
func plan(r windows.Range) []windows.Stretch {
	return []windows.Stretch{{Level: windows.LevelMinute, Range: r}}
}

// frozen is a copy of what a question wants of one window, or of a seal that
// waits: a part that is not in the store.
type frozen struct {
	part     windows.Part
	series   map[windows.Series]*frozenSeries
	outcomes []windows.OutcomeCount
}

type frozenSeries struct {
	rows     map[string]windows.Row // by item; of the site under ""
	overflow windows.Row
	table    *sketches.CountMin
	heap     *sketches.TopK // nil: every item has a slot
}

// liveParts is where the identifiers of parts begin that the store has not numbered.
const liveParts = 1 << 31

func (v *view) freeze(c *windows.Content, w wanted) {
	m := c.Minute()
	if !c.Empty() {
		v.kept = windows.Range{From: min(v.kept.From, m), To: max(v.kept.To, m+1)}
	}
	if !w.within.mayHold(m) {
		return
	}
	f := &frozen{
		part:     windows.Part{Start: m, ID: liveParts + uint32(len(v.live))},
		series:   make(map[windows.Series]*frozenSeries),
		outcomes: c.Outcomes(),
	}
	for _, s := range c.Series() {
		if w.series(s) {
			f.series[s] = freezeSeries(c, s, w, v.hasher.KeyID())
		}
	}
	v.live = append(v.live, f)
}

func freezeSeries(c *windows.Content, s windows.Series, w wanted, id sketches.KeyID) *frozenSeries {
	f := &frozenSeries{rows: make(map[string]windows.Row)}
	f.overflow, _ = c.Find(s, windows.Overflow, sketches.Hash128{})
	keep := func(r windows.Row) {
		name := string(r.Item)
		r.Item = nil
		if w.tokens {
			r.Tokens, r.Registers = slices.Clone(r.Tokens), bytes.Clone(r.Registers)
		} else {
			r.Tokens, r.Registers = nil, nil
		}
		f.rows[name] = r
	}
	if w.whole != nil && w.whole(s) {
		c.EachOf(s, func(r windows.Row) bool {
			if r.Kind != windows.Overflow {
				keep(r)
			}
			return true
		})
	}
	for _, k := range append(w.keys, site) {
		if r, ok := c.Find(s, k.kind, k.hash); ok {
			r.Item = []byte(k.item)
			keep(r)
		}
	}
	if table, heap, ok := c.Sketch(s); ok && s.Dimension == "" {
		if table != nil {
			f.table = sketches.NewCountMin(id)
			_ = f.table.Merge(table) // of one key
		}
		f.heap = sketches.NewTopK(id, heap.K())
		for _, e := range heap.Sorted() {
			f.heap.Offer(e.Hash, e.Count, []byte(e.Name))
		}
	}
	return f
}

func (f *frozen) find(s windows.Series, k key) (windows.Row, bool) {
	fs := f.series[s]
	if fs == nil {
		return windows.Row{}, false
	}
	if k.kind == windows.Overflow {
		return fs.overflow, fs.overflow.Events > 0
	}
	r, ok := fs.rows[k.item]
	return r, ok
}

// mayHold reports whether the range can come to hold m, whatever is kept.
func (w When) mayHold(m windows.Minute) bool {
	if w.Last > 0 {
		return true // steps may move its start; there are few windows
	}
	t := m.Time()
	const step = 32 * 24 * time.Hour // the longest, by which an edge is moved outward
	return (w.From.IsZero() || !t.Before(w.From.Add(-step))) && (w.To.IsZero() || t.Before(w.To.Add(step)))
}
