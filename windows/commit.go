package windows

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Commit is what a log keeps for a partition of it, beside the offset R that reading goes
// on from. It alone says which records are held, and what is under way, so that another
// owner goes on from it whatever became of the one before. In the journal it is the
// store's row of the position, with no pair under way: what is stored is delivered.
//
// A commit is a value: what changes it returns another one, which holds once the log has
// taken it. The steps are: Begin, and only then does the seal leave the partition; the
// seal is stored and goes to the sinks; when all have the oldest, Deliver.
type Commit struct {
	E  uint64    // random, made by the first commit, before anything is counted
	To Pair      // held, and delivered everywhere
	P  []Pair    // begun since, oldest first
	V  []Version // of settings, in the order made
	H  Mark      // the last record before the newest S
	R  int64     // where to replay from; not in the text: it is the log's own offset
}

// Version is settings, by a hash of their text, and the offset from which on they hold: it
// takes back what earlier ones say from there on.
type Version struct {
	From     int64
	Settings uint64
}

const (
	// MaxCommitText is how long the text of a commit may be, in bytes. Kafka takes 4,096.
	MaxCommitText = 3500
	// keptVersions is how many settings are kept at least; those back to R always are.
	keptVersions = 16
	// spareFrom is how many pairs are under way when cuts become rare, and close at least
	// spareMinutes: so that a sink that is away for long does not fill the commit at once.
	spareFrom    = 64
	spareMinutes = 5
)

// ErrCommitFull says that no further pair can be begun before one is delivered.
var ErrCommitFull = errors.New("the commit is full: no more can be sealed before the sinks have some of it")

// Newest returns the newest pair begun.
func (c *Commit) Newest() Pair {
	if n := len(c.P); n > 0 {
		return c.P[n-1]
	}
	return c.To
}

// Begin returns the commit with a pair begun, whose last record before S is h. It fails
// with ErrCommitFull.
func (c *Commit) Begin(to Pair, h Mark) (Commit, error) {
	from := c.Newest()
	if to == from || to.F < from.F || to.S < from.S {
		return Commit{}, fmt.Errorf("from %v to %v is no step", from, to)
	}
	next := *c
	next.P = append(slices.Clip(c.P), to)
	next.H = h
	if len(next.Text()) > MaxCommitText {
		return Commit{}, ErrCommitFull
	}
	return next, nil
}

// Deliver returns the commit with the oldest pair begun delivered, whose seal says that
// reading goes on from r.
func (c *Commit) Deliver(r int64) Commit {
	next := *c
	next.To, next.P = c.P[0], c.P[1:]
	next.R = max(c.R, r)
	next.V = next.trimmed()
	return next
}

// Settle returns the commit with other settings from an offset on, which must not be before
// the newest S, nor before what was read.
func (c *Commit) Settle(v Version) Commit {
	next := *c
	next.V = append(slices.Clip(c.V), v)
	next.V = next.trimmed()
	return next
}

// trimmed returns the settings without those that nothing depends on any more.
func (c *Commit) trimmed() []Version {
	v := c.V
	for len(v) > keptVersions && v[1].From <= c.R {
		v = v[1:]
	}
	return v
}

// Settings returns the settings that hold for the record at an offset.
func (c *Commit) Settings(offset int64) uint64 {
	for _, v := range slices.Backward(c.V) {
		if v.From <= offset {
			return v.Settings
		}
	}
	return c.V[0].Settings
}

// Follows reports whether a log that ends at end can be the one that the commit is of.
// hash returns the hash of a record, and false where the log has none there any more, which
// says nothing.
func (c *Commit) Follows(end int64, hash func(offset int64) (uint64, bool)) bool {
	s := c.Newest().S
	if s == 0 {
		return true
	}
	if end < s {
		return false
	}
	have, ok := hash(c.H.Offset)
	return !ok || have == c.H.Hash
}

// sparing returns how many minutes a cut must close at least when so many pairs are under
// way.
func sparing(pairs int) Minute {
	if pairs >= spareFrom {
		return spareMinutes
	}
	return 1
}

// commitVersion begins the text of a commit.
const commitVersion = "1."

// Text returns the commit as text. Part of the format: "1.", then in base64 (RFC 4648,
// URL-safe, without padding) E (8 bytes, little-endian) and varints: F, S; the number of
// pairs, of each by how much F and S grow; the number of versions, of each the change
// of its offset (zigzag) and its hash (8 bytes); how far H is before the newest S, and its
// hash (8 bytes).
func (c *Commit) Text() string {
	b := binary.LittleEndian.AppendUint64(nil, c.E)
	at := Pair{}
	step := func(to Pair) {
		b = binary.AppendUvarint(b, uint64(to.F-at.F))
		b = binary.AppendUvarint(b, uint64(to.S-at.S))
		at = to
	}
	step(c.To)
	b = binary.AppendUvarint(b, uint64(len(c.P)))
	for _, p := range c.P {
		step(p)
	}
	b = binary.AppendUvarint(b, uint64(len(c.V)))
	from := int64(0)
	for _, v := range c.V {
		b = binary.AppendVarint(b, v.From-from)
		b = binary.LittleEndian.AppendUint64(b, v.Settings)
		from = v.From
	}
	b = binary.AppendUvarint(b, uint64(at.S-c.H.Offset))
	b = binary.LittleEndian.AppendUint64(b, c.H.Hash)
	return commitVersion + base64.RawURLEncoding.EncodeToString(b)
}

// ErrCommit says that a text is not that of a commit, or of one of a later build.
var ErrCommit = errors.New("not a commit that this build knows")

// ParseCommit reads the text of a commit at the offset r.
func ParseCommit(text string, r int64) (Commit, error) {
	rest, ok := strings.CutPrefix(text, commitVersion)
	if !ok {
		return Commit{}, fmt.Errorf("%w: it begins with %.10q", ErrCommit, text)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil {
		return Commit{}, fmt.Errorf("%w: %w", ErrCommit, err)
	}
	p := commitParser{b: b}
	c := Commit{R: r, E: p.uint64()}
	at := Pair{}
	step := func() Pair {
		f, s := p.uvarint(), p.uvarint()
		if f > uint64(MaxMinute-at.F) || s > uint64(math.MaxInt64-at.S) {
			p.bad = true
			return Pair{}
		}
		at = Pair{F: at.F + Minute(f), S: at.S + int64(s)}
		return at
	}
	c.To = step()
	for range p.count(2) {
		before := at
		c.P = append(c.P, step())
		p.bad = p.bad || at == before
	}
	from := int64(0)
	for range p.count(9) {
		from += p.varint()
		p.bad = p.bad || from < 0
		c.V = append(c.V, Version{From: from, Settings: p.uint64()})
	}
	back := p.uvarint()
	p.bad = p.bad || back > uint64(at.S)
	c.H = Mark{Offset: at.S - int64(back), Hash: p.uint64()}
	if p.bad || len(p.b) > 0 || r < 0 || c.Text() != text {
		return Commit{}, fmt.Errorf("%w: %.40q", ErrCommit, text)
	}
	return c, nil
}

// commitParser reads from the front of b. Once bad it gives zeros.
type commitParser struct {
	b   []byte
	bad bool
}

func (p *commitParser) number(v uint64, n int) uint64 {
	if p.bad || n <= 0 {
		p.bad = true
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *commitParser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	return p.number(v, n)
}

func (p *commitParser) varint() int64 {
	v, n := binary.Varint(p.b)
	return int64(p.number(uint64(v), n))
}

func (p *commitParser) uint64() uint64 {
	if p.bad || len(p.b) < 8 {
		p.bad = true
		return 0
	}
	v := binary.LittleEndian.Uint64(p.b)
	p.b = p.b[8:]
	return v
}

// count reads how many there are of what takes so many bytes at least.
func (p *commitParser) count(least int) int {
	n := p.uvarint()
	if n > uint64(len(p.b)/least) {
		p.bad = true
		return 0
	}
	return int(n)
}
