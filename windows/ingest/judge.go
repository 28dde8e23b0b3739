package ingest

import (
	"time"

	"tidemark/windows"
)

// generations is how many whole generations the look-back of a record holds,
// beside the part of its own before it.
const generations = 8

// Generation returns the size of a generation of offsets, G, in a log whose
// partitions share the numbers of its records, as those of files do: so that each
// partition finds a duplicate among about its last dedupEvents records.
func Generation(dedupEvents, partitions int) int64 {
	return max(1, int64(dedupEvents)*int64(partitions)/generations)
}

// Look returns the smallest offset that the outcome of a record at offset depends
// on: look(o) = (⌊o/G⌋ − 8)·G, and not below 0.
func Look(generation, offset int64) int64 {
	return max(0, offset/generation-generations) * generation
}

// JudgeConfig is what outcomes depend on beside the log.
type JudgeConfig struct {
	Generation  int64         // G, in offsets; at least 1
	Lateness    time.Duration // a record is late if its minute had ended longer ago
	MaxLateness time.Duration // and too old if its time is longer before its record's own timestamp
	MaxSkew     time.Duration // a record is in the future if its time is longer after that
}

// Judge decides the outcomes of the records of one partition, as docs/exactly-once.md
// says, with no rules: the first that fits of malformed, future, duplicate, too
// old, late, counted. It is used by one goroutine.
type Judge struct {
	generation                     int64
	lateness, maxLateness, maxSkew int64 // ms
	seen                           idTable
	newest                         newest
	touched                        uint64 // keeps the compiler from leaving the look-ups out
}

var _ windows.Judge = (*Judge)(nil)

// NewJudge returns a judge that has seen no record.
func NewJudge(cfg JudgeConfig) *Judge {
	return &Judge{
		generation:  cfg.Generation,
		lateness:    cfg.Lateness.Milliseconds(),
		maxLateness: cfg.MaxLateness.Milliseconds(),
		maxSkew:     cfg.MaxSkew.Milliseconds(),
	}
}

// Judge sets the outcome of each event that is not malformed.
func (j *Judge) Judge(events []windows.Event) {
	for i := range events { // touch: let the cache misses of the batch overlap
		if ev := &events[i]; ev.HasID {
			j.touched += j.seen.touch(ev.ID)
		}
	}
	for i := range events {
		if ev := &events[i]; ev.Outcome != windows.Malformed {
			ev.Outcome = j.outcome(ev)
		}
	}
}

// outcome decides, and remembers what later outcomes depend on.
func (j *Judge) outcome(ev *windows.Event) windows.Outcome {
	if ev.Time-ev.Stamp > j.maxSkew {
		return windows.Future
	}
	generation := ev.Offset / j.generation
	newest := j.newest.before(generation)
	j.newest.add(ev.Time)
	duplicate := ev.HasID && j.seen.add(ev.ID, generation)
	switch {
	case duplicate:
		return windows.Duplicate
	case ev.Stamp-ev.Time > j.maxLateness && !ev.History:
		return windows.TooOld
	case newest-(windows.MinuteOf(ev.Time)+1).UnixMilli() > j.lateness:
		return windows.Late
	}
	return windows.Counted
}
