package store

import (
	"tidemark/sketches"
)

// union is the viewers of rows that are merged: what sketches.Viewers does, for
// tokens that come sorted and are wanted sorted. Its memory is used again.
type union struct {
	tokens []uint32 // of all rows so far, in runs that ascend
	ends   []int    // of the runs in tokens
	tmp    []uint32
	tmpEnd []int
	regs   sketches.Registers
	dense  bool
}

// maxPending is how many tokens wait before they are brought in order.
const maxPending = 8 * sketches.MaxTokens

func (u *union) reset() { u.tokens, u.ends, u.dense = u.tokens[:0], u.ends[:0], false }

// add adds the viewers of a row.
func (u *union) add(r *record) {
	switch {
	case r.dense != nil && u.dense:
		u.regs.Merge(r.dense)
	case r.dense != nil:
		u.ready()
		copy(u.regs, r.dense)
		u.regs.AddTokens(u.tokens)
		u.dense = true
	case u.dense:
		u.tmp = decodeTokens(u.tmp[:0], r.tokens)
		u.regs.AddTokens(u.tmp)
	case len(r.tokens) > 0:
		u.tokens = decodeTokens(u.tokens, r.tokens)
		u.ends = append(u.ends, len(u.tokens))
		if len(u.tokens) > maxPending {
			u.settle()
		}
	}
}

// settle sorts the tokens and leaves each once; more than MaxTokens become registers.
func (u *union) settle() {
	if u.dense {
		return
	}
	for len(u.ends) > 1 {
		u.halve()
	}
	if len(u.tokens) <= sketches.MaxTokens {
		return
	}
	u.ready()
	clear(u.regs)
	u.regs.AddTokens(u.tokens)
	u.dense = true
}

func (u *union) ready() {
	if u.regs == nil {
		u.regs = sketches.NewRegisters()
	}
}

// halve merges each two runs.
func (u *union) halve() {
	if cap(u.tmp) < len(u.tokens) {
		u.tmp = make([]uint32, 2*len(u.tokens))
	}
	out := u.tmp[:len(u.tokens)]
	u.tmpEnd = u.tmpEnd[:0]
	n, from := 0, 0
	for i := 0; i < len(u.ends); i += 2 {
		a := u.tokens[from:u.ends[i]]
		if i+1 == len(u.ends) {
			n += copy(out[n:], a)
		} else {
			b := u.tokens[u.ends[i]:u.ends[i+1]]
			n += mergeTokens(out[n:], a, b)
			from = u.ends[i+1]
		}
		u.tmpEnd = append(u.tmpEnd, n)
	}
	u.tokens, u.tmp = out[:n], u.tokens[:cap(u.tokens)]
	u.ends, u.tmpEnd = u.tmpEnd, u.ends
}

// mergeTokens merges two ascending runs into dst, each token once, and returns how
// many there are. Nothing in the loop is to be guessed: both sides move on by what
// a comparison gives as a number.
func mergeTokens(dst, a, b []uint32) int {
	i, j, n := 0, 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		dst[n] = min(x, y)
		var di, dj int
		if x <= y {
			di = 1
		}
		if y <= x {
			dj = 1
		}
		i, j, n = i+di, j+dj, n+1
	}
	n += copy(dst[n:], a[i:])
	n += copy(dst[n:], b[j:])
	return n
}
