package windows

import "time"

// Watermark tells when a minute of a live partition may be sealed. It decides only
// when, never what a seal holds.
//
// Not safe for concurrent use.
type Watermark struct {
	lateness time.Duration // behind the newest event time
	maxSkew  time.Duration // ahead of the clock, at most
	idle     time.Duration // without a record at the log's end, until it advances by itself
	at       int64         // Unix ms; it never falls
	caught   time.Time     // since when the partition has been at its log's end; zero: it is not
	advanced time.Time     // until when it was advanced by time
}

// NewWatermark returns a watermark that stays lateness behind the newest event
// time, is never more than maxSkew ahead of the clock, and advances with time once
// its partition has been idle for so long.
func NewWatermark(lateness, maxSkew, idle time.Duration) Watermark {
	return Watermark{lateness: lateness, maxSkew: maxSkew, idle: idle}
}

// Observe takes an event time, Unix ms, of an event that is neither malformed nor
// in the future.
func (w *Watermark) Observe(ms int64) { w.at = max(w.at, ms-w.lateness.Milliseconds()) }

// Busy says that the partition is not at the end of its log.
func (w *Watermark) Busy() { w.caught, w.advanced = time.Time{}, time.Time{} }

// Idle says that the partition is at the end of its log, as just told by it.
// leading is the most advanced watermark of the log, Unix ms. now must carry the
// monotonic clock: the wall clock may jump.
func (w *Watermark) Idle(now time.Time, leading int64) {
	if w.caught.IsZero() {
		w.caught = now
	}
	from := w.caught.Add(w.idle)
	if now.Before(from) {
		return
	}
	if w.advanced.After(from) {
		from = w.advanced
	}
	if w.at > 0 { // else there is nothing to advance from
		w.at += now.Sub(from).Milliseconds()
	}
	w.at = max(w.at, leading)
	// What was not a whole millisecond is kept for the next time.
	w.advanced = from.Add(now.Sub(from).Truncate(time.Millisecond))
}

// At returns the watermark in Unix ms, given the wall clock: 0 before any event.
func (w *Watermark) At(now time.Time) int64 {
	return max(0, min(w.at, now.Add(w.maxSkew).UnixMilli()))
}
