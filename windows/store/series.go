package store

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"tidemark/windows"
)

// A series as a name of the dictionary. Part of the format:
//
//	other(1) uvarint(len type) type uvarint(len dimension) dimension value
//
// So all values of a dimension stand together, and all types.
func appendSeries(dst []byte, s windows.Series) []byte {
	dst = appendDimension(dst, s.Other, s.Type, s.Dimension)
	return append(dst, s.Value...)
}

func appendDimension(dst []byte, other windows.Other, typ, dimension string) []byte {
	dst = append(dst, byte(other))
	dst = appendString(dst, typ)
	return appendString(dst, dimension)
}

const otherParts = windows.OtherType | windows.OtherValue

func parseSeries(b []byte) (windows.Series, bool) {
	if len(b) == 0 || windows.Other(b[0])&^otherParts != 0 {
		return windows.Series{}, false
	}
	s := windows.Series{Other: windows.Other(b[0])}
	var ok bool
	if s.Type, b, ok = takeString(b[1:]); !ok {
		return windows.Series{}, false
	}
	if s.Dimension, b, ok = takeString(b); !ok {
		return windows.Series{}, false
	}
	s.Value = string(b)
	return s, true
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func takeString(b []byte) (s string, rest []byte, ok bool) {
	n, b, ok := uvarint(b)
	if !ok || n > uint64(len(b)) {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}

// seriesList is all series of the store, by id: the first has the id firstSeries.
type seriesList struct {
	mu  sync.Mutex
	all []windows.Series
}

// add appends the next one.
func (l *seriesList) add(name []byte) error {
	s, ok := parseSeries(name)
	if !ok {
		return fmt.Errorf("%w: %x is no series", ErrDamaged, name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
	return nil
}

// list returns those there are now. It is never changed.
func (l *seriesList) list() []windows.Series {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.all)
}

// counts reports whether events of a series count: it is not what became, by item, of
// those that don't.
func (l *seriesList) counts(id uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return id >= firstSeries && l.all[id-firstSeries].Dimension != windows.OutcomeDimension
}

// loadSeries reads the series into memory.
func (s *Store) loadSeries() error {
	return s.eachRow(prefixSeriesID, func(key, value []byte) error {
		if len(key) != 5 || binary.BigEndian.Uint32(key[1:]) != uint32(len(s.known.all))+firstSeries {
			return damaged(key, "not the key of the next series")
		}
		return s.known.add(value)
	})
}
