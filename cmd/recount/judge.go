package recount

import "time"

// Settings are what outcomes depend on beside the journal.
type Settings struct {
	From        []int64 // of each partition, the offset from which on they hold; nil: from the beginning
	Lateness    time.Duration
	MaxLateness time.Duration
	MaxSkew     time.Duration
	DedupEvents int
}

// generation is the G of look(o) = (⌊o/G⌋ − 8)·G.
func (s *Settings) generation() int64 { return max(1, int64(s.DedupEvents)/8) }

// judge decides what becomes of the records of one partition under some settings. It
// remembers event IDs and the newest time by the generation of their offset.
type judge struct {
	*Settings
	ids    map[int64]map[uint64]bool
	newest map[int64]int64
}

func newJudge(s *Settings) *judge {
	return &judge{Settings: s, ids: make(map[int64]map[uint64]bool), newest: make(map[int64]int64)}
}

// look is the smallest offset that the outcome at an offset depends on.
func (j *judge) look(offset int64) int64 {
	return max(0, offset/j.generation()-8) * j.generation()
}

// outcome decides about the next record: the first of these that fits.
func (j *judge) outcome(offset, stamp int64, r *record) string {
	if r.reason != "" {
		return "malformed"
	}
	if r.time > stamp+j.MaxSkew.Milliseconds() {
		return "future"
	}
	at := offset / j.generation()
	duplicate, newest := false, int64(-1)
	for g := range j.ids { // those that are out of reach
		if g < at-8 {
			delete(j.ids, g)
			delete(j.newest, g)
		}
	}
	for g := range j.ids {
		duplicate = duplicate || r.hasID && j.ids[g][r.id]
		newest = max(newest, j.newest[g])
	}
	if j.ids[at] == nil {
		j.ids[at] = make(map[uint64]bool)
	}
	if r.hasID {
		j.ids[at][r.id] = true
	}
	j.newest[at] = max(j.newest[at], r.time)
	const minute = int64(time.Minute / time.Millisecond)
	switch {
	case duplicate:
		return "duplicate"
	case !r.history && r.time < stamp-j.MaxLateness.Milliseconds():
		return "too_old"
	case newest > (r.time/minute+1)*minute+j.Lateness.Milliseconds():
		return "late"
	}
	return "counted"
}
