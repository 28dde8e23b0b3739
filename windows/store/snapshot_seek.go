package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// seriesID returns the number of a series, or 0 if it was never stored.
func (n *Snapshot) seriesID(s windows.Series) (uint32, error) {
	n.key = appendSeries(n.key[:0], s)
	return n.store.series.find(n.pebble, n.key)
}

// show makes a row of a record.
func (n *Snapshot) show(r *record) (windows.Row, error) {
	row := windows.Row{Kind: windows.Item, Events: r.events, Reached: r.reached, Short: r.short}
	switch r.key.item() {
	case itemSite:
		row.Kind = windows.Site
	case itemOverflow:
		row.Kind = windows.Overflow
	}
	if r.dense != nil {
		if !registersValid(r.dense) {
			return windows.Row{}, n.damaged(fmt.Errorf("a register of %v is too high", r.key))
		}
		row.Registers = r.dense
		return row, nil
	}
	n.tokens = decodeTokens(n.tokens[:0], r.tokens)
	row.Tokens = n.tokens
	return row, nil
}

// seek moves the cursor to the block of a part that holds a row, if the part has
// it, and returns the block; nil if all rows of the part are before it.
func (n *Snapshot) seek(p windows.Part, row rowKey) ([]byte, error) {
	if n.cursor == nil {
		c, err := openCursor(n.pebble)
		if err != nil {
			return nil, err
		}
		n.cursor = c
	}
	n.key = keyOf(p, row).append(n.key[:0])
	n.cursor.seek(n.key)
	return n.block(n.key)
}

// keyOf returns the key of a row of a part.
func keyOf(p windows.Part, row rowKey) blockKey {
	k := blockKey{level: p.Level, start: p.Start, part: p.ID, row: row}
	if p.Level == levelEver {
		k.start = 0
	}
	return k
}

// next moves on to the next block of the part.
func (n *Snapshot) next(p windows.Part) ([]byte, error) {
	n.key = keyOf(p, 0).append(n.key[:0])
	n.cursor.next()
	return n.block(n.key)
}

// block returns the value at the cursor if it is a block of the key's part.
func (n *Snapshot) block(key []byte) ([]byte, error) {
	value, err := n.current(key)
	if value == nil || err != nil {
		return nil, err
	}
	at, err := parseBlockKey(n.cursor.key())
	if err != nil || at.row.series() > lastSeries {
		return nil, err
	}
	return value, nil
}

// value returns the value of a row that is no block, or nil.
func (n *Snapshot) value(p windows.Part, row rowKey) ([]byte, error) {
	if _, err := n.seek(p, row); err != nil {
		return nil, err
	}
	if !n.cursor.valid() || string(n.cursor.key()) != string(n.key) {
		return nil, nil
	}
	return n.current(n.key)
}

// endsAt reports whether the key at the cursor is that of a block with this last row.
func (n *Snapshot) endsAt(last rowKey) bool {
	at, err := parseBlockKey(n.cursor.key())
	return err == nil && at.row == last
}

// current returns the value at the cursor if it is of the key's part and start.
func (n *Snapshot) current(key []byte) ([]byte, error) {
	if !n.cursor.valid() {
		return nil, n.cursor.err()
	}
	if !sharesPart(n.cursor.key(), key) {
		return nil, nil
	}
	value, err := n.cursor.value()
	if err == nil && len(value) == 0 {
		return nil, n.damaged(errors.New("empty"))
	}
	return value, err
}

// damaged is the error for the value at the cursor.
func (n *Snapshot) damaged(err error) error { return damaged(n.cursor.key(), "%v", err) }

// readError says what an error of reading means.
func readError(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
