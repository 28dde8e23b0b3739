package clickhouse

import (
	"encoding/binary"

	"tidemark/sketches"
	"tidemark/windows"
)

// level is a size of time of item_viewers; its number is that in the column.
type level int8

const (
	levelMinute level = iota
	levelHour
	levelDay
)

// levelMinutes is how many minutes a level's rows are about.
var levelMinutes = [...]windows.Minute{levelMinute: 1, levelHour: 60, levelDay: 24 * 60}

// A rollup is emptied when it has so many keys, or so many with registers, which
// take 16 KiB each. All it loses by that is that a key has a further row.
const (
	maxRolled = 1 << 16
	maxDense  = 1 << 10
)

// rollup unites the viewers of one minute, hour or day before they are written: of
// the partitions, and of minutes that are delivered at once, one row is left of many.
type rollup struct {
	level  level
	start  windows.Minute
	index  map[string]int // by series, kind and item
	keys   []rolledKey
	names  []byte
	seen   []*sketches.Viewers // of each key; those behind are free
	dense  int
	lookup []byte   // scratch
	tokens []uint32 // scratch
	emit   func(l level, start windows.Minute, k key, r windows.Row) error
}

type rolledKey struct {
	key     // without the item
	end int // of it in names
}

// add unites a row of m: a minute, or the start of an hour.
func (r *rollup) add(m windows.Minute, k key, row windows.Row) error {
	v, err := r.at(m, k)
	if err != nil {
		return err
	}
	wasDense := v.Dense()
	if row.Registers != nil {
		v.AddRegisters(row.Registers)
	} else {
		v.AddTokens(row.Tokens)
	}
	if !wasDense && v.Dense() {
		r.dense++
	}
	return nil
}

// at returns the viewers of a key in the start that m lies in.
func (r *rollup) at(m windows.Minute, k key) (*sketches.Viewers, error) {
	start := m - m%levelMinutes[r.level]
	if start != r.start || len(r.keys) >= maxRolled || r.dense >= maxDense {
		if err := r.flush(); err != nil {
			return nil, err
		}
		r.start = start
	}
	r.lookup = binary.LittleEndian.AppendUint32(r.lookup[:0], k.series)
	r.lookup = append(r.lookup, byte(k.kind))
	r.lookup = append(r.lookup, k.item...)
	i, ok := r.index[string(r.lookup)]
	if !ok {
		i = len(r.keys)
		if r.index == nil {
			r.index = make(map[string]int)
		}
		r.index[string(r.lookup)] = i
		r.names = append(r.names, k.item...)
		k.item = nil // borrowed
		r.keys = append(r.keys, rolledKey{k, len(r.names)})
		if i == len(r.seen) {
			r.seen = append(r.seen, sketches.NewViewers(0)) // of one key in a deployment, so of none
		}
	}
	return r.seen[i], nil
}

// flush emits what has been united, in the order in which keys came.
func (r *rollup) flush() error {
	begin := 0
	for i, k := range r.keys {
		k.item = r.names[begin:k.end]
		begin = k.end
		r.tokens = r.seen[i].AppendTokens(r.tokens[:0])
		if err := r.emit(r.level, r.start, k.key, windows.Row{Tokens: r.tokens, Registers: r.seen[i].Registers()}); err != nil {
			return err
		}
	}
	r.clear()
	return nil
}

// clear forgets what has been united, and keeps a little of the memory.
func (r *rollup) clear() {
	for i := range r.keys {
		if r.seen[i].Dense() {
			r.seen[i] = sketches.NewViewers(0)
		} else {
			r.seen[i].Reset()
		}
	}
	clear(r.index)
	r.keys, r.names, r.dense = r.keys[:0], r.names[:0], 0
}
