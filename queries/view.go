package queries

import (
	"context"
	"errors"
	"fmt"
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
	unwritten bool          // a log has not been read to its end, and nobody knows how far
	brokenOff string        // the files of an import that nobody is reading
	uncounted string        // another log that nobody is reading
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
			v.watermark = min(v.watermark, l.Watermark())
			v.watched = v.watermark != math.MaxInt64
		}
		for p := range l.Windows.Partitions() {
			if !l.Windows.Read(p, v.snap.Position(l.Windows.Log(), p), func(c *windows.Content) { v.freeze(c, w) }) {
				return false
			}
		}
	}
	for _, l := range v.snap.Logs() {
		if !l.Done && !running[l.ID] {
			v.unwritten = true
			if names := strings.Join(l.Names, ", "); l.Files {
				v.brokenOff = names
			} else {
				v.uncounted = names
			}
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

// resolve turns what was asked for into what is left of it by retention. kept is
// what an open end reaches to.
func (v *view) resolve(w When, step Step, zone *time.Location, kept windows.Range) (*span, error) {
	s, err := w.resolve(step, zone, kept)
	if err != nil {
		return nil, err
	}
	if _, gone := v.snap.Plan([]windows.Minute{s.From, s.To}); len(gone) > 0 {
		// What is older than the longest periods is taken; of the rest there are those.
		oldest, end := v.oldest(), gone[len(gone)-1].To
		switch {
		case oldest >= s.To:
			return nil, refused(w.parameter(), "nothing of this range is kept any more; %s", v.keptHint(zone))
		case oldest < end:
			return nil, refused(w.parameter(), "only longer periods are kept of the time from %s to %s; %s",
				s.at(max(oldest, gone[0].From)).Format(time.RFC3339), s.at(end).Format(time.RFC3339), v.keptHint(zone))
		}
		s.clip(oldest)
	}
	steps, gone := v.snap.Plan(s.buckets)
	if len(gone) > 0 { // by now for the steps alone
		end := gone[len(gone)-1].To
		if end >= s.To {
			return nil, refused("step", "only longer periods than a %s of this zone are kept of this range; %s", step, v.keptHint(zone))
		}
		s.clip(end)
		steps, _ = v.snap.Plan(s.buckets)
	}
	s.steps = steps
	return s, nil
}

// oldest returns the first minute that questions of a range can be about: that of
// the longest periods.
func (v *view) oldest() windows.Minute {
	var from windows.Minute
	for _, k := range v.snap.Kept() {
		if k.Size > 0 {
			from = k.From
		}
	}
	return from
}

// periodNames are what the levels' sizes are called.
var periodNames = map[windows.Minute]string{0: "ever", 1: "minute", 15: "quarter hour", 60: "hour", 24 * 60: "day"}

// keptHint says what is kept, in whole periods of UTC.
func (v *view) keptHint(zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	var kept []string
	for _, k := range v.snap.Kept() {
		if k.Size > 0 {
			from := max(k.From, v.kept.From)
			kept = append(kept, fmt.Sprintf("%ss from %s", periodNames[k.Size], from.Time().In(zone).Format(time.RFC3339)))
		}
	}
	return "kept are whole " + strings.Join(kept, ", ") + " on"
}

// parameter returns the one that a range's start comes from.
func (w When) parameter() string {
	if w.Last > 0 {
		return "last"
	}
	return "from"
}

// extent says how far the answer about s can be relied on.
func (v *view) extent(s *span) Extent {
	e := Extent{From: s.from(), To: s.to, Clipped: s.clipped, Complete: v.complete(s.Range), Final: !v.unwritten}
	switch {
	case v.watched:
		t := time.UnixMilli(v.watermark).In(s.zone)
		if v.watermark > 0 { // every partition has had an event, or is idle
			e.Watermark = &t
		}
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
