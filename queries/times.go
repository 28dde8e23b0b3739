package queries

import (
	"iter"
	"slices"
	"strings"
	"time"

	"tidemark/windows"
)

// Step is the size of a series' buckets.
type Step string

// The steps.
const (
	StepMinute Step = "minute"
	StepHour   Step = "hour"  // local: in a half-hour zone it starts at half past in UTC
	StepDay    Step = "day"   // local
	StepWeek   Step = "week"  // local, from Monday (ISO 8601)
	StepMonth  Step = "month" // local
)

// Steps are all of them.
var Steps = []Step{StepMinute, StepHour, StepDay, StepWeek, StepMonth}

// span is a resolved range: what is read, and what the answer says.
type span struct {
	windows.Range
	to      time.Time        // as the answer names it: now, or the end of Range
	buckets []windows.Minute // where each begins, then the end; a question without steps has one
	zone    *time.Location
	steps   []windows.Stretch // what of the store covers it: see view.steps
	clipped bool              // retention has taken what was before
}

// from is the range's start as the answer names it.
func (s *span) from() time.Time { return s.at(s.From) }

func (s *span) at(m windows.Minute) time.Time { return m.Time().In(s.zone) }

// bucketOf returns the index of the bucket that holds m, which the range contains.
func (s *span) bucketOf(m windows.Minute) int {
	i, found := slices.BinarySearch(s.buckets, m)
	if !found {
		i--
	}
	return i
}

// bucket returns the range of the bucket with that index.
func (s *span) bucket(i int) windows.Range {
	return windows.Range{From: s.buckets[i], To: s.buckets[i+1]}
}

// clip leaves out what is before a minute.
func (s *span) clip(from windows.Minute) {
	s.buckets = s.buckets[s.bucketOf(from):]
	s.buckets[0], s.From, s.clipped = from, from, true
}

// parts yields the span in parts of at most so many buckets.
func (s *span) parts(buckets int) iter.Seq[*span] {
	return func(yield func(*span) bool) {
		for i := 0; i < len(s.buckets)-1; i += buckets {
			edges := s.buckets[i:min(i+buckets+1, len(s.buckets))]
			if !yield(&span{Range: windows.Range{From: edges[0], To: edges[len(edges)-1]}, buckets: edges, zone: s.zone}) {
				return
			}
		}
	}
}

// whole returns the span as one bucket.
func (s *span) whole() *span {
	return &span{Range: s.Range, to: s.to, buckets: []windows.Minute{s.From, s.To}, zone: s.zone}
}

// resolve turns what was asked for into whole minutes, or whole steps. kept is
// what an open end reaches to.
func (w When) resolve(step Step, zone *time.Location, kept windows.Range) (*span, error) {
	if zone == nil {
		zone = time.UTC
	}
	r := kept
	s := &span{zone: zone}
	if w.Last > 0 {
		now := windows.MinuteOf(w.Now.UnixMilli())
		r = windows.Range{From: now - min(now, windows.Minute(w.Last/time.Minute)), To: ceilMinute(w.Now)}
		if !w.At {
			s.to = w.Now.Truncate(time.Millisecond).In(zone)
		}
	} else {
		if !w.From.IsZero() {
			r.From = windows.MinuteOf(w.From.UnixMilli())
			r.To = max(r.To, r.From)
		}
		if !w.To.IsZero() {
			r.To = ceilMinute(w.To)
			if w.From.IsZero() {
				r.From = min(r.From, r.To)
			}
		}
	}
	s.buckets = []windows.Minute{r.From, r.To}
	if step != "" {
		var err error
		if s.buckets, err = step.buckets(r, zone); err != nil {
			return nil, err
		}
	}
	s.Range = windows.Range{From: s.buckets[0], To: s.buckets[len(s.buckets)-1]}
	if s.to.IsZero() {
		s.to = s.at(s.To)
	}
	return s, nil
}

// ceilMinute returns the first minute that does not begin before t.
func ceilMinute(t time.Time) windows.Minute {
	m := windows.MinuteOf(t.UnixMilli())
	if m.Time().Before(t) {
		m++
	}
	return m
}

// buckets returns where the buckets that cover r begin, and where the last ends.
func (s Step) buckets(r windows.Range, zone *time.Location) ([]windows.Minute, error) {
	m := edge(s.floor(r.From.Time().In(zone)))
	edges := []windows.Minute{m}
	for m < r.To {
		if len(edges) > MaxBuckets {
			return nil, refused("step", "the range has more than %d steps of a %s; ask for a shorter range or a longer step (%s)", MaxBuckets, s, join(Steps))
		}
		m = edge(s.next(m.Time().In(zone)))
		edges = append(edges, m)
	}
	if len(edges) == 1 { // an empty range
		edges = append(edges, m)
	}
	return edges, nil
}

// edge returns the minute of an edge in local time. Offsets from UTC have been
// whole minutes everywhere since 1972; where they had not, it is the next minute.
func edge(t time.Time) windows.Minute {
	return min(ceilMinute(time.UnixMilli(max(0, t.UnixMilli()))), windows.MaxMinute)
}

func join[T ~string](names []T) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(n))
	}
	return b.String()
}
