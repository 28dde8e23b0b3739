package queries

import (
	"time"

	"tidemark/windows"
)

// Bounds of the window of a ranking by what rises.
const (
	minRising = time.Minute
	maxRising = 6 * time.Hour
)

const (
	hourMinutes    = windows.Minute(60)
	weekMinutes    = 7 * 24 * hourMinutes
	quarterMinutes = windows.Minute(15) // all that is kept of last week
)

// comparison is the ranges that a ranking by what rises compares.
type comparison struct {
	window     windows.Range
	hour, week windows.Range // what is known of them; empty: nothing
	yardstick
}

// compare returns what the window of a question is compared with.
//
// The unfinished minute counts as far as it has passed: up to the question's instant,
// or to where the logs have been read, whichever is later. So an instant asked for
// later has all of its minute.
func (v *view) compare(s *span, now time.Time) comparison {
	c := comparison{window: s.Range}
	until := s.To.UnixMilli()
	if v.watched {
		until = min(until, max(now.UnixMilli(), v.watermark))
	}
	c.yardstick.window = float64(until-s.From.UnixMilli()) / float64(time.Minute/time.Millisecond)

	known := v.kept.From + 1 // the first minute may have begun before the first event
	hour := windows.Range{From: max(known, s.From-min(s.From, hourMinutes)), To: s.From}
	if !hour.Empty() {
		if _, gone := v.snap.Plan([]windows.Minute{hour.From, hour.To}); len(gone) > 0 {
			hour.From = gone[len(gone)-1].To
		}
	}
	if hour.Empty() {
		return c
	}
	c.hour, c.yardstick.hour = hour, float64(hour.To-hour.From)

	// In whole quarters, and as long as the window, but at least an hour.
	week := windows.Range{From: s.From / quarterMinutes * quarterMinutes}
	week.To = max(week.From+hourMinutes, (s.To+quarterMinutes-1)/quarterMinutes*quarterMinutes)
	if week.From < weekMinutes+known {
		return c
	}
	week.From, week.To = week.From-weekMinutes, week.To-weekMinutes
	if _, gone := v.snap.Plan([]windows.Minute{week.From, week.To}); len(gone) > 0 {
		return c
	}
	c.week, c.yardstick.week = week, float64(week.To-week.From)
	return c
}

// comparable reports whether there is something to compare with.
func (c comparison) comparable() bool { return !c.hour.Empty() && c.yardstick.window > 0 }

// halves divides the window into what hardly changes any more, and the minutes that
// still get parts all the time.
func (c comparison) halves() []windows.Range {
	const fresh = 3
	at := max(c.window.From, c.window.To-min(c.window.To, fresh))
	return []windows.Range{{From: c.window.From, To: at}, {From: at, To: c.window.To}}
}

func (c comparison) ranges() []windows.Range { return []windows.Range{c.window, c.hour, c.week} }
