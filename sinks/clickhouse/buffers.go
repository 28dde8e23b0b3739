package clickhouse

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/ClickHouse/ch-go/proto"
	chcolumn "github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"tidemark/windows"
)

// buffer gathers the values of one column of a block.
type buffer interface {
	// moveTo puts the values into the column of the driver, and forgets them.
	moveTo(c chcolumn.Interface) error
}

// numbers are values that the driver takes as they are. The element type is that of
// the column, so that nothing is converted.
type numbers[T int8 | uint16 | int32 | int64 | uint64] []T

func (n *numbers[T]) moveTo(c chcolumn.Interface) error {
	_, err := c.Append([]T(*n))
	*n = (*n)[:0]
	return err
}

// texts are strings, in one piece.
type texts struct {
	bytes []byte
	ends  []int
	views []string
}

func (t *texts) add(s []byte) {
	t.bytes = append(t.bytes, s...)
	t.ends = append(t.ends, len(t.bytes))
}

func (t *texts) moveTo(c chcolumn.Interface) error {
	whole, start := string(t.bytes), 0
	t.views = t.views[:0]
	for _, end := range t.ends {
		t.views = append(t.views, whole[start:end])
		start = end
	}
	t.bytes, t.ends = t.bytes[:0], t.ends[:0]
	_, err := c.Append(t.views)
	clear(t.views)
	return err
}

// The columns below are given to the driver as bytes in the native format, which it
// decodes like those of a server. Its own way takes each element by reflection.

// words are strings of which there are few different ones.
type words struct {
	index map[string]uint32
	list  [][]byte
	rows  []byte // numbers of the words, 4 bytes each
	n     int
}

// number returns the number of a word until the next moveTo.
func (w *words) number(s string) uint32 {
	n, ok := w.index[s]
	if !ok {
		if w.index == nil {
			w.index = make(map[string]uint32)
		}
		if len(w.list) == 0 { // the column's default must come first
			w.list = append(w.list, nil)
			w.index[""] = 0
		}
		if n, ok = w.index[s]; !ok {
			n = uint32(len(w.list))
			w.list = append(w.list, []byte(s))
			w.index[s] = n
		}
	}
	return n
}

func (w *words) add(number uint32) {
	w.rows = binary.LittleEndian.AppendUint32(w.rows, number)
	w.n++
}

func (w *words) moveTo(c chcolumn.Interface) error {
	if w.n == 0 {
		return nil
	}
	const (
		numbersOf4Bytes = 2
		ownWords        = 1<<9 | 1<<10
	)
	var head []byte
	head = binary.LittleEndian.AppendUint64(head, ownWords|numbersOf4Bytes)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(w.list)))
	for _, s := range w.list {
		head = binary.AppendUvarint(head, uint64(len(s)))
		head = append(head, s...)
	}
	head = binary.LittleEndian.AppendUint64(head, uint64(w.n))
	err := decode(c, w.n, head, w.rows)
	clear(w.index)
	w.list, w.rows, w.n = w.list[:0], w.rows[:0], 0
	return err
}

// numberLists is a column Array(UInt32): where each list ends, in numbers, and all of
// them.
type numberLists struct {
	ends []byte
	all  []byte
	n    uint64 // numbers so far
	rows int
}

func (l *numberLists) add(list []uint32) {
	for _, n := range list {
		l.all = binary.LittleEndian.AppendUint32(l.all, n)
	}
	l.n += uint64(len(list))
	l.ends = binary.LittleEndian.AppendUint64(l.ends, l.n)
	l.rows++
}

func (l *numberLists) moveTo(c chcolumn.Interface) error {
	err := decode(c, l.rows, l.ends, l.all)
	*l = numberLists{ends: l.ends[:0], all: l.all[:0]}
	return err
}

// saidTexts is a column Tuple(DateTime64(3, 'UTC'), String).
type saidTexts struct {
	at    []byte
	texts []byte
	rows  int
}

func (t *saidTexts) add(s windows.Text) {
	t.at = binary.LittleEndian.AppendUint64(t.at, uint64(s.At))
	t.texts = binary.AppendUvarint(t.texts, uint64(len(s.Value)))
	t.texts = append(t.texts, s.Value...)
	t.rows++
}

func (t *saidTexts) moveTo(c chcolumn.Interface) error {
	err := decode(c, t.rows, t.at, t.texts)
	*t = saidTexts{at: t.at[:0], texts: t.texts[:0]}
	return err
}

// decode fills an empty column of the driver.
func decode(c chcolumn.Interface, rows int, parts ...[]byte) error {
	readers := make([]io.Reader, len(parts))
	for i, p := range parts {
		readers[i] = bytes.NewReader(p)
	}
	return c.Decode(proto.NewReader(io.MultiReader(readers...)), rows)
}
