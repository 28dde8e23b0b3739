package ingest

import (
	"encoding/binary"
	"math"

	"tidemark/sketches"
	"tidemark/windows"
)

// stored is a record of the journal: an event without what tells who somebody is.
// FORMAT.md is its form, byte by byte. Its slices point into the payload that it
// was parsed from.
type stored struct {
	reason []byte // why what was sent is malformed; then there is nothing else

	time    int64 // Unix ms
	hasTime bool  // else it is the stamp of the record
	history bool  // it may be of any age

	kid                       sketches.KeyID // of the key that the hashes are under
	user, id, owner           uint64
	hasUser, hasID, hasOwner  bool
	item, typ                 []byte
	info                      windows.Info
	watched                   float64 // ms
	hasWatched, bot, botKnown bool    // bot: the source's own verdict
	dims                      []storedDim

	imported Imported // of a batch of an import, in the first of its events
}

// Imported says how far an import has been taken, once a batch of it is durable.
type Imported struct {
	Name    string // 1–MaxImport bytes; "": it is no batch of an import
	Through int64  // number of the last record taken, at least 1
}

// storedDim is the value of a dimension that was declared when the event came.
type storedDim struct{ name, value []byte }

// storedVersion is the first byte of every record.
const storedVersion = 1

// The bits of the second byte. The others are 0, and whoever does not know one that
// is set does not know what the record means.
const (
	hasTimeBit = 1 << iota
	hasUserBit
	hasIDBit
	hasOwnerBit
	malformedBit
	historyBit
	knownBits = 1<<iota - 1
)

const hashBits = hasUserBit | hasIDBit | hasOwnerBit

// The tags of what may follow. Those that are not here are skipped.
const (
	tagTitle     = 1
	tagURL       = 2
	tagImage     = 3
	tagWatched   = 4
	tagBot       = 5
	tagDimension = 6
	tagImported  = 11
)

// MaxImport is how long the name of an import may be in bytes.
const MaxImport = 128

// MaxReason is how long a reason may be in bytes.
const MaxReason = 256

func (s *stored) append(dst []byte) []byte {
	flags := byte(0)
	set := func(has bool, bit byte) {
		if has {
			flags |= bit
		}
	}
	if len(s.reason) > 0 {
		dst = append(dst, storedVersion, malformedBit)
		return appendBytes(dst, s.reason)
	}
	set(s.hasTime, hasTimeBit)
	set(s.hasUser, hasUserBit)
	set(s.hasID, hasIDBit)
	set(s.hasOwner, hasOwnerBit)
	set(s.history, historyBit)
	dst = append(dst, storedVersion, flags)
	if s.hasTime {
		dst = binary.AppendUvarint(dst, uint64(s.time))
	}
	if flags&hashBits != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.kid))
	}
	for _, h := range []struct {
		has  bool
		hash uint64
	}{{s.hasUser, s.user}, {s.hasID, s.id}, {s.hasOwner, s.owner}} {
		if h.has {
			dst = binary.LittleEndian.AppendUint64(dst, h.hash)
		}
	}
	dst = appendBytes(appendBytes(dst, s.item), s.typ)
	dst = appendText(dst, tagTitle, s.info.Title)
	dst = appendText(dst, tagURL, s.info.URL)
	dst = appendText(dst, tagImage, s.info.Image)
	if s.hasWatched {
		dst = binary.LittleEndian.AppendUint64(append(dst, tagWatched, 8), math.Float64bits(s.watched))
	}
	if s.botKnown {
		dst = append(dst, tagBot, 1, 0)
		if s.bot {
			dst[len(dst)-1] = 1
		}
	}
	for _, d := range s.dims {
		dst = append(dst, tagDimension)
		dst = binary.AppendUvarint(dst, uint64(uvarintSize(len(d.name))+len(d.name)+len(d.value)))
		dst = append(appendBytes(dst, d.name), d.value...)
	}
	if m := s.imported; m.Name != "" {
		dst = append(dst, tagImported)
		dst = binary.AppendUvarint(dst, uint64(uvarintSize(int(m.Through))+len(m.Name)))
		dst = append(binary.AppendUvarint(dst, uint64(m.Through)), m.Name...)
	}
	return dst
}

// ImportedOf returns what a record of the journal says of an import: if it is the first
// event of a batch of one.
func ImportedOf(payload []byte) Imported {
	var s stored
	if s.parse(payload) != "" {
		return Imported{}
	}
	return s.imported
}

// size returns at least as many bytes as append appends.
func (s *stored) size() int {
	n := 128 + len(s.imported.Name) + len(s.reason) + len(s.item) + len(s.typ) + len(s.info.Title) + len(s.info.URL) + len(s.info.Image)
	for _, d := range s.dims {
		n += 24 + len(d.name) + len(d.value)
	}
	return n
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func appendText(dst []byte, tag byte, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	return appendBytes(append(dst, tag), text)
}

func uvarintSize(n int) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], uint64(n))
}

// parse reads a record. It returns why it is none, or "".
func (s *stored) parse(b []byte) (reason string) {
	*s = stored{dims: s.dims[:0]}
	if len(b) < 2 {
		return reasonStored
	}
	flags := b[1]
	if b[0] != storedVersion || flags&^knownBits != 0 {
		return reasonVersion
	}
	p := parser{b: b[2:]}
	s.history = flags&historyBit != 0
	if flags&malformedBit != 0 {
		s.reason = p.bytes(1, MaxReason)
		if flags != malformedBit || p.bad || len(p.b) > 0 {
			return reasonStored
		}
		return ""
	}
	if s.hasTime = flags&hasTimeBit != 0; s.hasTime {
		s.time = int64(p.uint(uint64(windows.MaxTime) - 1))
	}
	if flags&hashBits != 0 {
		s.kid = sketches.KeyID(p.uint64())
	}
	if s.hasUser = flags&hasUserBit != 0; s.hasUser {
		s.user = p.uint64()
	}
	if s.hasID = flags&hasIDBit != 0; s.hasID {
		s.id = p.uint64()
	}
	if s.hasOwner = flags&hasOwnerBit != 0; s.hasOwner {
		s.owner = p.uint64()
	}
	s.item = p.bytes(1, MaxItem)
	s.typ = p.bytes(1, MaxType)
	for !p.bad && len(p.b) > 0 {
		s.tail(&p)
	}
	if p.bad {
		return reasonStored
	}
	return ""
}

// tail reads one of what follows.
func (s *stored) tail(p *parser) {
	tag := p.uint(math.MaxUint64)
	v := parser{b: p.bytes(0, math.MaxInt)}
	text := func(into *[]byte, most int) {
		p.bad = p.bad || *into != nil || len(v.b) < 1 || len(v.b) > most
		*into, v.b = v.b, nil
	}
	switch tag {
	case tagTitle:
		text(&s.info.Title, MaxTitle)
	case tagURL:
		text(&s.info.URL, MaxURL)
	case tagImage:
		text(&s.info.Image, MaxImage)
	case tagWatched:
		p.bad = p.bad || s.hasWatched
		s.watched, s.hasWatched = math.Float64frombits(v.uint64()), true
	case tagBot:
		p.bad = p.bad || s.botKnown
		s.bot, s.botKnown = v.uint(1) == 1, true
	case tagDimension:
		d := storedDim{name: v.bytes(1, MaxRecord)}
		d.value, v.b = v.b, nil
		p.bad = p.bad || len(d.value) < 1 || len(d.value) > MaxDimension
		for _, other := range s.dims {
			p.bad = p.bad || string(other.name) == string(d.name)
		}
		s.dims = append(s.dims, d)
	case tagImported:
		p.bad = p.bad || s.imported.Name != ""
		s.imported.Through = int64(v.uint(math.MaxInt64))
		p.bad = p.bad || s.imported.Through < 1 || len(v.b) < 1 || len(v.b) > MaxImport
		s.imported.Name, v.b = string(v.b), nil
	default:
		return // of a later build
	}
	p.bad = p.bad || v.bad || len(v.b) > 0
}

// parser takes a record apart. Once bad it stays so, and gives zeros.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) uint(most uint64) uint64 {
	v, n := binary.Uvarint(p.b)
	if p.bad || n <= 0 || v > most {
		p.bad = true
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) uint64() uint64 {
	if p.bad || len(p.b) < 8 {
		p.bad = true
		return 0
	}
	v := binary.LittleEndian.Uint64(p.b)
	p.b = p.b[8:]
	return v
}

// bytes reads a length and so many bytes.
func (p *parser) bytes(least, most int) []byte {
	n := p.uint(uint64(most))
	if p.bad || n < uint64(least) || n > uint64(len(p.b)) {
		p.bad = true
		return nil
	}
	v := p.b[:n:n]
	p.b = p.b[n:]
	return v
}
