package store

import (
	"cmp"
	"slices"
)

// ordered is a row's key and where the row lies.
type ordered struct {
	key rowKey
	at  uint32
}

// radixFrom is the number of elements from which a radix sort wins (measured).
const radixFrom = 128

// sortRows sorts by key; equal keys stay in their order. tmp is scratch, and returned for the next time.
func sortRows(rows, tmp []ordered) []ordered {
	if len(rows) < radixFrom {
		slices.SortStableFunc(rows, func(a, b ordered) int { return cmp.Compare(a.key, b.key) })
		return tmp
	}
	// Only the bytes that are not the same in all keys are sorted by: of a million
	// items in a few series these are four of eight.
	differ := rowKey(0)
	for i := range rows {
		differ |= rows[i].key ^ rows[0].key
	}
	tmp = slices.Grow(tmp[:0], len(rows))[:len(rows)]
	from, to := rows, tmp
	for shift := 0; shift < 64; shift += 8 {
		if byte(differ>>shift) == 0 {
			continue
		}
		var count [256]uint32
		for i := range from {
			count[byte(from[i].key>>shift)]++
		}
		sum := uint32(0)
		for b, n := range count {
			count[b], sum = sum, sum+n
		}
		for i := range from {
			b := byte(from[i].key >> shift)
			to[count[b]] = from[i]
			count[b]++
		}
		from, to = to, from
	}
	if len(rows) > 0 && &from[0] != &rows[0] {
		copy(rows, from)
	}
	return tmp
}

// sortTokens sorts tokens. tmp is scratch, and returned for the next time.
func sortTokens(tokens, tmp []uint32) []uint32 {
	switch {
	case len(tokens) <= 12: // most rows have a few
		for i := 1; i < len(tokens); i++ {
			t := tokens[i]
			k := i
			for ; k > 0 && tokens[k-1] > t; k-- {
				tokens[k] = tokens[k-1]
			}
			tokens[k] = t
		}
	case len(tokens) < radixFrom:
		slices.Sort(tokens)
	default:
		tmp = slices.Grow(tmp[:0], len(tokens))[:len(tokens)]
		from, to := tokens, tmp
		for shift := 0; shift < 32; shift += 8 {
			var count [256]uint32
			for _, t := range from {
				count[byte(t>>shift)]++
			}
			sum := uint32(0)
			for b, n := range count {
				count[b], sum = sum, sum+n
			}
			for _, t := range from {
				b := byte(t >> shift)
				to[count[b]] = t
				count[b]++
			}
			from, to = to, from
		}
		// Four passes: the result is where it began.
	}
	return tmp
}
