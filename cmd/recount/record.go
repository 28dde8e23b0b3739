package recount

import (
	"encoding/binary"
	"errors"
)

// record is what the journal keeps of an event, as far as it is counted.
type record struct {
	reason     string // why it is malformed; "" if it is not
	time       int64  // Unix ms
	hasTime    bool
	id         uint64
	hasID      bool
	history    bool
	item, kind string
}

// The bits of a record's flags.
const (
	flagTime = 1 << iota
	flagUser
	flagID
	flagOwner
	flagMalformed
	flagHistory
	flagsKnown = 1<<iota - 1
)

// errVersion says that the records are of a form that is not known here.
var errVersion = errors.New("the journal has records that a later build has written: use that one")

// The reasons that reading itself gives.
const (
	reasonForm = "record: not as the journal keeps them"
	reasonKey  = "kid: unknown key"
)

// decode reads a record, whose hashes must be under the key.
func decode(b []byte, key uint64) (record, error) {
	d := reader{b: b}
	version, flags := d.byte(), d.byte()
	if d.bad {
		return record{reason: reasonForm}, nil
	}
	if version != 1 || flags&^flagsKnown != 0 {
		return record{}, errVersion
	}
	r := record{hasTime: flags&flagTime != 0, hasID: flags&flagID != 0, history: flags&flagHistory != 0}
	if flags&flagMalformed != 0 {
		if r.reason = d.text(); d.bad {
			r.reason = reasonForm
		}
		return r, nil
	}
	if r.hasTime {
		r.time = int64(d.uvarint())
	}
	known := true
	if flags&(flagUser|flagID|flagOwner) != 0 {
		known = d.uint64() == key
	}
	if flags&flagUser != 0 {
		d.uint64()
	}
	if r.hasID {
		r.id = d.uint64()
	}
	if flags&flagOwner != 0 {
		d.uint64()
	}
	r.item, r.kind = d.text(), d.text()
	for !d.bad && len(d.b) > 0 { // titles, dimensions and the like are not counted here
		d.uvarint()
		d.text()
	}
	switch {
	case d.bad:
		r.reason = reasonForm
	case !known:
		r.reason = reasonKey
	}
	return r, nil
}

// reader reads from the front of b. Once bad it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string { return string(r.take(r.uvarint())) }
