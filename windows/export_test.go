package windows

// Steps returns the pairs that are cut on the way to one, at the place where the partition
// is: see refusedFirst.
func (p *Partition) Steps(to Pair) []Pair {
	first := p.refusedFirst(to)
	p.then = Pair{}
	if first == to {
		return []Pair{to}
	}
	return []Pair{first, to}
}

// At returns the offset that the partition reads next, and the newest pair cut.
func (p *Partition) At() (next int64, to Pair) { return p.next, p.to }

// Holding reports whether the partition has anything that is not sealed, before a minute.
func (p *Partition) Holding(before Minute) bool { return p.anyBefore(before) || len(p.refused) > 0 }
