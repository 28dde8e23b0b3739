package ingest

import "bytes"

// format finds the records of one file, and reads them. What it says depends on
// the file alone, not on how much of it is in the buffer.
type format interface {
	// next looks for the next record in b[pos:end], and if it is wanted reads it
	// into d.record. eof says that the file ends at end. Behind it there are slack
	// bytes, which may be written; b[end] is 0.
	next(d *decoder, b []byte, pos, end int, eof, wanted bool) piece
}

// piece is what was found.
type piece struct {
	found    found
	from, to int    // of a record
	next     int    // where to look for the next one
	reason   string // why it is malformed, if that is seen already
}

type found uint8

const (
	aRecord found = iota
	aFault        // a record that is malformed for reason
	nothing       // what is before next is no record
	more          // more bytes are needed; or at the end of the file, there is no record any more
)

// lines is a format with a record a line: NDJSON.
type lines struct {
	skipping bool // in a line that is too long
}

// split looks for the next line.
func (l *lines) split(b []byte, pos int, eof bool) piece {
	n := bytes.IndexByte(b[pos:], '\n')
	if l.skipping {
		if n < 0 {
			return piece{found: more, next: len(b)}
		}
		l.skipping = false
		return piece{found: nothing, next: pos + n + 1}
	}
	to, next := pos+n, pos+n+1
	if n < 0 {
		if to, next = len(b), len(b); to-pos <= MaxRecord && (!eof || to == pos) {
			return piece{found: more, next: pos}
		}
		l.skipping = to-pos > MaxRecord
	}
	switch {
	case to-pos > MaxRecord:
		return piece{found: aFault, reason: reasonLong, next: next}
	case skipWhite(b[:to], pos) == to:
		return piece{found: nothing, next: next}
	}
	return piece{from: pos, to: to, next: next}
}

func (l *lines) next(d *decoder, b []byte, pos, end int, eof, wanted bool) piece {
	if wanted && !l.skipping {
		// The fast pass finds the end of the line by itself, and does not take a
		// line for complete without it.
		if next, ok := d.fast.decode(b, pos, &d.record); ok && next-pos <= MaxRecord+1 {
			return piece{next: next}
		}
	}
	p := l.split(b[:end], pos, eof)
	if wanted && p.found == aRecord {
		d.strictly(b[p.from:p.to])
	}
	return p
}

// json reads the JSON object b[from:to].
func (d *decoder) json(b []byte, from, to int) {
	behind := b[to]
	b[to] = '\n' // where the fast pass ends
	next, ok := d.fast.decode(b, from, &d.record)
	b[to] = behind
	if !ok || next != to+1 {
		d.strictly(b[from:to])
	}
}

func (d *decoder) strictly(b []byte) {
	d.strict.decode(b, d.names, &d.record)
}

// values is a format with objects that don't care for lines: in an array, or one
// after the other.
type values struct {
	array  bool
	inside bool    // in an array
	first  bool    // before its first element
	behind bool    // an array, what comes is none: all the rest are lines
	long   bool    // in a value that is too long
	at     nesting // where in that
	lines  lines   // what is neither array nor object
}

// nesting is how deep inside of a value of JSON one is.
type nesting struct {
	depth   int
	text    bool // in a string
	escaped bool // behind a backslash
}

// through reads b and returns the index of the byte that ends the value: the
// comma or bracket behind an element of an array, or the closing brace of an
// object. If there is none it returns -1, and knows where it is.
func (n *nesting) through(b []byte, element bool) int {
	for i, c := range b {
		switch {
		case n.escaped:
			n.escaped = false
		case n.text:
			n.escaped = c == '\\'
			n.text = c != '"'
		case c == '"':
			n.text = true
		case c == '{', c == '[':
			n.depth++
		case n.depth == 0 && element && (c == ',' || c == ']'):
			return i
		case c == '}', c == ']':
			n.depth = max(0, n.depth-1)
			if n.depth == 0 && !element {
				return i
			}
		}
	}
	return -1
}

// split looks for the next value.
func (v *values) split(b []byte, pos int, eof bool) piece {
	switch {
	case v.behind, v.lines.skipping:
		return v.lines.split(b, pos, eof)
	case v.long:
		return v.skip(b, pos)
	}
	pos = skipWhite(b, pos)
	switch {
	case pos == len(b) && v.inside && eof:
		v.inside = false
		return piece{found: aFault, reason: reasonArrayCut, next: pos}
	case pos == len(b):
		return piece{found: more, next: pos}
	case v.array && !v.inside && b[pos] == '[':
		v.inside, v.first = true, true
		return piece{found: nothing, next: pos + 1}
	case v.array && v.first && b[pos] == ']':
		v.inside, v.first = false, false
		return piece{found: nothing, next: pos + 1}
	case v.array && !v.inside, !v.array && b[pos] != '{':
		v.behind = v.array
		return v.lines.split(b, pos, eof)
	}
	var n nesting
	end := n.through(b[pos:], v.array)
	to := pos + end
	switch {
	case end < 0 && len(b)-pos > MaxRecord:
		v.long, v.at = true, n
		return piece{found: aFault, reason: reasonLong, next: len(b)}
	case end < 0 && !eof:
		return piece{found: more, next: pos}
	case end < 0 && v.array:
		v.inside = false
		return piece{found: aFault, reason: reasonArrayCut, next: len(b)}
	case end < 0:
		return piece{from: pos, to: len(b), next: len(b)} // an object that ends too early
	}
	v.ended(b[to])
	p := piece{from: pos, to: to, next: to + 1}
	if !v.array {
		p.to++
	}
	if p.to-p.from > MaxRecord {
		return piece{found: aFault, reason: reasonLong, next: p.next}
	}
	return p
}

func (v *values) skip(b []byte, pos int) piece {
	end := v.at.through(b[pos:], v.array)
	if end < 0 {
		return piece{found: more, next: len(b)}
	}
	v.long = false
	v.ended(b[pos+end])
	return piece{found: nothing, next: pos + end + 1}
}

// ended takes note of what has ended a value.
func (v *values) ended(by byte) {
	v.first = false
	v.inside = v.inside && by == ','
}

func (v *values) next(d *decoder, b []byte, pos, end int, eof, wanted bool) piece {
	p := v.split(b[:end], pos, eof)
	if wanted && p.found == aRecord {
		d.json(b, p.from, p.to)
	}
	return p
}

func skipWhite(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}
