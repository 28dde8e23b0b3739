package store

import (
	"math/bits"

	"tidemark/windows"
)

// presence is a start that a part has blocks of, and what they are like: so that
// what a question costs is known without reading.
type presence struct {
	start windows.Minute
	info  presenceInfo
}

// presenceInfo is five bits. Part of the format:
//
//	bit 4     a type overflowed: there are rows of the series seriesHeap
//	bits 0–3  how many rows: 0 none but outcomes, n at most 4^(n−1)
type presenceInfo uint8

const (
	presenceBits       = 5
	presenceOverflowed = presenceInfo(1 << 4)
	presenceRows       = presenceInfo(1<<4 - 1)
)

func makePresenceInfo(rows uint64, overflowed bool) presenceInfo {
	var info presenceInfo
	if rows > 0 {
		// The number of base-4 digits of rows−1, plus one.
		info = presenceInfo(min((bits.Len64(rows-1)+1)/2+1, int(presenceRows)))
	}
	if overflowed {
		info |= presenceOverflowed
	}
	return info
}

// rows returns how many rows there are at most, about.
func (i presenceInfo) rows() uint64 {
	n := i & presenceRows
	if n == 0 {
		return 0
	}
	return 1 << (2 * (n - 1))
}

// counted reports whether any event counts there.
func (i presenceInfo) counted() bool { return i&presenceRows != 0 }

func (i presenceInfo) overflowed() bool { return i&presenceOverflowed != 0 }
