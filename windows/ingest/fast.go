package ingest

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// slack is how many bytes behind the last record of a buffer can be read: the
// fast pass looks at eight or sixteen bytes at a time.
const slack = 16

// fastJSON reads an object of JSON in one pass if it is plain: names without
// escapes, and values that are strings, numbers, true, false or null. Strings with
// escapes, and short arrays and objects that nobody asked for, it gives to the
// strict library one by one. It gives up on everything else, on whatever is wrong,
// and whenever it is in doubt.
//
// The objects of a stream are alike, so it remembers the names that it has seen,
// each with the bytes that stood around it (`,"user":`), and which name came
// after which. A name that is where it is expected costs two comparisons of eight
// bytes. A name's place in the table is its bit in the set that finds names that
// stand twice. None of this decides what an event holds (I2): what the table
// does not know is read byte by byte.
type fastJSON struct {
	names map[string]*field
	known int
	table [maxKnown + 1]knownName // the last one stands for none
	head  lead                    // of the name that an object begins with
}

// maxKnown is the number of bits in the set of names. An object with a name that
// finds no place is left to the strict library.
const maxKnown = 64

// nobody is the index of no name.
const nobody = maxKnown

// knownName is a name that was seen.
type knownName struct {
	lead lead // to it, where it is not the first
	size int
	text [128]byte
}

// lead is all that stands between a value and the next one, the name included:
// from the comma to the colon, or for the first name from the brace to the colon,
// with white space. The two are kept apart, since none may stand for the other.
type lead struct {
	lo, loMask uint64 // its first eight bytes
	hi, hiMask uint64 // the next eight
	size       int
	name       uint8 // index of the name
	next       uint8 // index of the name expected after this one; or nobody
	field      *field
	text       [160]byte
}

func (f *fastJSON) init(names map[string]*field) {
	f.names = names
	f.forget()
}

// forget empties the table: names that come once each must not fill it for good.
func (f *fastJSON) forget() {
	f.known = 0
	f.table[nobody].lead = newLead(nobody, ignoredField)
	f.head = newLead(nobody, ignoredField)
}

// newLead returns the lead of a name whose text is not known: an end of line, which
// no value comes after.
func newLead(name uint8, f *field) lead {
	return lead{lo: '\n', loMask: 0xff, name: name, next: nobody, field: f}
}

func (l *lead) set(text []byte) {
	clear(l.text[:16])
	l.size = copy(l.text[:], text)
	l.lo, l.hi = binary.LittleEndian.Uint64(l.text[:]), binary.LittleEndian.Uint64(l.text[8:])
	l.loMask, l.hiMask = firstBytes(l.size), firstBytes(l.size-8)
}

// Eight bytes at a time.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// decode reads the object that begins at b[pos] into r. It returns where the next
// line begins, or false. An end of line must follow the object. Somewhere in b
// there is an end of line or a 0, and at least slack bytes behind it; nothing else
// is asked of b.
func (f *fastJSON) decode(b []byte, pos int, r *record) (next int, ok bool) {
	r.reset()
	var (
		seen     uint64 // the names of this object
		nonASCII uint64
		i        = pos
		l        = &f.head
		previous = &f.table[nobody].lead
	)
	for {
		lo := binary.LittleEndian.Uint64(b[i:])
		hi := binary.LittleEndian.Uint64(b[i+8:])
		if (lo^l.lo)&l.loMask|(hi^l.hi)&l.hiMask == 0 && (l.size <= 16 || l.matches(b[i:])) {
			i += l.size
		} else {
			var end bool
			if l, i, end, ok = f.read(b, i, i == pos); !ok {
				return 0, false
			}
			if end {
				break
			}
			previous.next = l.name
		}
		if seen>>l.name&1 != 0 {
			return 0, false
		}
		seen |= 1 << l.name

		if b[i] == '"' {
			i++
			from := i
			for {
				w := binary.LittleEndian.Uint64(b[i:])
				// The high bit of each byte that is a quote or a control character,
				// the xor making them neighbours, or a backslash. A borrow can set a
				// bit wrongly only above one that is right.
				m := (((w ^ 2*ones) - 0x21*ones) | ((w ^ '\\'*ones) - ones)) &^ w & highs
				if m != 0 {
					i += bits.TrailingZeros64(m) / 8
					nonASCII |= w & (m&-m - 1)
					break
				}
				nonASCII |= w
				i += 8
			}
			v := b[from:i:i]
			if b[i] != '"' {
				if v, i, ok = r.unquote(b, from, i); !ok {
					return 0, false
				}
			}
			i++
			switch l.field.kind {
			case ignored:
			case timeField:
				r.setTime(l.field, aString, v)
			case botField, watchedField:
				return 0, false
			default:
				r.setText(l.field, v)
			}
		} else if i, ok = scalar(b, i, l.field, r); !ok {
			return 0, false
		}
		if b[i] == '}' {
			i++
			break
		}
		previous, l = l, &f.table[l.next].lead
	}
	i = skipSpace(b, i)
	if b[i] != '\n' || nonASCII&highs != 0 && !utf8.Valid(b[pos:i]) {
		return 0, false
	}
	r.check()
	return i + 1, r.reason == ""
}

func (l *lead) matches(b []byte) bool {
	return len(b) >= l.size && string(b[16:l.size]) == string(l.text[16:l.size])
}

// read reads what stands between two values, or before the first one. end says
// that the object ends instead.
func (f *fastJSON) read(b []byte, start int, first bool) (l *lead, next int, end, ok bool) {
	i := skipSpace(b, start)
	switch {
	case first && b[i] == '{' || !first && b[i] == ',':
		i++
	case !first && b[i] == '}':
		return nil, i + 1, true, true
	default:
		return nil, 0, false, false
	}
	i = skipSpace(b, i)
	if b[i] != '"' {
		return nil, 0, false, false
	}
	i++
	from := i
	for b[i] != '"' {
		if b[i] < ' ' || b[i] == '\\' || b[i] >= utf8.RuneSelf {
			return nil, 0, false, false
		}
		i++
	}
	name := b[from:i]
	i = skipSpace(b, i+1)
	if b[i] != ':' {
		return nil, 0, false, false
	}
	i = skipSpace(b, i+1)
	l, ok = f.learn(name, b[start:i], first)
	return l, i, false, ok
}

// learn returns the lead to a name, with this text from now on.
func (f *fastJSON) learn(name, text []byte, first bool) (l *lead, ok bool) {
	if len(name) > len(f.table[0].text) || len(text) > len(f.head.text) {
		return nil, false
	}
	n := 0
	for n < f.known && string(f.table[n].text[:f.table[n].size]) != string(name) {
		n++
	}
	k := &f.table[n]
	if n == f.known {
		if n == maxKnown {
			f.forget()
			return nil, false
		}
		f.known++
		k.lead = newLead(uint8(n), fieldOf(f.names, name))
		k.size = copy(k.text[:], name)
	}
	l = &k.lead
	if first {
		l = &f.head
		l.name, l.field = k.lead.name, k.lead.field
	}
	l.set(text)
	return l, true
}

// firstBytes is a mask of the first n bytes of eight.
func firstBytes(n int) uint64 {
	switch {
	case n <= 0:
		return 0
	case n >= 8:
		return ^uint64(0)
	}
	return 1<<(8*n) - 1
}

// scalar reads a value that is no string.
func scalar(b []byte, i int, field *field, r *record) (next int, ok bool) {
	literal := func(text string, kind valueKind) (int, bool) {
		end := i + len(text)
		if string(b[i:end]) != text {
			return 0, false
		}
		r.set(field, kind, b[i:end:end])
		return end, true
	}
	switch b[i] {
	case '[', '{':
		return nested(b, i, field)
	case 't':
		return literal("true", aBool)
	case 'f':
		return literal("false", aBool)
	case 'n':
		return literal("null", aNull)
	}
	end, integer := scanNumber(b, i)
	if end < 0 {
		return 0, false
	}
	kind := aNumber
	if integer {
		kind = anInt
	}
	r.set(field, kind, b[i:end:end])
	return end, true
}

// maxNested is how long an array or object may be to be skipped by the fast pass:
// short enough for its depth to be no question.
const maxNested = 1000

// nested skips an array or object, if it is one and nobody asked for it.
func nested(b []byte, i int, field *field) (next int, ok bool) {
	if field.kind != ignored {
		return 0, false
	}
	end := i
	for end < i+maxNested && end < len(b) && b[end] != '\n' {
		end++
	}
	var n nesting
	size := n.through(b[i:end], false) + 1
	return i + size, size > 0 && jsontext.Value(b[i:i+size]).IsValid()
}

// unquote unescapes the string of JSON that begins at b[from]; i is where something
// stands in it that is no plain text. end is where its closing quote is.
func (r *record) unquote(b []byte, from, i int) (v []byte, end int, ok bool) {
	for b[i] != '"' {
		if b[i] == '\\' {
			i++ // what is behind it is escaped
		}
		if b[i] < ' ' {
			return nil, 0, false
		}
		i++
	}
	before := len(r.arena)
	arena, err := jsontext.AppendUnquote(r.arena, b[from-1:i+1])
	if err != nil {
		return nil, 0, false
	}
	r.arena = arena
	return arena[before:len(arena):len(arena)], i, true
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\r' {
		i++
	}
	return i
}
