package windowstest

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"strings"

	"tidemark/sketches"
	"tidemark/windows"
)

// Merged is what rows say when those of one key are merged: counts add, viewers
// unite. It keeps tokens in plain slices and registers as the definition of
// HyperLogLog has them, so it shares no code with the engine's own merging. The
// zero value is empty. Not safe for concurrent use.
type Merged struct {
	sums map[mergedKey]*mergedSum
}

type mergedKey struct {
	minute windows.Minute
	series windows.Series
	kind   windows.Kind
	item   string
}

func (k mergedKey) String() string {
	return fmt.Sprintf("%s %+v kind %d item %q", k.minute.Time().Format("2006-01-02T15:04Z"), k.series, k.kind, k.item)
}

type mergedSum struct {
	events, reached uint64
	tokens          []uint32 // sorted and different after settle
	registers       []byte   // nil while only tokens were added
}

// AddContent adds every row of a window or a partial.
func (m *Merged) AddContent(c *windows.Content) {
	series := c.Series()
	c.Each(func(s int, r windows.Row) bool {
		m.AddRow(c.Minute(), series[s], r)
		return true
	})
}

// AddRow adds one row. Its slices are copied.
func (m *Merged) AddRow(minute windows.Minute, s windows.Series, r windows.Row) {
	m.Add(minute, s, r.Kind, string(r.Item), r)
}

// Add adds one row whose item is known by other means than its name.
func (m *Merged) Add(minute windows.Minute, s windows.Series, kind windows.Kind, item string, r windows.Row) {
	if m.sums == nil {
		m.sums = make(map[mergedKey]*mergedSum)
	}
	k := mergedKey{minute, s, kind, item}
	sum := m.sums[k]
	if sum == nil {
		sum = new(mergedSum)
		m.sums[k] = sum
	}
	sum.events += r.Events
	sum.reached += r.Reached
	sum.tokens = append(sum.tokens, r.Tokens...)
	if r.Registers != nil {
		sum.dense()
		for i, rank := range r.Registers {
			sum.registers[i] = max(sum.registers[i], rank)
		}
	}
	if len(sum.tokens) > 4*sketches.MaxTokens {
		sum.settle()
	}
}

func (s *mergedSum) dense() {
	if s.registers == nil {
		s.registers = make([]byte, sketches.RegisterCount)
	}
}

// settle brings the sum to its one form: sorted tokens, at most MaxTokens, or
// registers.
func (s *mergedSum) settle() {
	slices.Sort(s.tokens)
	s.tokens = slices.Compact(s.tokens)
	if s.registers == nil && len(s.tokens) <= sketches.MaxTokens {
		return
	}
	s.dense()
	for _, t := range s.tokens {
		index, rank := sketches.RegisterOf(t)
		s.registers[index] = max(s.registers[index], rank)
	}
	s.tokens = nil
}

// Len returns how many keys there are.
func (m *Merged) Len() int { return len(m.sums) }

// Events returns the sum of the counts of all rows of a kind in series of types.
func (m *Merged) Events(kind windows.Kind) uint64 {
	var n uint64
	for k, s := range m.sums {
		if k.kind == kind && k.series.Dimension == "" {
			n += s.events
		}
	}
	return n
}

// Digest returns a hash of everything, bit for bit, sorted by key.
func (m *Merged) Digest() [sha256.Size]byte {
	h := sha256.New()
	for _, k := range m.sorted() {
		writeKey(h, k)
		writeSum(h, m.sums[k])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Diff returns the first few differences to another one, or "" if there is none.
func (m *Merged) Diff(other *Merged) string {
	var diffs []string
	for _, k := range m.sorted() {
		s, o := m.sums[k], other.sums[k]
		if o == nil {
			diffs = append(diffs, fmt.Sprintf("%v: %d events against none", k, s.events))
			continue
		}
		s.settle()
		o.settle()
		switch {
		case s.events != o.events || s.reached != o.reached:
			diffs = append(diffs, fmt.Sprintf("%v: %d events (%d reached) against %d (%d)", k, s.events, s.reached, o.events, o.reached))
		case !slices.Equal(s.tokens, o.tokens):
			diffs = append(diffs, fmt.Sprintf("%v: %d tokens against %d others", k, len(s.tokens), len(o.tokens)))
		case !slices.Equal(s.registers, o.registers):
			diffs = append(diffs, fmt.Sprintf("%v: other registers", k))
		}
	}
	for k, o := range other.sums {
		if m.sums[k] == nil {
			diffs = append(diffs, fmt.Sprintf("%v: none against %d events", k, o.events))
		}
	}
	if len(diffs) == 0 {
		return ""
	}
	return fmt.Sprintf("%d differences:\n%s", len(diffs), strings.Join(diffs[:min(8, len(diffs))], "\n"))
}

func (m *Merged) sorted() []mergedKey {
	keys := make([]mergedKey, 0, len(m.sums))
	for k, s := range m.sums {
		s.settle()
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b mergedKey) int {
		return cmp.Or(cmp.Compare(a.minute, b.minute), compareSeries(a.series, b.series),
			cmp.Compare(a.kind, b.kind), strings.Compare(a.item, b.item))
	})
	return keys
}

func compareSeries(a, b windows.Series) int {
	return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Dimension, b.Dimension),
		strings.Compare(a.Value, b.Value), cmp.Compare(a.Other, b.Other))
}

func writeKey(h hash.Hash, k mergedKey) {
	b := binary.BigEndian.AppendUint32(nil, uint32(k.minute))
	b = append(b, byte(k.series.Other), byte(k.kind))
	for _, s := range []string{k.series.Type, k.series.Dimension, k.series.Value, k.item} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	h.Write(b)
}

func writeSum(h hash.Hash, s *mergedSum) {
	b := binary.BigEndian.AppendUint64(nil, s.events)
	b = binary.BigEndian.AppendUint64(b, s.reached)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.tokens)))
	for _, t := range s.tokens {
		b = binary.BigEndian.AppendUint32(b, t)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.registers)))
	h.Write(append(b, s.registers...))
}

// Tally returns how often a key was counted, and how many different tokens it
// has; ok is false where the key has no row, or registers instead of tokens.
func (m *Merged) Tally(minute windows.Minute, s windows.Series, kind windows.Kind, item string) (events, tokens uint64, ok bool) {
	sum := m.sums[mergedKey{minute, s, kind, item}]
	if sum == nil {
		return 0, 0, false
	}
	sum.settle()
	return sum.events, uint64(len(sum.tokens)), sum.registers == nil
}
