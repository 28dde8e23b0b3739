package queries

import (
	"time"
	_ "time/tzdata" // a slim image has no time zones of its own
)

// floor returns where the step that holds t begins, in t's location.
func (s Step) floor(t time.Time) time.Time {
	switch s {
	case StepHour:
		return floorHour(t)
	case StepDay, StepWeek, StepMonth:
		d := s.first(dateOf(t))
		start := d.start(t.Location())
		// Where a clock is put back over midnight, t can lie before its date's start.
		for start.After(t) {
			d = s.first(d.add(0, -1))
			start = d.start(t.Location())
		}
		return start
	case StepMinute:
	}
	return t.Truncate(time.Minute)
}

// next returns where the step ends that begins at t.
func (s Step) next(t time.Time) time.Time {
	switch s {
	case StepHour:
		return nextHour(t)
	case StepDay, StepWeek, StepMonth:
		// A date that a zone left out (Samoa's 30 December 2011) has no length.
		for d := s.after(dateOf(t)); ; d = s.after(d) {
			if start := d.start(t.Location()); start.After(t) {
				return start
			}
		}
	case StepMinute:
	}
	return t.Add(time.Minute)
}

// first returns the first date of the step that holds d.
func (s Step) first(d date) date {
	switch s {
	case StepWeek:
		return d.add(0, -(int(d.weekday())+6)%7)
	case StepMonth:
		return date{d.year, d.month, 1}
	default:
		return d
	}
}

// after returns the first date of the step after the one that holds d.
func (s Step) after(d date) date {
	d = s.first(d)
	switch s {
	case StepWeek:
		return d.add(0, 7)
	case StepMonth:
		return d.add(1, 0)
	default:
		return d.add(0, 1)
	}
}

// floorHour returns the start of the local hour that holds t. A change of the
// zone's offset begins an hour of its own, since the clock jumps there.
func floorHour(t time.Time) time.Time {
	_, m, sec := t.Clock()
	start := t.Add(-time.Duration(m)*time.Minute - time.Duration(sec)*time.Second - time.Duration(t.Nanosecond()))
	if change, _ := offsetBounds(t); change.After(start) {
		return change
	}
	return start
}

// nextHour returns the end of the local hour that begins at t.
func nextHour(t time.Time) time.Time {
	_, m, sec := t.Clock()
	end := t.Add(time.Hour - time.Duration(m)*time.Minute - time.Duration(sec)*time.Second - time.Duration(t.Nanosecond()))
	if _, change := offsetBounds(t); !change.IsZero() && change.Before(end) {
		return change
	}
	return end
}

// offsetBounds returns since when, and until when, t's clock has the offset from UTC
// that it has then; zero where that has no end.
//
// Time.ZoneBounds also ends a period with the year, in zones whose changes follow a
// rule from some year on; and takes every year to have 365 days, so that on the last
// one of a leap year the end lies before t: whoever walks on there never ends.
func offsetBounds(t time.Time) (begin, end time.Time) {
	_, offset := t.Zone()
	has := func(t time.Time) bool {
		_, o := t.Zone()
		return o == offset
	}
	for begin, _ = t.ZoneBounds(); !begin.IsZero() && has(begin.Add(-1)); {
		begin, _ = begin.Add(-1).ZoneBounds()
	}
	for at := t; ; at = end {
		if _, end = at.ZoneBounds(); end.IsZero() {
			return begin, end
		}
		if !end.After(at) {
			end = time.Date(at.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).In(t.Location())
		}
		if !has(end) {
			return begin, end
		}
	}
}

// date is a day of the calendar, without a time zone.
type date struct {
	year  int
	month time.Month
	day   int
}

func dateOf(t time.Time) date {
	y, m, d := t.Date()
	return date{y, m, d}
}

// midnight is the date's start in UTC.
func (d date) midnight() time.Time { return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC) }

func (d date) weekday() time.Weekday { return d.midnight().Weekday() }

// add returns the date so many months and days later.
func (d date) add(months, days int) date {
	return dateOf(d.midnight().AddDate(0, months, days))
}

// start returns when the date begins in a zone: the last instant at which the
// local date turns from an earlier one to d or a later one.
//
// time.Date does not say that. Midnight may not exist (Beirut's clocks jump from
// 0:00 to 1:00), or come twice: Havana's go back from 1:00 to 0:00, where the day
// has begun the first time; St. John's went back from 0:01 to 23:01 of the day
// before, where it begins the second time.
func (d date) start(zone *time.Location) time.Time {
	midnight := d.midnight()
	// No zone is 26 hours from UTC. Walk through the periods of one offset each
	// that lie around midnight.
	last := midnight.Add(26 * time.Hour)
	var start time.Time
	begun := false // the period before ended on d or later
	for t := midnight.Add(-26 * time.Hour).In(zone); ; {
		begin, end := offsetBounds(t)
		_, offset := t.Zone()
		at := midnight.Add(-time.Duration(offset) * time.Second).In(zone)
		switch {
		case !end.IsZero() && !at.Before(end): // it ends before midnight
			begun = false
		case begin.IsZero() || at.After(begin): // midnight lies within it
			start, begun = at, true
		case !begun: // the clock jumps over midnight where it begins
			start, begun = begin, true
		}
		if end.IsZero() || end.After(last) {
			return start
		}
		t = end
	}
}
