package sketches

import "slices"

// Viewers counts different users: the union of whatever was added to it. Up to
// MaxInline different tokens it needs no memory of its own; then come a set and,
// with exactly more than MaxTokens different ones, registers. So its state, and
// every answer, depend on the users alone, never on order or grouping.
//
// It is made to be used again: Reset costs what was in use and keeps the memory.
// Not safe for concurrent use while one call changes it; reading is safe.
type Viewers struct {
	key   KeyID
	n     int // tokens in few; -1 once they are in set or regs
	few   [MaxInline]uint32
	set   TokenSet
	regs  Registers // in use if dense; kept for later, and then of any content, if not
	dense bool
}

// NewViewers returns a sketch that has seen nobody, for hashes made under key.
func NewViewers(key KeyID) *Viewers { return &Viewers{key: key} }

// Key returns the name of the key that its hashes were made under.
func (v *Viewers) Key() KeyID { return v.key }

// Reset forgets everybody, and keeps the key and the memory.
func (v *Viewers) Reset() {
	v.n = 0
	v.set.Reset()
	v.dense = false
}

// Dense reports whether it holds registers, which is exactly when it has seen
// more than MaxTokens different tokens.
func (v *Viewers) Dense() bool { return v.dense }

// Len returns how many different tokens it holds, or 0 if it is dense: then it
// holds none.
func (v *Viewers) Len() int {
	if v.n >= 0 {
		return v.n
	}
	return v.set.Len()
}

// Bytes returns the memory that it holds on to beside the struct itself.
func (v *Viewers) Bytes() int { return v.set.Bytes() + cap(v.regs) }

// AddHash adds a user by the hash of Hasher.User.
func (v *Viewers) AddHash(hash uint64) { v.AddToken(Token(hash)) }

// AddToken adds a user by the token of that hash.
func (v *Viewers) AddToken(token uint32) {
	switch {
	case v.dense:
		v.regs.AddToken(token)
	case v.n < 0:
		if v.set.Add(token) && v.set.Len() > MaxTokens {
			v.densify()
		}
	case slices.Contains(v.few[:v.n], token):
	case v.n < MaxInline:
		v.few[v.n] = token
		v.n++
	default:
		v.spill()
		v.set.Add(token)
	}
}

// addStep is how many tokens go into the set before it is asked whether they are
// too many now. The set makes room for a whole step, and is never much larger
// than MaxTokens needs.
const addStep = 256

// AddTokens adds every token of a list, in any order, repeats allowed.
func (v *Viewers) AddTokens(tokens []uint32) {
	if v.n >= 0 {
		if len(tokens) <= MaxInline {
			for _, t := range tokens {
				v.AddToken(t)
			}
			return
		}
		v.spill()
	}
	for !v.dense && len(tokens) > 0 {
		// In steps, so that the set has room for a whole step without being asked
		// for each token, and is never much larger than MaxTokens needs.
		const step = 256
		some := tokens[:min(step, len(tokens))]
		tokens = tokens[len(some):]
		v.set.reserve(v.set.Len() + len(some))
		v.set.putSome(some)
		if v.set.Len() > MaxTokens {
			v.densify()
		}
	}
	if v.dense {
		v.regs.AddTokens(tokens)
	}
}

// AddRegisters adds everybody that the registers of a dense sketch have seen: of
// more than MaxTokens tokens, or S2 does not hold. They are not changed, and not
// kept.
func (v *Viewers) AddRegisters(regs Registers) {
	if v.dense {
		v.regs.Merge(regs)
		return
	}
	if v.regs == nil {
		v.regs = NewRegisters()
	}
	copy(v.regs, regs[:RegisterCount])
	v.toRegisters()
}

// Merge adds everybody that o has seen. It does not change o, which may be v
// itself. Of two keys it changes nothing and returns an error wrapping ErrKey.
func (v *Viewers) Merge(o *Viewers) error {
	if err := sameKey("viewers", v.key, o.key); err != nil {
		return err
	}
	switch {
	case v == o:
	case o.dense:
		v.AddRegisters(o.regs)
	case o.n >= 0:
		v.AddTokens(o.few[:o.n])
	default:
		var buf [setRoom]uint32
		v.AddTokens(o.set.AppendTo(buf[:0]))
	}
	return nil
}

// spill moves the few tokens into the set.
func (v *Viewers) spill() {
	for _, t := range v.few[:v.n] {
		v.set.Add(t)
	}
	v.n = -1
}

// densify turns the tokens into registers.
func (v *Viewers) densify() {
	if v.regs == nil {
		v.regs = NewRegisters()
	} else {
		clear(v.regs)
	}
	v.toRegisters()
}

// toRegisters moves the tokens into v.regs and is dense from then on.
func (v *Viewers) toRegisters() {
	if v.n >= 0 {
		v.regs.AddTokens(v.few[:v.n])
	} else {
		v.regs.AddSet(&v.set)
		v.set.Reset()
	}
	v.n = -1
	v.dense = true
}

// Tokens returns a copy of its tokens, ascending, or nil if it is dense.
func (v *Viewers) Tokens() []uint32 {
	if v.dense {
		return nil
	}
	return v.AppendTokens(make([]uint32, 0, v.Len()))
}

// AppendTokens appends its tokens to dst, ascending, or nothing if it is dense.
func (v *Viewers) AppendTokens(dst []uint32) []uint32 {
	start := len(dst)
	switch {
	case v.dense:
		return dst
	case v.n >= 0:
		dst = append(dst, v.few[:v.n]...)
	default:
		dst = v.set.AppendTo(dst)
	}
	slices.Sort(dst[start:])
	return dst
}

// Registers returns its registers if it is dense, else nil. They are its own:
// valid until it is changed, and not to be changed.
func (v *Viewers) Registers() Registers {
	if !v.dense {
		return nil
	}
	return v.regs
}

// Number returns how many users it has seen, with bounds. The value is what the
// library's Estimate returns in the same state, which for tokens is their number.
func (v *Viewers) Number() Number {
	if v.dense {
		return denseNumber(v.regs.Estimate())
	}
	return tokensNumber(v.Len())
}

// tokensNumber is the answer for n different tokens.
func tokensNumber(n int) Number {
	x := ExactNumber(uint64(n))
	if n > MaxInline {
		x.Method = MethodHLL
	}
	return x
}
