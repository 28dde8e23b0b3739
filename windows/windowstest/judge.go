package windowstest

import "tidemark/windows"

// Judge decides outcomes as docs/exactly-once.md says, with rule set none: plainly, with
// memory that grows with the log. It is what the engine's own judge is compared
// with, and stands in for it.
type Judge struct {
	Generation  int64 // G: the look-back of offset o begins at (⌊o/G⌋ − 8)·G
	MaxSkew     int64 // ms
	MaxLateness int64 // ms; negative: no limit
	Lateness    int64 // ms

	last   map[uint64]int64 // the newest offset of an ID
	newest []seenRecord     // those with no later one at or after their time; the first is the newest
}

type seenRecord struct{ offset, time int64 }

// Look returns where the look-back of an offset begins, for generations of g.
func Look(offset, g int64) int64 { return max(0, (offset/g-8)*g) }

// Judge implements windows.Judge.
func (j *Judge) Judge(events []windows.Event) {
	if j.last == nil {
		j.last = make(map[uint64]int64)
	}
	for i := range events {
		e := &events[i]
		if e.Outcome != windows.Malformed {
			e.Outcome = j.outcome(e)
		}
		if e.Outcome == windows.Malformed || e.Outcome == windows.Future {
			continue
		}
		for n := len(j.newest); n > 0 && j.newest[n-1].time <= e.Time; n-- {
			j.newest = j.newest[:n-1]
		}
		j.newest = append(j.newest, seenRecord{e.Offset, e.Time})
		if e.HasID {
			j.last[e.ID] = e.Offset
		}
	}
}

func (j *Judge) outcome(e *windows.Event) windows.Outcome {
	look := Look(e.Offset, j.Generation)
	if e.Time > e.Stamp+j.MaxSkew {
		return windows.Future
	}
	if at, ok := j.last[e.ID]; ok && e.HasID && at >= look {
		return windows.Duplicate
	}
	if j.MaxLateness >= 0 && !e.History && e.Time < e.Stamp-j.MaxLateness {
		return windows.TooOld
	}
	for len(j.newest) > 0 && j.newest[0].offset < look {
		j.newest = j.newest[1:]
	}
	end := (windows.MinuteOf(e.Time) + 1).UnixMilli()
	if len(j.newest) > 0 && j.newest[0].time-end > j.Lateness {
		return windows.Late
	}
	return windows.Counted
}
