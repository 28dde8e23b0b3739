package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// rows is a format with a record a row of CSV, as RFC 4180 has it: commas, quotes
// where they are needed, CRLF or LF. It takes what encoding/csv takes, with two
// differences. A line break inside quotes stays as it is written, since names are
// compared byte by byte. And a quote that is out of place, or never closed, spoils
// the line that it stands in alone, instead of all up to the next quote.
type rows struct {
	columns  []*field // what each column is
	skipping bool     // in a line that is too long
}

// newRows reads the header at the beginning of b, and returns where the rows
// begin. item says whether there is a column of that name.
func newRows(b []byte, eof bool, names map[string]*field) (t *rows, next int, item bool, err error) {
	t = &rows{}
	var p piece
	for p = t.split(b, 0, eof); p.found == nothing; p = t.split(b, p.next, eof) {
	}
	if p.found != aRecord || !utf8.Valid(b[p.from:p.to]) {
		return nil, 0, false, nil
	}
	taken := make(map[*field]string)
	eachCell(b[p.from:p.to], nil, func(_ int, cell []byte) {
		name := string(cell)
		switch name {
		case "ts_ms":
			cell = []byte("time")
		case "event_id":
			cell = []byte("id")
		}
		f := fieldOf(names, cell)
		t.columns = append(t.columns, f)
		if f == ignoredField {
			return
		}
		if other, twice := taken[f]; twice && err == nil {
			err = fmt.Errorf("columns %q and %q of the header are the same", other, name)
		}
		taken[f] = name
		item = item || f.kind == itemField
	})
	return t, p.next, item, err
}

func (t *rows) next(d *decoder, b []byte, pos, end int, eof, wanted bool) piece {
	if wanted && !t.skipping {
		if next, ok := t.plain(b, pos, end, &d.record); ok {
			return piece{next: next}
		}
	}
	p := t.split(b[:end], pos, eof)
	if wanted && p.found == aRecord {
		t.decode(d, b[p.from:p.to])
	}
	return p
}

// plain reads the row at b[pos] in one pass, if it is complete, right and without
// quotes. It returns where the next one begins, or false.
func (t *rows) plain(b []byte, pos, end int, r *record) (next int, ok bool) {
	r.reset()
	var (
		nonASCII uint64
		column   int
		from     = pos // of the cell
	)
	for i := pos; i < end; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		nonASCII |= w
		for m := zeros(w^','*ones) | zeros(w^'\n'*ones) | zeros(w^'"'*ones); m != 0; m &= m - 1 {
			at := i + bits.TrailingZeros64(m)/8
			if at >= end || b[at] == '"' || column == len(t.columns) {
				return 0, false
			}
			last := b[at] == '\n'
			cell := b[from:at:at]
			if last && len(cell) > 0 && cell[len(cell)-1] == '\r' {
				cell = cell[:len(cell)-1]
			}
			if last && column == 0 && len(cell) == 0 {
				return 0, false // no row at all
			}
			r.set(t.columns[column], aCell, cell)
			column++
			from = at + 1
			if !last {
				continue
			}
			if column < len(t.columns) || at-pos > MaxRecord || nonASCII&highs != 0 && !utf8.Valid(b[pos:at]) {
				return 0, false
			}
			r.check()
			return from, r.reason == ""
		}
	}
	return 0, false
}

// zeros returns the high bit of each byte of w that is 0, and no other.
func zeros(w uint64) uint64 {
	const low = ^uint64(highs)
	return ^(((w & low) + low) | w | low)
}

// split looks for the next row.
func (t *rows) split(b []byte, pos int, eof bool) piece {
	n := bytes.IndexByte(b[pos:], '\n')
	if t.skipping {
		if n < 0 {
			return piece{found: more, next: len(b)}
		}
		t.skipping = false
		return piece{found: nothing, next: pos + n + 1}
	}
	to, next := pos+n, pos+n+1 // of the line
	if n < 0 {
		if to, next = len(b), len(b); to-pos <= MaxRecord && (!eof || to == pos) {
			return piece{found: more, next: pos}
		}
		t.skipping = to-pos > MaxRecord
	}
	if to-pos > MaxRecord {
		return piece{found: aFault, reason: reasonLong, next: next}
	}
	if to > pos && b[to-1] == '\r' {
		to--
	}
	if to == pos {
		return piece{found: nothing, next: next}
	}
	if bytes.IndexByte(b[pos:to], '"') < 0 {
		return piece{from: pos, to: to, next: next}
	}
	p := splitQuoted(b, pos, eof)
	if p.found == aFault || p.found == more && len(b)-pos > MaxRecord || p.found == aRecord && p.to-pos > MaxRecord {
		return piece{found: aFault, reason: reasonQuote, next: next}
	}
	return p
}

// splitQuoted finds the end of a row with quotes in it.
func splitQuoted(b []byte, pos int, eof bool) piece {
	i := pos
	for {
		var last bool // field of the row
		if i < len(b) && b[i] == '"' {
			i++
			for {
				n := bytes.IndexByte(b[i:], '"')
				if n < 0 {
					return unfinished(eof, pos)
				}
				if i += n + 1; i == len(b) || b[i] != '"' {
					break
				}
				i++
			}
			if !eof && len(b)-i < len("\r\n") {
				return piece{found: more, next: pos}
			}
			last = i == len(b) || b[i] == '\n' || b[i] == '\r' && (i+1 == len(b) || b[i+1] == '\n')
			if !last && b[i] != ',' {
				return piece{found: aFault}
			}
		} else {
			for i < len(b) && b[i] != ',' && b[i] != '\n' && b[i] != '"' {
				i++
			}
			if i == len(b) && !eof {
				return piece{found: more, next: pos}
			}
			if i < len(b) && b[i] == '"' {
				return piece{found: aFault}
			}
			if last = i == len(b) || b[i] == '\n'; last && b[i-1] == '\r' {
				i--
			}
		}
		if last {
			p := piece{from: pos, to: i, next: i}
			if p.next < len(b) && b[p.next] == '\r' {
				p.next++
			}
			if p.next < len(b) {
				p.next++
			}
			return p
		}
		i++ // the comma
	}
}

// unfinished is a row whose quote is not closed.
func unfinished(eof bool, pos int) piece {
	if eof {
		return piece{found: aFault}
	}
	return piece{found: more, next: pos}
}

func (t *rows) decode(d *decoder, row []byte) {
	r := &d.record
	r.reset()
	valid := utf8.Valid(row)
	n := 0
	r.arena = eachCell(row, r.arena, func(column int, cell []byte) {
		if n++; column >= len(t.columns) {
			return
		}
		if !valid && !utf8.Valid(cell) {
			r.fail(t.columns[column].utf8)
		}
		r.set(t.columns[column], aCell, cell)
	})
	switch {
	case !valid:
		r.fail(reasonUTF8) // in a column too many
	case n != len(t.columns):
		r.reason = reasonColumns // which outweighs what is wrong with cells: they are others
	default:
		r.check()
	}
}

// eachCell yields the cells of a row that split has found. A cell with quotes in
// it is put into arena.
func eachCell(row, arena []byte, yield func(column int, cell []byte)) []byte {
	for column := 0; ; column++ {
		if len(row) == 0 || row[0] != '"' {
			n := bytes.IndexByte(row, ',')
			if n < 0 {
				yield(column, row)
				return arena
			}
			yield(column, row[:n:n])
			row = row[n+1:]
			continue
		}
		row = row[1:]
		from, cell := len(arena), []byte(nil)
		for {
			n := bytes.IndexByte(row, '"')
			if n+1 == len(row) || row[n+1] != '"' {
				cell, row = row[:n:n], row[n+1:]
				break
			}
			arena = append(arena, row[:n+1]...)
			row = row[n+2:]
		}
		if len(arena) > from {
			arena = append(arena, cell...)
			cell = arena[from:len(arena):len(arena)]
		}
		yield(column, cell)
		if len(row) == 0 {
			return arena
		}
		row = row[1:] // the comma
	}
}
