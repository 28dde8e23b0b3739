package windows

import "time"

// MaxTime is the first event time, in Unix milliseconds, that is too large to be
// counted: 2106-01-01T00:00:00Z. Event times lie in [0, MaxTime).
const MaxTime int64 = 4291747200000

// MillisPerMinute is the size of a tumbling window in milliseconds.
const MillisPerMinute = 60_000

// Minute is one UTC minute of event time, counted from the Unix epoch. It covers
// the half-open range [m, m+1) · 60 s. Time zones exist only in queries.
type Minute uint32

// MaxMinute is the first minute that no event can lie in; [0, MaxMinute) is all time.
const MaxMinute = Minute(MaxTime / MillisPerMinute)

// MinuteOf returns the minute that holds the Unix time ms, which must lie in [0, MaxTime).
func MinuteOf(ms int64) Minute { return Minute(ms / MillisPerMinute) }

// UnixMilli returns the start of the minute in Unix milliseconds.
func (m Minute) UnixMilli() int64 { return int64(m) * MillisPerMinute }

// Time returns the start of the minute in UTC.
func (m Minute) Time() time.Time { return time.UnixMilli(m.UnixMilli()).UTC() }

// Range is a half-open range of minutes [From, To).
type Range struct{ From, To Minute }

// Empty reports whether the range holds no minute.
func (r Range) Empty() bool { return r.From >= r.To }

// Contains reports whether the range holds m.
func (r Range) Contains(m Minute) bool { return r.From <= m && m < r.To }
