package store

import (
	"encoding/binary"
	"fmt"

	"tidemark/windows"
)

// The first byte of a key says what it is: below levelCount a level, whose blocks
// follow, else one of these. Part of the format.
const (
	prefixMeta       = 'm' // one row: what the store was made with
	prefixLog        = 'l' // log id -> Log
	prefixPosition   = 'q' // log id, partition -> position
	prefixPart       = 'p' // part -> its catalogue row
	prefixItemName   = 'n' // name -> item id
	prefixItemID     = 'i' // item id -> name
	prefixSeriesName = 's' // series -> series id
	prefixSeriesID   = 'S' // series id -> series
	prefixReasonName = 'r' // reason -> reason id
	prefixReasonID   = 'R' // reason id -> reason
	prefixText       = 't' // item id -> its title, url and image
	prefixMark       = 'k' // part -> the periods that are being rolled up as this part
	prefixReserved   = 'g' // part -> what a folding writes as this part, until it is there
	prefixFloor      = 'f' // level -> where it begins
	prefixLedger     = 'w' // number of the last commit -> nothing
	prefixIngested   = 'x' // one row: the part whose files were ingested last
	prefixOutbox     = 'o' // log id, partition, seal, piece -> a seal that some sink does not have yet
	prefixSink       = 'd' // sink -> nothing; sink, log id, partition -> the newest seal it has
	prefixFiles      = 'y' // part -> nothing: a file of its own among these files
)

// Reserved ids. Part of the format.
const (
	itemSite     = 0 // the row of all items of a series
	itemOverflow = 1 // the row of those that found no slot
	firstItem    = 2

	seriesOutcomes = 0 // its rows are outcomes: the item id is outcome<<24 | reason id
	firstSeries    = 1
	// Rows of these series are no blocks but one value for the series whose id
	// stands in the place of the item's. They sort behind all blocks of a part.
	seriesTop      = 0xfffffffd // its highest items
	seriesCountMin = 0xfffffffe // the Count-Min table of a type, where a window overflowed
	seriesHeap     = 0xffffffff // and its highest items that have no row
	lastSeries     = seriesTop - 1

	reasonNone  = 0 // an outcome that has no reason
	firstReason = 1
	lastReason  = 1<<24 - 1
)

// blockKeySize is the length of a block's key:
//
//	level(1) start(4) part(4) series(4) item(4), numbers big-endian
const blockKeySize = 17

// blockKey is the key of a block: that of its last row.
type blockKey struct {
	level windows.Level
	start windows.Minute // first minute of the period
	part  uint32
	row   rowKey
}

// rowKey orders the rows of a part: series, then item.
type rowKey uint64

func makeRowKey(series, item uint32) rowKey { return rowKey(series)<<32 | rowKey(item) }

func (k rowKey) series() uint32 { return uint32(k >> 32) }
func (k rowKey) item() uint32   { return uint32(k) }

func (k blockKey) append(dst []byte) []byte {
	dst = append(dst, byte(k.level))
	dst = binary.BigEndian.AppendUint32(dst, uint32(k.start))
	dst = binary.BigEndian.AppendUint32(dst, k.part)
	return binary.BigEndian.AppendUint64(dst, uint64(k.row))
}

// parseBlockKey reads the key of a block, or of another row of a part.
func parseBlockKey(key []byte) (blockKey, error) {
	if len(key) != blockKeySize || key[0] >= levelCount {
		return blockKey{}, damaged(key, "not the key of a block")
	}
	return blockKey{
		level: windows.Level(key[0]),
		start: windows.Minute(binary.BigEndian.Uint32(key[1:])),
		part:  binary.BigEndian.Uint32(key[5:]),
		row:   rowKey(binary.BigEndian.Uint64(key[9:])),
	}, nil
}

// sharesPart reports whether two keys of blocks belong to one start of one part.
func sharesPart(a, b []byte) bool {
	return len(a) == blockKeySize && len(b) == blockKeySize && string(a[:9]) == string(b[:9])
}

func partKey(part uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{prefixPart}, part)
}

func markKey(part uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{prefixMark}, part)
}

func filesKey(part uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{prefixFiles}, part)
}

func reservedKey(part uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{prefixReserved}, part)
}

func floorKey(l windows.Level) []byte { return []byte{prefixFloor, byte(l)} }

// startKey is the first key of a start at a level, whatever the part.
func startKey(l windows.Level, start windows.Minute) []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(l)}, uint32(start))
}

func logKey(id windows.LogID) []byte { return append([]byte{prefixLog}, id[:]...) }

func positionKey(id windows.LogID, partition int) []byte {
	return binary.BigEndian.AppendUint16(append([]byte{prefixPosition}, id[:]...), uint16(partition))
}

// prefixEnd is the first key behind all that begin with the byte.
func prefixEnd(prefix byte) []byte { return []byte{prefix + 1} }

// damaged is the error for the value, or the form, of a key.
func damaged(key []byte, format string, args ...any) error {
	return fmt.Errorf("%w: key %x: %s", ErrDamaged, key, fmt.Sprintf(format, args...))
}
