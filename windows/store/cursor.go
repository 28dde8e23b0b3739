package store

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// cursor is an iterator over all blocks that knows where it is. What is asked for
// mostly comes in the order of the keys, and close together: then a step, or
// nothing at all, is as good as a seek, at a tenth of its cost.
type cursor struct {
	iter *pebble.Iterator
	// before says that no key lies between it and the present one, both left out.
	before []byte
	known  bool // before is set
}

// steps is how far a cursor goes step by step before it seeks.
const steps = 2

func openCursor(r pebble.Reader) (*cursor, error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: []byte{0}, UpperBound: []byte{levelCount}})
	if err != nil {
		return nil, err
	}
	return &cursor{iter: it}, nil
}

// seek moves to the first key at or behind this one.
func (c *cursor) seek(key []byte) {
	if c.known && c.iter.Error() == nil {
		if c.there(key) {
			return
		}
		if c.iter.Valid() && bytes.Compare(c.iter.Key(), key) < 0 {
			for range steps {
				c.next()
				if c.there(key) {
					return
				}
			}
		}
	}
	c.iter.SeekGE(key)
	c.before, c.known = append(c.before[:0], key...), true
}

// there reports whether the present key is the first at or behind this one.
func (c *cursor) there(key []byte) bool {
	if bytes.Compare(c.before, key) >= 0 {
		return c.iter.Valid() && bytes.Equal(c.iter.Key(), key)
	}
	return !c.iter.Valid() && c.iter.Error() == nil || c.iter.Valid() && bytes.Compare(c.iter.Key(), key) >= 0
}

// next moves on by one key.
func (c *cursor) next() {
	if !c.iter.Valid() {
		return
	}
	c.before, c.known = append(c.before[:0], c.iter.Key()...), true
	c.iter.Next()
}

func (c *cursor) valid() bool { return c.iter.Valid() }

func (c *cursor) key() []byte { return c.iter.Key() }

func (c *cursor) value() ([]byte, error) {
	value, err := c.iter.ValueAndErr()
	return value, readError(err)
}

// err returns why the cursor is not valid, nil at the end.
func (c *cursor) err() error { return readError(c.iter.Error()) }
