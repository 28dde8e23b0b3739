package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tidemark/windows"
)

// position is how far a partition of a log is in the store.
type position struct {
	windows.Position
	seq      uint64 // of its newest seal
	part     uint32 // the part of that seal
	outcomes []windows.OutcomeCount
}

// A position's row. Part of the format:
//
//	uvarint(version) E(8, little-endian) uvarint each: to F, to S, R, offset of H
//	hash of H(8, little-endian) uvarint each: seq, part, n
//	n × (uvarint(outcome) uvarint(len reason) reason uvarint(records))
const positionVersion = 1

func (p *position) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, positionVersion)
	dst = binary.LittleEndian.AppendUint64(dst, p.E)
	dst = appendPair(dst, p.To)
	dst = binary.AppendUvarint(dst, uint64(p.R))
	dst = appendMark(dst, p.H)
	dst = binary.AppendUvarint(dst, p.seq)
	dst = binary.AppendUvarint(dst, uint64(p.part))
	dst = binary.AppendUvarint(dst, uint64(len(p.outcomes)))
	for _, o := range p.outcomes {
		dst = binary.AppendUvarint(dst, uint64(o.Outcome))
		dst = appendString(dst, o.Reason)
		dst = binary.AppendUvarint(dst, o.Records)
	}
	return dst
}

func parsePosition(key, value []byte) (*position, error) {
	d := decoder{b: value}
	if v := d.uint(math.MaxInt); v != positionVersion && !d.bad {
		return nil, damaged(key, "version %d of a position; this build knows %d", v, positionVersion)
	}
	p := &position{}
	p.E = d.uint64()
	p.To = d.pair()
	p.R = int64(d.uint(math.MaxInt64))
	p.H = d.mark()
	p.seq = d.uint(math.MaxUint64)
	p.part = uint32(d.uint(math.MaxUint32))
	n := d.uint(uint64(len(d.b)))
	for range n {
		o := windows.OutcomeCount{Outcome: windows.Outcome(d.uint(uint64(outcomeCount) - 1))}
		o.Reason = d.string()
		o.Records = d.uint(math.MaxUint64)
		if last := len(p.outcomes) - 1; d.bad || last >= 0 && compareOutcomes(p.outcomes[last], o) >= 0 {
			d.bad = true
			break
		}
		p.outcomes = append(p.outcomes, o)
	}
	if d.bad || len(d.b) > 0 {
		return nil, damaged(key, "not the row of a position")
	}
	return p, nil
}

// follow says what to do with a seal: take it, or nothing, since the store has it
// or what comes after it; or it is an error, for records in between are missing.
func (p *position) follow(s *windows.Seal) (take bool, err error) {
	switch {
	case s.E != p.E:
		return false, fmt.Errorf("%w: it is of incarnation %016x, the store's log of %016x: this is another log", ErrGap, s.E, p.E)
	case s.To == s.From || s.To.F < s.From.F || s.To.S < s.From.S:
		return false, fmt.Errorf("%w: it goes from %v to %v, which is no step", ErrGap, s.From, s.To)
	case p.To == s.From:
		return true, nil
	case s.To.F <= p.To.F && s.To.S <= p.To.S:
		return false, nil
	}
	return false, fmt.Errorf("%w: it begins at %v, the store is at %v: cut it again, from there", ErrGap, s.From, p.To)
}

// book returns outcomes with more added; neither is changed.
func book(outcomes, more []windows.OutcomeCount) []windows.OutcomeCount {
	outcomes = slices.Clone(outcomes)
	for _, m := range more {
		i, found := slices.BinarySearchFunc(outcomes, m, compareOutcomes)
		if found {
			outcomes[i].Records += m.Records
		} else {
			outcomes = slices.Insert(outcomes, i, m)
		}
	}
	return outcomes
}
