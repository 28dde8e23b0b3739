package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// dictionary gives each name of a kind an id, for ever: ids are handed out in the
// order in which names are first seen.
//
// New names are committed before anybody is told their ids, in a batch of their
// own that nobody waits for. A seal that uses them is committed later, so the log
// has it behind them, and a crash cuts the log at one point: where the seal is,
// the names are (invariant ST3). Names whose seal was lost stay, unused.
type dictionary struct {
	db           *pebble.DB
	commit       func(b *pebble.Batch, sync bool) error
	what         string // in errors
	byName, byID byte   // prefixes of its keys
	last         uint32 // the highest id it may give
	seed         uint64
	added        func(name []byte) error // called for each new name, in the order of ids; may be nil

	// mu guards what follows. It is held while new names are committed.
	mu    sync.RWMutex
	cache idCache
	next  uint32
	// whole says that the cache has every name there is, so that what it lacks is
	// new: true in a store that was empty when it was opened, until the cache forgets.
	whole bool
}

func openDictionary(s *Store, what string, byName, byID byte, first, last uint32) (*dictionary, error) {
	d := &dictionary{
		db: s.db, commit: s.commit, what: what,
		byName: byName, byID: byID, last: last, seed: rand.Uint64(), //nolint:gosec // nothing that anybody could guess with profit
		next: first, whole: true,
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{byID}, UpperBound: prefixEnd(byID)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if it.Last() {
		if len(it.Key()) != 5 {
			return nil, damaged(it.Key(), "not the key of a %s", what)
		}
		id := binary.BigEndian.Uint32(it.Key()[1:])
		if id < first || id > last {
			return nil, damaged(it.Key(), "no %s has this id", what)
		}
		d.next, d.whole = id+1, false
	}
	return d, it.Error()
}

func (d *dictionary) nameKey(dst, name []byte) []byte {
	return append(append(dst, d.byName), name...)
}

func (d *dictionary) idKey(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, d.byID), id)
}

// nameBatch is a number of names whose ids are wanted.
type nameBatch struct {
	text   []byte
	ends   []int
	hashes []nameHash
	ids    []uint32 // the answer
	missed []int
	key    []byte

	touched uint32 // what was read ahead: kept, or the compiler leaves the reads out
}

func (b *nameBatch) reset() {
	b.text, b.ends, b.hashes, b.ids, b.missed = b.text[:0], b.ends[:0], b.hashes[:0], b.ids[:0], b.missed[:0]
}

func (b *nameBatch) add(name []byte) {
	b.text = append(b.text, name...)
	b.ends = append(b.ends, len(b.text))
}

func (b *nameBatch) name(i int) []byte {
	from := 0
	if i > 0 {
		from = b.ends[i-1]
	}
	return b.text[from:b.ends[i]]
}

// resolve finds the ids of a batch of names, and gives new names theirs. Safe for
// concurrent use.
func (d *dictionary) resolve(b *nameBatch) error {
	for i := range b.ends {
		b.hashes = append(b.hashes, hashName(b.name(i), d.seed))
	}
	d.mu.RLock()
	var touched uint32
	for _, h := range b.hashes {
		touched += d.cache.touch(h)
	}
	b.touched = touched
	for i, h := range b.hashes {
		id, aged := d.cache.get(h)
		if id == 0 || aged {
			b.missed = append(b.missed, i)
		}
		b.ids = append(b.ids, id)
	}
	whole, forgot := d.whole, d.cache.forgot
	d.mu.RUnlock()
	if len(b.missed) == 0 {
		return nil
	}
	if !whole {
		if err := d.read(b); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if whole && !d.whole || forgot != d.cache.forgot {
		// Others have given names their ids since, and the cache may have forgotten them.
		if err := d.read(b); err != nil {
			return err
		}
	}
	return d.assignLocked(b)
}

// read looks those names up in the store that are not known yet.
func (d *dictionary) read(b *nameBatch) error {
	for _, i := range b.missed {
		if b.ids[i] != 0 {
			continue
		}
		b.key = d.nameKey(b.key[:0], b.name(i))
		id, err := d.get(d.db, b.key)
		if err != nil {
			return err
		}
		b.ids[i] = id
	}
	return nil
}

// assignLocked gives ids to those missed names that have none, and puts all of
// them into the cache. mu must be held.
func (d *dictionary) assignLocked(b *nameBatch) error {
	var batch *pebble.Batch
	for _, i := range b.missed {
		if b.ids[i] == 0 {
			b.ids[i], _ = d.cache.get(b.hashes[i]) // another goroutine's, or twice in this batch
		}
		if b.ids[i] == 0 {
			if d.next > d.last {
				return fmt.Errorf("%s %q: all %d ids are in use", d.what, b.name(i), d.last)
			}
			if batch == nil {
				batch = d.db.NewBatch()
			}
			b.ids[i] = d.next
			d.next++
			b.key = d.nameKey(b.key[:0], b.name(i))
			if err := batch.Set(b.key, binary.BigEndian.AppendUint32(nil, b.ids[i]), nil); err != nil {
				return err
			}
			b.key = d.idKey(b.key[:0], b.ids[i])
			if err := batch.Set(b.key, b.name(i), nil); err != nil {
				return err
			}
			if d.added != nil {
				if err := d.added(b.name(i)); err != nil {
					return err
				}
			}
		}
		d.cache.put(b.hashes[i], b.ids[i])
	}
	if d.cache.forgot > 0 {
		d.whole = false
	}
	if batch == nil {
		return nil
	}
	if err := d.commit(batch, false); err != nil {
		return fmt.Errorf("write names of %ss: %w", d.what, err)
	}
	return nil
}

// find returns the id of a name, or 0 if there is none.
func (d *dictionary) find(r pebble.Reader, name []byte) (uint32, error) {
	h := hashName(name, d.seed)
	d.mu.RLock()
	id, _ := d.cache.get(h)
	whole := d.whole
	d.mu.RUnlock()
	if id != 0 || whole {
		return id, nil
	}
	return d.get(r, d.nameKey(nil, name))
}

func (d *dictionary) get(r pebble.Reader, key []byte) (uint32, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the id of a %s: %w", d.what, err)
	}
	defer closer.Close()
	if len(value) != 4 {
		return 0, damaged(key, "%d bytes; an id has 4", len(value))
	}
	id := binary.BigEndian.Uint32(value)
	if id == 0 || id > d.last {
		return 0, damaged(key, "%d is no id", id)
	}
	return id, nil
}

// name returns the name that an id was given to.
func (d *dictionary) name(r pebble.Reader, id uint32) ([]byte, error) {
	key := d.idKey(nil, id)
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, damaged(key, "no %s has the id %d", d.what, id)
	}
	if err != nil {
		return nil, fmt.Errorf("read the name of a %s: %w", d.what, err)
	}
	defer closer.Close()
	return append([]byte(nil), value...), nil
}
