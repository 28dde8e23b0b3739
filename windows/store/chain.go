package store

import "tidemark/windows"

// chain holds the seals of each partition against each other and against the
// position: each begins where the one before ended, and the newest is the
// position's. A store that lost a file, or the end of one, without Pebble's noticing
// does not fit together, and is not opened.
//
// Rows of seals that have no blocks left are removed, so seals may be missing
// between two; they never are at the end.
type chain struct {
	roster *roster
	newest map[chainKey]sealed
	parts  map[chainKey]uint32
}

type chainKey struct {
	log       windows.LogID
	partition int
}

func newChain(r *roster) *chain {
	return &chain{roster: r, newest: make(map[chainKey]sealed), parts: make(map[chainKey]uint32)}
}

// add takes the next part, in the order of their numbers.
func (c *chain) add(key []byte, p *part) error {
	if p.kind != partSeal {
		return nil
	}
	s := p.seal
	at := chainKey{log: s.Log, partition: s.Partition}
	if before, ok := c.newest[at]; ok {
		fits := s.E == before.E && s.seq > before.seq && s.from.F >= before.To.F && s.from.S >= before.To.S
		if !fits || s.seq == before.seq+1 && s.from != before.To {
			return damaged(key, "seal %d of partition %d goes from %v, the one before to %v: seals are missing", s.seq, s.Partition, s.from, before.To)
		}
	}
	c.newest[at], c.parts[at] = s, p.number
	return nil
}

// end holds the newest seals against the positions.
func (c *chain) end() error {
	for _, l := range c.roster.logs {
		for i, p := range l.positions {
			at := chainKey{log: l.ID, partition: i}
			s := c.newest[at]
			if s.seq != p.seq || s.To != p.To || p.seq > 0 && (c.parts[at] != p.part || s.E != p.E) {
				return damaged(positionKey(l.ID, i), "the position is %v after %d seals, the newest seal goes to %v and is number %d", p.To, p.seq, s.To, s.seq)
			}
			delete(c.newest, at)
		}
	}
	for at, s := range c.newest {
		return damaged(positionKey(at.log, at.partition), "no position, but seals up to %v", s.To)
	}
	return nil
}
