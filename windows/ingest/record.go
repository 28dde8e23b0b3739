package ingest

import (
	"tidemark/sketches"
	"tidemark/windows"
)

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

// fieldKind is what a field is for.
type fieldKind uint8

const (
	ignored fieldKind = iota
	itemField
	typeField
	userField
	idField
	timeField
	botField
	watchedField
	textField // a string that nothing here uses yet
	dimensionField
)

// field is what a name in a record stands for.
type field struct {
	kind      fieldKind
	dimension int    // index of a declared dimension
	wrong     string // the reason if its value has a wrong type
	long      string // the reason if the value of a dimension is too long
}

var ignoredField = &field{kind: ignored}

// record is what was read of one record. Its slices point into the buffer that it
// was read from, or into the decoder's arena.
type record struct {
	item, typ, user, id []byte
	time                int64 // Unix ms
	timed               bool  // has a time of its own
	broken              bool  // has a value of a declared dimension
	dims                [][]byte
	reason              string // why it is malformed; "" if it is not

	clock clock // stays when the record is reset
}

func (r *record) reset() {
	r.item, r.typ, r.user, r.id = nil, nil, nil, nil
	r.time, r.timed, r.reason = 0, false, ""
	if r.broken {
		clear(r.dims)
		r.broken = false
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
	text := kind == aString || kind == anInt || kind == aCell
	switch f.kind {
	case ignored:
		return
	case timeField:
		r.setTime(kind, v)
		return
	case botField:
		if kind != aBool && (kind != aCell || !isBoolCell(v)) {
			r.fail(f.wrong)
		}
		return
	case watchedField:
		if kind != anInt && kind != aNumber && (kind != aCell || !isNumber(v)) {
			r.fail(f.wrong)
		}
		return
	case dimensionField:
		r.setDimension(f, kind, v)
		return
	default:
	}
	if !text {
		r.fail(f.wrong)
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
	default:
	}
}

func (r *record) setTime(kind valueKind, v []byte) {
	var reason string
	switch {
	case kind == aString || kind == aCell && !isNumber(v):
		r.time, reason = r.clock.parse(v)
	case kind == anInt || kind == aNumber || kind == aCell:
		r.time, reason = parseMillis(v)
	default:
		reason = reasonTimeType
	}
	r.timed = true
	if reason != "" {
		r.fail(reason)
	}
}

func (r *record) setDimension(f *field, kind valueKind, v []byte) {
	switch {
	case kind == anObject:
		r.fail(f.wrong)
	case len(v) > MaxDimension:
		r.fail(f.long)
	case len(v) > 0:
		r.dims[f.dimension] = v
		r.broken = true
	}
}

// check looks at what can only be seen once the whole record is read.
func (r *record) check() {
	switch {
	case r.reason != "":
	case len(r.item) == 0:
		r.reason = reasonItemMissing
	case len(r.item) > MaxItem:
		r.reason = reasonItemLong
	case len(r.typ) > MaxType:
		r.reason = reasonTypeLong
	case len(r.user) > MaxUser:
		r.reason = reasonUserLong
	case len(r.id) > MaxID:
		r.reason = reasonIDLong
	}
}

func isBoolCell(v []byte) bool {
	switch string(v) {
	case "0", "1", "true", "false":
		return true
	}
	return false
}

// decoder turns records into events. It is used by one goroutine.
type decoder struct {
	hasher     sketches.Hasher
	typ        []byte // of an event without one
	stamp      int64  // of every record, Unix ms
	partitions uint64
	names      map[string]*field // what the names of JSON mean

	fast   fastJSON
	strict strictJSON
	arena  []byte // unescaped strings of the current chunk's records
	record record
}

func newDecoder(cfg *FilesConfig) *decoder {
	d := &decoder{
		hasher:     cfg.Hasher,
		typ:        []byte(cfg.Type),
		partitions: uint64(cfg.Partitions),
		names:      fieldNames(cfg.Dimensions),
	}
	d.record.dims = make([][]byte, len(cfg.Dimensions))
	d.fast.init(d.names)
	d.strict.init()
	return d
}

// fieldNames returns what each name stands for. A dimension of the name of a
// field of an event would never get a value: FilesConfig.Validate refuses it.
func fieldNames(dimensions []string) map[string]*field {
	names := map[string]*field{
		"item":       {kind: itemField, wrong: reasonItemType},
		"type":       {kind: typeField, wrong: reasonTypeType},
		"user":       {kind: userField, wrong: reasonUserType},
		"id":         {kind: idField, wrong: reasonIDType},
		"time":       {kind: timeField, wrong: reasonTimeType},
		"bot":        {kind: botField, wrong: reasonBot},
		"watched_ms": {kind: watchedField, wrong: reasonWatched},
	}
	for name, wrong := range textReasons {
		names[name] = &field{kind: textField, wrong: wrong}
	}
	for i, name := range dimensions {
		if names[name] == nil {
			names[name] = &field{
				kind:      dimensionField,
				dimension: i,
				wrong:     name + ": not a string, a number or a bool",
				long:      name + ": longer than 256 bytes",
			}
		}
	}
	return names
}

func fieldOf(names map[string]*field, name []byte) *field {
	if f := names[string(name)]; f != nil {
		return f
	}
	return ignoredField
}

// route returns the partition of a record: by user, so that one place sees all
// that a person does; else by event ID, so that one place sees its duplicates;
// else by number, to spread the load. What is malformed has neither.
func (d *decoder) route(offset int64, user, id uint64, r *record) int {
	switch {
	case r.reason != "":
	case len(r.user) > 0:
		return int(user % d.partitions)
	case len(r.id) > 0:
		return int(id % d.partitions)
	}
	return int(uint64(offset) % d.partitions)
}

// emit puts the record, as the one of number offset, into a chunk.
func (d *decoder) emit(c *chunk, offset int64) {
	r := &d.record
	var user, id uint64
	if r.reason == "" {
		if len(r.user) > 0 {
			user = d.hasher.User(r.user)
		}
		if len(r.id) > 0 {
			id = d.hasher.ID(r.id)
		}
	}
	ev := c.add(d.route(offset, user, id, r))
	ev.Offset, ev.Stamp = offset, d.stamp
	if r.reason != "" {
		*ev = windows.Event{Offset: offset, Stamp: d.stamp, Reason: r.reason, Outcome: windows.Malformed}
		return
	}
	ev.Time = d.stamp
	if r.timed {
		ev.Time = r.time
	}
	ev.Item, ev.Type = r.item, r.typ
	if len(r.typ) == 0 {
		ev.Type = d.typ
	}
	ev.Dims = nil
	if r.broken {
		ev.Dims = c.keep(r.dims)
	}
	ev.ItemHash = d.hasher.Item(r.item)
	ev.User, ev.HasUser = user, len(r.user) > 0
	ev.ID, ev.HasID = id, len(r.id) > 0
	ev.Reason, ev.Outcome = "", windows.Counted
}
