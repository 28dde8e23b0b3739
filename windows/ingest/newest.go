package ingest

// newest knows the newest event time of the look-back: of the records of the
// present generation so far, and of the eight before it.
type newest struct {
	maxima  [generations + 1]int64 // of generation g in place g mod 9; −1: no record
	current int64                  // generation
	all     int64                  // the largest of maxima
	started bool
}

// before returns the newest event time in the look-back of a record of that
// generation, or −1 if there is none. Generations never fall.
func (n *newest) before(generation int64) int64 {
	if generation != n.current || !n.started {
		n.moveTo(generation)
	}
	return n.all
}

func (n *newest) moveTo(generation int64) {
	from := n.current + 1
	if !n.started || generation-n.current > generations {
		from = generation - generations
	}
	for g := from; g <= generation; g++ {
		n.maxima[slotOf(g)] = -1
	}
	n.current, n.started, n.all = generation, true, -1
	for _, t := range n.maxima {
		n.all = max(n.all, t)
	}
}

func slotOf(generation int64) int64 {
	const size = generations + 1
	return (generation%size + size) % size
}

// add takes note of the time of a record of the present generation.
func (n *newest) add(time int64) {
	slot := &n.maxima[slotOf(n.current)]
	*slot = max(*slot, time)
	n.all = max(n.all, time)
}
