package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// The title, url and image of an item. Part of the format:
//
//	uvarint(version) title url image, each: uvarint(at, Unix ms) uvarint(len) text
const textVersion = 1

func appendTexts(dst []byte, i *windows.ItemInfo) []byte {
	dst = binary.AppendUvarint(dst, textVersion)
	for _, t := range []windows.Text{i.Title, i.URL, i.Image} {
		dst = binary.AppendUvarint(dst, uint64(t.At))
		dst = appendString(dst, t.Value)
	}
	return dst
}

func parseTexts(key, value []byte, i *windows.ItemInfo) error {
	d := decoder{b: value}
	if v := d.uint(math.MaxInt); v != textVersion && !d.bad {
		return damaged(key, "version %d of texts; this build knows %d", v, textVersion)
	}
	for _, t := range []*windows.Text{&i.Title, &i.URL, &i.Image} {
		t.At = int64(d.uint(uint64(windows.MaxTime)))
		t.Value = d.string()
	}
	if d.bad || len(d.b) > 0 {
		return damaged(key, "not the texts of an item")
	}
	return nil
}

func textKey(item uint32) []byte { return binary.BigEndian.AppendUint32([]byte{prefixText}, item) }

// writeTexts keeps what a seal says of items. It is committed before the seal, and
// nobody waits for it: texts merge in any order and any number of times, so a seal
// that is made again after a crash changes nothing more.
func (s *Store) writeTexts(items []windows.ItemInfo) error {
	if len(items) == 0 {
		return nil
	}
	var names nameBatch
	for i := range items {
		names.add([]byte(items[i].Item))
	}
	if err := s.items.resolve(&names); err != nil {
		return err
	}
	s.texts.Lock()
	defer s.texts.Unlock()
	batch := s.db.NewBatch()
	for i := range items {
		merged := items[i]
		if err := readTexts(s.db, names.ids[i], &merged); err != nil {
			return errors.Join(err, batch.Close())
		}
		if err := batch.Set(textKey(names.ids[i]), appendTexts(nil, &merged), nil); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	if err := s.commit(batch, false); err != nil {
		return fmt.Errorf("write texts of items: %w", err)
	}
	return nil
}

// readTexts merges what is stored of an item into i.
func readTexts(r pebble.Reader, item uint32, i *windows.ItemInfo) error {
	key := textKey(item)
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return readError(err)
	}
	defer closer.Close()
	var stored windows.ItemInfo
	if err := parseTexts(key, value, &stored); err != nil {
		return err
	}
	i.Merge(stored)
	return nil
}

// Texts returns the title, url and image of an item, empty where nothing was said.
func (n *Snapshot) Texts(item uint32) (windows.ItemInfo, error) {
	var i windows.ItemInfo
	err := readTexts(n.pebble, item, &i)
	return i, err
}

// Items yields the items whose names begin with prefix, in the order of their
// bytes, until yield returns false.
func (n *Snapshot) Items(prefix string, yield func(id uint32, name string) bool) error {
	it, err := n.pebble.NewIter(&pebble.IterOptions{
		LowerBound: append([]byte{prefixItemName}, prefix...),
		UpperBound: prefixEnd(prefixItemName),
	})
	if err != nil {
		return err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		name := string(it.Key()[1:])
		if len(name) < len(prefix) || name[:len(prefix)] != prefix {
			break
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return readError(err)
		}
		if len(value) != 4 {
			return damaged(it.Key(), "%d bytes; a number has 4", len(value))
		}
		if !yield(binary.BigEndian.Uint32(value), name) {
			break
		}
	}
	return readError(it.Error())
}
