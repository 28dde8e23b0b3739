package clickhouse

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tidemark/sinks"
	"tidemark/windows"
)

// maxMonths is how many partitions an insert spans at most (CH3).
const maxMonths = 50

// maxSeries bounds the series that are numbered at once.
const maxSeries = 1 << 16

// writer writes seals. The inserts of a delivery are open at the same time, so that
// rows are looked at once. Its memory serves one delivery after the other; a writer
// that has failed is not used again.
type writer struct {
	ctx      context.Context // of the delivery
	conn     driver.Conn
	database string

	minutes  minuteBuffers
	viewers  viewerBuffers
	outcomes outcomeBuffers
	inserts  []*insert // of those, in that order

	rollups [levelDay + 1]rollup
	numbers []uint32 // scratch

	series map[windows.Series]uint32
	months map[int]bool // of the inserts that are open
	rows   []uint64     // in item_minutes, of each seal
}

func newWriter(conn driver.Conn, database string) *writer {
	w := &writer{
		conn: conn, database: database,
		series: make(map[windows.Series]uint32), months: make(map[int]bool),
	}
	for _, to := range []struct {
		table table
		block block
	}{{itemMinutes, &w.minutes}, {itemViewers, &w.viewers}, {outcomes, &w.outcomes}} {
		w.inserts = append(w.inserts, &insert{table: to.table, database: database, conn: conn, block: to.block})
	}
	for l := range w.rollups {
		w.rollups[l] = rollup{level: level(l), emit: w.addViewers}
	}
	return w
}

// The inserts by their place.
const (
	toMinutes = iota
	toViewers
	toOutcomes
)

// write writes whole seals, and returns when they are there.
func (w *writer) write(ctx context.Context, seals []*sinks.Seal) error {
	w.ctx = ctx
	defer func() {
		for _, i := range w.inserts {
			i.abort()
		}
	}()
	for _, s := range seals {
		if err := check(s); err != nil {
			return stopped("seal %s: %w", nameOf(s.Identity), err)
		}
	}
	w.rows = make([]uint64, len(seals))
	for minute := range minutesOf(seals) {
		if err := w.minute(minute); err != nil {
			return err
		}
	}
	if err := w.send(); err != nil {
		return err
	}
	if err := w.writeItems(seals); err != nil {
		return err
	}
	return w.writeSeals(seals)
}

// nameOf names a seal in messages.
func nameOf(id windows.Identity) string {
	return fmt.Sprintf("(%016x, %d, %s, %d)", id.E, id.Partition, id.To.F.Time().Format(time.RFC3339), id.To.S)
}

// check returns what the columns cannot hold of a seal, beside its rows (CH4).
func check(s *sinks.Seal) error {
	var errs []error
	if s.Partition < 0 || s.Partition > math.MaxUint16 {
		errs = append(errs, fmt.Errorf("partition %d: at most %d", s.Partition, math.MaxUint16))
	}
	for _, f := range []windows.Minute{s.To.F, s.From.F} {
		if f > windows.MaxMinute {
			errs = append(errs, fmt.Errorf("floor %d is after %s", f, windows.MaxMinute.Time().Format(time.RFC3339)))
		}
	}
	for _, p := range s.Partials {
		if m := p.Minute(); m >= windows.MaxMinute {
			errs = append(errs, fmt.Errorf("minute %d is not before %s", m, windows.MaxMinute.Time().Format(time.RFC3339)))
		}
	}
	for _, i := range s.Items {
		for _, t := range []windows.Text{i.Title, i.URL, i.Image} {
			if t.At < 0 || t.At >= windows.MaxTime {
				errs = append(errs, fmt.Errorf("item %q: time %d of a text is not in [0, %d)", i.Item, t.At, windows.MaxTime))
			}
		}
	}
	return errors.Join(errs...)
}

// sealed is a minute of a seal.
type sealed struct {
	sinks.Partial
	windows.Identity
	seal int // its number in the delivery
}

// minutesOf yields what seals hold of each minute, by time: so what is united is
// next to each other, and so are months.
func minutesOf(seals []*sinks.Seal) iter.Seq[[]sealed] {
	return func(yield func([]sealed) bool) {
		var all []sealed
		for i, s := range seals {
			for _, p := range s.Partials {
				all = append(all, sealed{p, s.Identity, i})
			}
		}
		slices.SortStableFunc(all, func(a, b sealed) int { return cmp.Compare(a.Minute(), b.Minute()) })
		for len(all) > 0 {
			n := 1
			for n < len(all) && all[n].Minute() == all[0].Minute() {
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// minute writes what seals hold of one minute.
func (w *writer) minute(of []sealed) error {
	if err := w.enter(of[0].Minute()); err != nil {
		return err
	}
	for _, p := range of {
		if err := w.partial(p, len(of) == 1); err != nil {
			return err
		}
	}
	return w.rollups[levelMinute].flush()
}

// partial writes a minute of a seal; alone says that no other seal has a part of it.
func (w *writer) partial(p sealed, alone bool) error {
	minute, series := p.Minute(), p.Series()
	numbers := make([]uint32, len(series))
	for i, s := range series {
		numbers[i] = w.numberOf(s)
	}
	var err error
	p.Each(func(n int, r windows.Row) bool {
		k := key{Series: series[n], series: numbers[n], kind: r.Kind, item: r.Item}
		if err = w.count(p, minute, k, r); err == nil {
			err = w.see(minute, k, r, alone)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	for _, o := range p.Outcomes() {
		w.outcomes.add(p.Identity, minute, o)
		if err := w.inserts[toOutcomes].added(w.ctx); err != nil {
			return err
		}
	}
	return nil
}

// enter makes sure that the inserts may have rows of the minute.
func (w *writer) enter(m windows.Minute) error {
	t := m.Time()
	month := t.Year()*12 + int(t.Month())
	if !w.months[month] && len(w.months) == maxMonths {
		if err := w.send(); err != nil {
			return err
		}
	}
	w.months[month] = true
	return nil
}

func (w *writer) numberOf(s windows.Series) uint32 {
	n, ok := w.series[s]
	if !ok {
		n = uint32(len(w.series))
		w.series[s] = n
	}
	return n
}

// count writes the count of a row, unless others add up to it.
func (w *writer) count(p sealed, minute windows.Minute, k key, r windows.Row) error {
	if k.kind == windows.Site {
		return nil
	}
	w.minutes.add(p.Identity, minute, k, r)
	w.rows[p.seal]++
	return w.inserts[toMinutes].added(w.ctx)
}

// see writes the viewers of a row, if any are known, or unites them with those of
// other seals.
func (w *writer) see(minute windows.Minute, k key, r windows.Row, alone bool) error {
	if r.Registers == nil && len(r.Tokens) == 0 {
		return nil
	}
	if alone {
		return w.addViewers(levelMinute, minute, k, r)
	}
	if r.Registers != nil {
		if err := r.Registers.Valid(); err != nil {
			return refuse(minute, k, err)
		}
	}
	return w.rollups[levelMinute].add(minute, k, r)
}

// addViewers writes the viewers of a minute, hour or day, and passes them on to the
// next level.
func (w *writer) addViewers(l level, start windows.Minute, k key, r windows.Row) (err error) {
	if r.Registers != nil {
		w.numbers, err = appendRegisters(w.numbers[:0], r.Registers)
	} else {
		w.numbers, err = appendTokens(w.numbers[:0], r.Tokens)
	}
	if err != nil {
		return refuse(start, k, err)
	}
	w.viewers.add(l, start, k, w.numbers)
	if err := w.inserts[toViewers].added(w.ctx); err != nil {
		return err
	}
	if l == levelDay {
		return nil
	}
	return w.rollups[l+1].add(start, k, r)
}

// refuse says that viewers are not what they must be.
func refuse(start windows.Minute, k key, err error) error {
	return stopped("viewers of item %q, type %q, at %s: %w", k.item, k.Type, start.Time().Format(time.RFC3339), err)
}

// send ends the inserts: then all rows so far are there.
func (w *writer) send() error {
	for l := range w.rollups {
		if err := w.rollups[l].flush(); err != nil {
			return err
		}
	}
	for _, i := range w.inserts {
		if err := i.send(w.ctx); err != nil {
			return err
		}
	}
	clear(w.months)
	if len(w.series) > maxSeries {
		clear(w.series)
	}
	return nil
}

// writeItems writes what was said of items.
func (w *writer) writeItems(seals []*sinks.Seal) error {
	i := &insert{table: items, database: w.database, conn: w.conn, block: &itemBuffers{}}
	defer i.abort()
	for _, s := range seals {
		for _, info := range s.Items {
			i.block.(*itemBuffers).add(info)
			if err := i.added(w.ctx); err != nil {
				return err
			}
		}
	}
	return i.send(w.ctx)
}

// writeSeals writes that the seals are there (CH2).
func (w *writer) writeSeals(written []*sinks.Seal) error {
	b := &sealBuffers{}
	i := &insert{table: seals, database: w.database, conn: w.conn, block: b}
	defer i.abort()
	for n, s := range written {
		b.add(s, hex.EncodeToString(s.Log[:]), w.rows[n])
	}
	return i.send(w.ctx)
}
