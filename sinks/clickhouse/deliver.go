package clickhouse

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tidemark/sinks"
	"tidemark/sketches"
	"tidemark/windows"
)

// maxMonths is how many partitions an insert spans at most (H3).
const maxMonths = 50

// maxSeries bounds the series that are numbered at once.
const maxSeries = 1 << 16

// delivery writes seals. Its inserts are open at the same time, so that rows are
// looked at once.
type delivery struct {
	ctx      context.Context
	conn     driver.Conn
	database string

	minutes  minuteBuffers
	viewers  viewerBuffers
	rolled   rolledBuffers
	outcomes outcomeBuffers
	inserts  []*insert // of those, in that order

	hour, day rollup
	form      viewers                // scratch
	tokens    [levelDay + 1][]uint32 // scratch: a day is written while an hour is

	series map[windows.Series]uint32
	months map[int]bool // of the inserts that are open
	rows   []uint64     // in item_minutes, of each seal
}

func newDelivery(ctx context.Context, conn driver.Conn, database string) *delivery {
	d := &delivery{
		ctx: ctx, conn: conn, database: database,
		series: make(map[windows.Series]uint32), months: make(map[int]bool),
	}
	for _, to := range []struct {
		table table
		block block
	}{{itemMinutes, &d.minutes}, {viewersMinutes, &d.viewers}, {viewersRolled, &d.rolled}, {outcomes, &d.outcomes}} {
		d.inserts = append(d.inserts, &insert{table: to.table, database: database, conn: conn, block: to.block})
	}
	d.hour = rollup{level: levelHour, emit: d.addHour}
	d.day = rollup{level: levelDay, emit: d.addDay}
	return d
}

// The inserts by their place.
const (
	toMinutes = iota
	toViewers
	toRolled
	toOutcomes
)

// write writes whole seals, and returns when they are there.
func (d *delivery) write(seals []*sinks.Seal) error {
	defer func() {
		for _, i := range d.inserts {
			i.abort()
		}
	}()
	for _, s := range seals {
		if err := check(s); err != nil {
			return stopped("seal %s: %w", nameOf(s.Identity), err)
		}
	}
	for _, s := range seals {
		d.rows = append(d.rows, 0)
		for _, p := range s.Partials {
			if err := d.partial(s, p); err != nil {
				return err
			}
		}
	}
	if err := d.send(); err != nil {
		return err
	}
	if err := d.writeItems(seals); err != nil {
		return err
	}
	return d.writeSeals(seals)
}

// nameOf names a seal in messages.
func nameOf(id windows.Identity) string {
	return fmt.Sprintf("(%016x, %d, %s, %d)", id.E, id.Partition, id.To.F.Time().Format(time.RFC3339), id.To.S)
}

// check returns what the columns cannot hold of a seal, beside its rows (H4).
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

// partial writes a minute of a seal.
func (d *delivery) partial(s *sinks.Seal, p sinks.Partial) error {
	minute := p.Minute()
	if err := d.enter(minute); err != nil {
		return err
	}
	series := p.Series()
	numbers := make([]uint32, len(series))
	for i, s := range series {
		numbers[i] = d.numberOf(s)
	}
	var err error
	p.Each(func(n int, r windows.Row) bool {
		k := key{Series: series[n], series: numbers[n], kind: r.Kind, item: r.Item}
		err = d.row(s, minute, k, r)
		return err == nil
	})
	if err != nil {
		return err
	}
	for _, o := range p.Outcomes() {
		d.outcomes.add(s.Identity, minute, o)
		if err := d.inserts[toOutcomes].added(d.ctx); err != nil {
			return err
		}
	}
	return nil
}

// enter makes sure that the inserts may have rows of the minute.
func (d *delivery) enter(m windows.Minute) error {
	t := m.Time()
	month := t.Year()*12 + int(t.Month())
	if !d.months[month] && len(d.months) == maxMonths {
		if err := d.send(); err != nil {
			return err
		}
	}
	d.months[month] = true
	return nil
}

func (d *delivery) numberOf(s windows.Series) uint32 {
	n, ok := d.series[s]
	if !ok {
		n = uint32(len(d.series))
		d.series[s] = n
	}
	return n
}

// row writes a row of a minute: its count, unless others add up to it, and its
// viewers, if any are known.
func (d *delivery) row(s *sinks.Seal, minute windows.Minute, k key, r windows.Row) error {
	if k.kind != windows.Site {
		d.minutes.add(s.Identity, minute, k, r)
		d.rows[len(d.rows)-1]++
		if err := d.inserts[toMinutes].added(d.ctx); err != nil {
			return err
		}
	}
	if r.Registers == nil && len(r.Tokens) == 0 {
		return nil
	}
	var err error
	if r.Registers != nil {
		err = d.form.setRegisters(r.Registers)
	} else {
		err = d.form.setTokens(r.Tokens)
	}
	if err != nil {
		return stopped("seal %s: viewers of %q at %s: %w", nameOf(s.Identity), k.item, minute.Time().Format(time.RFC3339), err)
	}
	d.viewers.add(minute, k, &d.form)
	if err := d.inserts[toViewers].added(d.ctx); err != nil {
		return err
	}
	return d.hour.add(minute, k, r)
}

// addHour writes the viewers of an hour, and passes them on to its day.
func (d *delivery) addHour(start windows.Minute, k key, v *sketches.Viewers) error {
	if err := d.addRolled(levelHour, start, k, v); err != nil {
		return err
	}
	return d.day.add(start, k, windows.Row{Tokens: d.tokens[levelHour], Registers: v.Registers()})
}

func (d *delivery) addDay(start windows.Minute, k key, v *sketches.Viewers) error {
	return d.addRolled(levelDay, start, k, v)
}

// addRolled writes a row of an hour or a day, and leaves the tokens in d.tokens.
func (d *delivery) addRolled(l level, start windows.Minute, k key, v *sketches.Viewers) (err error) {
	tokens := v.AppendTokens(d.tokens[l][:0])
	d.tokens[l] = tokens
	if v.Dense() {
		err = d.form.setRegisters(v.Registers())
	} else {
		err = d.form.setTokens(tokens)
		d.form.addRegisters(tokens)
	}
	if err != nil {
		return err
	}
	d.rolled.add(start, k, &d.form)
	d.rolled.level = append(d.rolled.level, int8(l))
	return d.inserts[toRolled].added(d.ctx)
}

// send ends the inserts: then all rows so far are there.
func (d *delivery) send() error {
	if err := d.hour.flush(); err != nil {
		return err
	}
	if err := d.day.flush(); err != nil {
		return err
	}
	for _, i := range d.inserts {
		if err := i.send(d.ctx); err != nil {
			return err
		}
	}
	clear(d.months)
	if len(d.series) > maxSeries {
		clear(d.series)
	}
	return nil
}

// writeItems writes what was said of items.
func (d *delivery) writeItems(seals []*sinks.Seal) error {
	i := &insert{table: items, database: d.database, conn: d.conn, block: &itemBuffers{}}
	defer i.abort()
	for _, s := range seals {
		for _, info := range s.Items {
			i.block.(*itemBuffers).add(info)
			if err := i.added(d.ctx); err != nil {
				return err
			}
		}
	}
	return i.send(d.ctx)
}

// writeSeals writes that the seals are there (H2).
func (d *delivery) writeSeals(written []*sinks.Seal) error {
	b := &sealBuffers{}
	i := &insert{table: seals, database: d.database, conn: d.conn, block: b}
	defer i.abort()
	for n, s := range written {
		b.add(s, hex.EncodeToString(s.Log[:]), d.rows[n])
	}
	return i.send(d.ctx)
}
