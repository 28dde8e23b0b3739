package ingest

import "tidemark/windows"

// valueKind is what a value is in its record.
type valueKind uint8

const (
	aString  valueKind = iota // JSON, unescaped
	anInt                     // JSON: a number written as an integer
	aNumber                   // JSON: any other number
	aBool                     // JSON: true or false
	aNull                     // JSON: counts as absent, since many producers write it so
	anObject                  // JSON: an object or an array
	aCell                     // CSV: text that may stand for any of the above; empty counts as absent
)

// record is what was read of one record. Its slices point into the buffer that it
// was read from, or into the arena.
type record struct {
	item, typ, user, id []byte
	owner               []byte // of the item, by whom
	bot, watched        []byte // as they are written: the source's own verdict, and a number
	time                int64  // Unix ms
	hasTime             bool   // has a time of its own
	hasInfo             bool   // info is not empty
	hasDims             bool   // dims are not empty: it counts in breakdowns too
	dims                [][]byte
	info                windows.Info
	dropped             int    // texts that were too long
	reason              string // why it is malformed; "" if it is not

	// What stays when the record is reset.
	clock clock
	arena []byte // unescaped strings of the present chunk
}

func (r *record) reset() {
	r.item, r.typ, r.user, r.id = nil, nil, nil, nil
	r.owner, r.bot, r.watched = nil, nil, nil
	r.time, r.hasTime, r.dropped, r.reason = 0, false, 0, ""
	if r.hasInfo {
		r.info, r.hasInfo = windows.Info{}, false
	}
	if r.hasDims {
		clear(r.dims)
		r.hasDims = false
	}
}

// fail keeps the first fault.
func (r *record) fail(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
}

// set takes a field's value.
func (r *record) set(f *field, kind valueKind, v []byte) {
	if kind == aNull || kind == aCell && len(v) == 0 {
		return
	}
	switch f.kind {
	case ignored:
	case timeField:
		r.setTime(f, kind, v)
	case botField:
		if kind != aBool && (kind != aCell || !isBoolCell(v)) {
			r.fail(f.wrong)
		}
		r.bot = v
	case watchedField:
		if kind != anInt && kind != aNumber && (kind != aCell || !isNumber(v)) {
			r.fail(f.wrong)
		}
		r.watched = v
	case dimensionField:
		if kind == anObject {
			r.fail(f.wrong)
			return
		}
		r.setText(f, v)
	default:
		if kind != aString && kind != anInt && kind != aCell {
			r.fail(f.wrong)
			return
		}
		r.setText(f, v)
	}
}

func (r *record) setTime(f *field, kind valueKind, v []byte) {
	var reason string
	switch kind {
	case aString:
		r.time, reason = r.clock.parse(v)
	case aCell:
		r.time, reason = r.clock.parseCell(v)
	case anInt, aNumber:
		r.time, reason = parseMillis(v)
	default:
		reason = f.wrong
	}
	r.hasTime = true
	if reason != "" {
		r.fail(reason)
	}
}

// setText takes a value that is text. An empty one is as good as none.
func (r *record) setText(f *field, v []byte) {
	switch {
	case len(v) == 0:
		return
	case len(v) > f.max && f.optional:
		r.dropped++
		return
	case len(v) > f.max:
		r.fail(f.long)
		return
	}
	switch f.kind {
	case itemField:
		r.item = v
	case typeField:
		r.typ = v
	case userField:
		r.user = v
	case idField:
		r.id = v
	case ownerField:
		r.owner = v
	case titleField:
		r.info.Title, r.hasInfo = v, true
	case urlField:
		r.info.URL, r.hasInfo = v, true
	case imageField:
		r.info.Image, r.hasInfo = v, true
	case dimensionField:
		r.dims[f.dimension], r.hasDims = v, true
	default:
	}
}

// check looks at what can only be seen once the whole record is read.
func (r *record) check() {
	if len(r.item) == 0 {
		r.fail(reasonItemMissing)
	}
}

func isBoolCell(v []byte) bool {
	switch string(v) {
	case "0", "1", "true", "false":
		return true
	}
	return false
}
