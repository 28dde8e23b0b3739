package store

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/sketches"
	"tidemark/windows"
)

// encoder turns the partials of a seal into blocks. Its memory is used again.
type encoder struct {
	store *Store
	batch *pebble.Batch
	part  uint32

	rows   []encoderRow
	ends   []int    // of each partial's rows in rows
	tokens []uint32 // of all rows
	dense  []byte   // registers of all rows

	names   nameBatch
	named   []int // the rows that the names are of
	series  nameBatch
	reasons nameBatch
	ids     []uint32 // of the series of one partial

	order, orderTmp []ordered
	tokensTmp       []uint32
	writer          partWriter
	key, value      []byte

	late         lateRows
	direct, keep bool // whether the present minute goes to the level of minutes, and to late
}

// encoderRow is a row that waits for its id, and then for its turn.
type encoderRow struct {
	key             rowKey
	events, reached uint64
	at              uint32 // where its tokens or registers begin
	n               uint16 // how many tokens, or denseShape
}

const (
	// namesAtOnce is how many names are looked up together: enough that the cache
	// misses of the CPU overlap, few enough that they stay in its cache.
	namesAtOnce = 256
	// rowsAtOnce is how many rows small partials are gathered to before they are
	// written.
	rowsAtOnce = 4096
	// keepRows is how large an encoder may be to be kept for the next seal.
	keepRows = 1 << 18
)

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// encode adds the blocks, lists and tables of a seal's partials to the batch, and
// returns the starts that have any. What is late for a level that is rolled up goes
// there as well. gate must be held.
func (s *Store) encode(partials []*windows.Partial, number uint32, batch *pebble.Batch) (starts [levelCount][]presence, err error) {
	e := encoders.Get().(*encoder)
	e.store, e.batch, e.part, e.writer.known = s, batch, number, &s.known
	e.late.reset()
	defer func() {
		if cap(e.rows) <= keepRows {
			e.store, e.batch, e.writer.known = nil, nil, nil
			encoders.Put(e)
		}
	}()
	first := 0
	for i, p := range partials {
		if err := e.gather(p); err != nil {
			return starts, err
		}
		if len(e.rows) < rowsAtOnce && i < len(partials)-1 {
			continue
		}
		if err := e.resolve(); err != nil {
			return starts, err
		}
		from := 0
		for k, end := range e.ends {
			at, ok, err := e.write(partials[first+k], e.rows[from:end])
			if err != nil {
				return starts, err
			}
			if ok && e.direct {
				starts[levelMinute] = append(starts[levelMinute], at)
			}
			from = end
		}
		first = i + 1
		e.rows, e.ends, e.tokens, e.dense = e.rows[:0], e.ends[:0], e.tokens[:0], e.dense[:0]
	}
	return starts, e.late.write(s, number, batch, &starts)
}

// gather copies the rows of a partial.
func (e *encoder) gather(p *windows.Partial) error {
	if err := e.gatherOutcomes(p.Outcomes()); err != nil {
		return err
	}
	e.series.reset()
	for _, s := range p.Series() {
		e.value = appendSeries(e.value[:0], s)
		e.series.add(e.value)
	}
	if err := e.store.series.resolve(&e.series); err != nil {
		return err
	}
	e.ids = append(e.ids[:0], e.series.ids...)
	var err error
	for s, r := range p.Each {
		row := encoderRow{events: r.Events, reached: r.Reached}
		if r.Registers != nil {
			row.n, row.at = denseShape, uint32(len(e.dense)/sketches.RegisterCount)
			e.dense = append(e.dense, r.Registers...)
		} else {
			row.n, row.at = uint16(len(r.Tokens)), uint32(len(e.tokens))
			e.tokens = append(e.tokens, r.Tokens...)
		}
		switch r.Kind {
		case windows.Site:
			row.key = makeRowKey(e.ids[s], itemSite)
		case windows.Overflow:
			row.key = makeRowKey(e.ids[s], itemOverflow)
		case windows.Item:
			row.key = makeRowKey(e.ids[s], 0)
			e.named = append(e.named, len(e.rows))
			e.names.add(r.Item)
		}
		e.rows = append(e.rows, row)
		if len(e.named) == namesAtOnce {
			if err = e.resolve(); err != nil {
				break
			}
		}
	}
	e.ends = append(e.ends, len(e.rows))
	return err
}

// gatherOutcomes makes the outcomes of a minute rows of a series of their own.
func (e *encoder) gatherOutcomes(outcomes []windows.OutcomeCount) error {
	e.reasons.reset()
	for _, o := range outcomes {
		if o.Reason != "" {
			e.reasons.add([]byte(o.Reason))
		}
	}
	if len(e.reasons.ends) > 0 {
		if err := e.store.reasons.resolve(&e.reasons); err != nil {
			return err
		}
	}
	reasons := e.reasons.ids
	for _, o := range outcomes {
		reason := uint32(reasonNone)
		if o.Reason != "" {
			reason, reasons = reasons[0], reasons[1:]
		}
		key := makeRowKey(seriesOutcomes, uint32(o.Outcome)<<24|reason)
		e.rows = append(e.rows, encoderRow{key: key, events: o.Records, reached: o.Records})
	}
	return nil
}

// resolve gives the rows that wait for it the ids of their items.
func (e *encoder) resolve() error {
	if len(e.named) == 0 {
		return nil
	}
	err := e.store.items.resolve(&e.names)
	if err == nil {
		for i, at := range e.named {
			e.rows[at].key |= rowKey(e.names.ids[i])
		}
	}
	e.names.reset()
	e.named = e.named[:0]
	return err
}

// write writes the rows of one partial. ok is false where it has none.
func (e *encoder) write(p *windows.Partial, rows []encoderRow) (at presence, ok bool, err error) {
	at.start = p.Minute()
	e.order = e.order[:0]
	for i := range rows {
		e.order = append(e.order, ordered{key: rows[i].key, at: uint32(i)})
	}
	e.orderTmp = sortRows(e.order, e.orderTmp)
	tables, err := e.tables(p)
	if err != nil || len(rows) == 0 && len(tables) == 0 {
		return at, false, err
	}
	base, top := e.store.reach(at.start)
	e.direct, e.keep = base == levelMinute, top > levelMinute
	if e.keep {
		e.late.begin(at.start, base, top, tables)
	}
	e.key = blockKey{level: levelMinute, start: at.start, part: e.part}.append(e.key[:0])
	e.writer.begin(e.set)
	for _, o := range e.order {
		if err := e.writeRow(&rows[o.at]); err != nil {
			return at, false, err
		}
	}
	at.info, err = e.writer.finish(tables)
	return at, true, err
}

func (e *encoder) writeRow(row *encoderRow) error {
	if row.n == denseShape {
		at := int(row.at) * sketches.RegisterCount
		return e.writer.put(&record{
			key: row.key, events: row.events, reached: row.reached,
			dense: e.dense[at : at+sketches.RegisterCount],
		})
	}
	tokens := e.tokens[row.at : row.at+uint32(row.n)]
	e.tokensTmp = sortTokens(tokens, e.tokensTmp)
	return e.writer.putTokens(row.key, row.events, row.reached, false, tokens)
}

// tables returns what types know of the items that found no slot, by series.
func (e *encoder) tables(p *windows.Partial) ([]typeTables, error) {
	var out []typeTables
	for _, s := range p.Series() {
		if s.Dimension != "" {
			continue
		}
		table, heap, ok := p.Sketch(s)
		if !ok {
			continue
		}
		e.value = appendSeries(e.value[:0], s)
		id, err := e.store.series.find(e.store.db, e.value)
		if err != nil {
			return nil, err
		}
		out = append(out, typeTables{series: id, table: table, heap: heap})
	}
	slices.SortFunc(out, func(a, b typeTables) int { return cmp.Compare(a.series, b.series) })
	return out, nil
}

func (e *encoder) set(row rowKey, value []byte) error {
	if e.keep && row.series() <= lastSeries {
		e.late.add(value)
	}
	if !e.direct {
		return nil
	}
	binary.BigEndian.PutUint64(e.key[blockKeySize-8:], uint64(row))
	return e.batch.Set(e.key, value, nil)
}

// outcomeCount is how many outcomes there are. Their numbers are part of the format.
const outcomeCount = windows.Late + 1

func compareOutcomes(a, b windows.OutcomeCount) int {
	return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), strings.Compare(a.Reason, b.Reason))
}
