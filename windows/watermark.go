package windows

import "time"

// Watermark tells when a minute of a live partition may be sealed. It decides only
// when, never what a seal holds.
//
// Not safe for concurrent use.
type Watermark struct {
	lateness int64 // ms behind the newest event time
	maxSkew  int64 // ms ahead of the clock, at most
	newest   int64 // event time, Unix ms
}

// NewWatermark returns a watermark that stays lateness behind the newest event
// time, and is never more than maxSkew ahead of the clock.
func NewWatermark(lateness, maxSkew time.Duration) Watermark {
	return Watermark{lateness: lateness.Milliseconds(), maxSkew: maxSkew.Milliseconds()}
}

// Observe takes an event time, Unix ms, of an event that is neither malformed nor
// in the future.
func (w *Watermark) Observe(ms int64) { w.newest = max(w.newest, ms) }

// At returns the watermark in Unix ms, given the wall clock: 0 before any event.
func (w *Watermark) At(now time.Time) int64 {
	return max(0, min(w.newest-w.lateness, now.UnixMilli()+w.maxSkew))
}
