package store

import (
	"tidemark/sketches"
)

// partWriter writes one start of one part: rows as blocks, a list for each long
// series, and the tables of types that overflowed. Rows come ascending, and so do
// the keys that go out, as a file of Pebble wants them.
type partWriter struct {
	known *seriesList                          // of the store
	set   func(row rowKey, value []byte) error // value is valid during the call

	blocks blockWriter
	top    topBuilder
	series uint32 // of the row before
	counts bool   // it is not one of outcomes
	rows   uint64 // but outcomes
	lists  []storedList
	text   []byte // of the lists
	value  []byte
}

// storedList is a list that waits until the blocks are through.
type storedList struct {
	series uint32
	end    int // in text
}

// typeTables is what a type knows of its items that found no slot.
type typeTables struct {
	series uint32
	table  *sketches.CountMin // nil: it was found damaged
	heap   *sketches.TopK
}

// begin makes the writer ready for a start.
func (w *partWriter) begin(set func(row rowKey, value []byte) error) {
	w.set = set
	w.blocks.emit = set
	w.blocks.buf, w.blocks.last, w.blocks.rows = w.blocks.buf[:0], 0, 0
	w.top.reset()
	w.series, w.counts, w.rows = seriesOutcomes, false, 0
	w.lists, w.text = w.lists[:0], w.text[:0]
}

// book takes note of a row that is about to be written.
func (w *partWriter) book(key rowKey, events, reached uint64, short bool) {
	if s := key.series(); s != w.series {
		w.endSeries()
		w.series, w.counts = s, w.known.counts(s)
	}
	if w.series == seriesOutcomes {
		return
	}
	if w.counts && events > 0 {
		w.rows++
	}
	if key.item() >= firstItem {
		w.top.add(topItem{id: key.item(), events: events, reached: reached, short: short})
	}
}

func (w *partWriter) endSeries() {
	if w.top.long() {
		w.text = appendTopList(w.text, w.top.finish())
		w.lists = append(w.lists, storedList{series: w.series, end: len(w.text)})
	}
	w.top.reset()
}

// put writes a row.
func (w *partWriter) put(r *record) error {
	w.book(r.key, r.events, r.reached, r.short)
	return w.blocks.put(r)
}

// putTokens writes a row with tokens, which are ascending.
func (w *partWriter) putTokens(key rowKey, events, reached uint64, short bool, tokens []uint32) error {
	w.book(key, events, reached, short)
	return w.blocks.putTokens(key, events, reached, short, tokens)
}

// finish ends the start with the tables of its types, ascending by series, and
// returns what the start is like.
func (w *partWriter) finish(tables []typeTables) (presenceInfo, error) {
	w.endSeries()
	if err := w.blocks.flush(); err != nil {
		return 0, err
	}
	from := 0
	for _, l := range w.lists {
		if err := w.set(makeRowKey(seriesTop, l.series), w.text[from:l.end]); err != nil {
			return 0, err
		}
		from = l.end
	}
	for _, t := range tables {
		if t.table == nil {
			continue
		}
		if err := w.encode(seriesCountMin, t.series, t.table.AppendBinary); err != nil {
			return 0, err
		}
	}
	for _, t := range tables {
		if err := w.encode(seriesHeap, t.series, t.heap.AppendBinary); err != nil {
			return 0, err
		}
	}
	return makePresenceInfo(w.rows, len(tables) > 0), nil
}

func (w *partWriter) encode(kind, series uint32, appendTo func([]byte) ([]byte, error)) error {
	var err error
	if w.value, err = appendTo(w.value[:0]); err != nil {
		return err
	}
	return w.set(makeRowKey(kind, series), w.value)
}
