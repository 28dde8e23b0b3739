package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/sketches"
)

// formatVersion is the version of the whole format. A store of another one is refused.
const formatVersion = 2

// The row of a store. Part of the format:
//
//	uvarint(format) key id(8, little-endian) uvarint(partitions)
//	uvarint(n), n × (uvarint(len) view type) uvarint(n), n × (uvarint(len) dimension)
func (m *Meta) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(m.Format))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.KeyID))
	dst = binary.AppendUvarint(dst, uint64(m.Partitions))
	return appendStrings(appendStrings(dst, m.ViewTypes), m.Dimensions)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}

func parseMeta(key, value []byte) (Meta, error) {
	d := decoder{b: value}
	m := Meta{Format: int(d.uint(math.MaxInt))}
	if !d.bad && m.Format != formatVersion {
		return Meta{}, fmt.Errorf("%w: its format is %d, this build knows %d: use the build that made it", ErrSettings, m.Format, formatVersion)
	}
	m.KeyID = sketches.KeyID(d.uint64())
	m.Partitions = int(d.uint(MaxPartitions))
	m.ViewTypes = d.strings()
	m.Dimensions = d.strings()
	if d.bad || len(d.b) > 0 || m.Partitions == 0 {
		return Meta{}, damaged(key, "not the row of a store")
	}
	return m, nil
}

// openMeta reads what the store was made with, and holds it against the options.
func (s *Store) openMeta() error {
	key := []byte{prefixMeta}
	value, closer, err := s.db.Get(key)
	if err != nil {
		return fmt.Errorf("read what the store was made with: %w", err)
	}
	defer closer.Close()
	m, err := parseMeta(key, value)
	if err != nil {
		return err
	}
	if s.opts.KeyID != 0 && s.opts.KeyID != m.KeyID {
		return fmt.Errorf("%w: %v, and the key given is %v: give the key file that it was made with (--hash-key-file)", ErrKey, m.KeyID, s.opts.KeyID)
	}
	if s.opts.Partitions != 0 && s.opts.Partitions != m.Partitions {
		return fmt.Errorf("%w: it has %d partitions, not %d, which is fixed when it is made: leave --partitions out, or use a new folder", ErrSettings, m.Partitions, s.opts.Partitions)
	}
	s.meta = m
	return s.updateMeta()
}

// updateMeta keeps those settings that may change.
func (s *Store) updateMeta() error {
	m := s.meta
	if s.opts.ViewTypes != nil {
		m.ViewTypes = s.opts.ViewTypes
	}
	if s.opts.Dimensions != nil {
		m.Dimensions = s.opts.Dimensions
	}
	if s.opts.ReadOnly || slices.Equal(m.ViewTypes, s.meta.ViewTypes) && slices.Equal(m.Dimensions, s.meta.Dimensions) {
		return nil
	}
	if err := s.db.Set([]byte{prefixMeta}, m.append(nil), pebble.Sync); err != nil {
		return fmt.Errorf("keep settings: %w", err)
	}
	s.meta = m
	return nil
}
