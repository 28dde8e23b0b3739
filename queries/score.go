package queries

import (
	"math"

	"tidemark/sketches"
)

// What counts as rising. docs/trending.md says what each is for, with figures.
const (
	// listed is the score from which on an item is listed: that by chance alone one of
	// a thousand items gets there less than once an hour, whatever their rates.
	listed = 5
	// floor is the least number that is expected: else a few views of what nobody
	// knew were a sensation.
	floor = 1
	// viewsPerViewer is how many views there may be for each different viewer: more
	// than that is a robot, or a page that loads again and again.
	viewsPerViewer = 10
)

// yardstick is the lengths of the ranges that are compared, in minutes.
type yardstick struct {
	window float64 // what has passed of it
	hour   float64 // of the hour before the window, what is known
	week   float64 // the same hour of last week; 0: not known
}

// expectation is how many events were to be expected in the window.
type expectation struct {
	value    float64
	variance float64 // of the value, since it is itself counted
	baseline float64 // minutes that it rests on
}

// expect says what is to be expected after so many in the hour before and in that of
// last week. Who had nothing last week was not there, which says nothing.
//
// Products are converted before they are added, or one processor would round them
// another way than the next, and two nodes differ.
func (y yardstick) expect(hour, week uint64) expectation {
	h := float64(hour)
	e := expectation{value: h / y.hour, variance: (h + 1) / (y.hour * y.hour), baseline: y.hour}
	if y.week > 0 && week > 0 {
		w := float64(week)
		e.value = (e.value + w/y.week) / 2
		e.variance = (e.variance + (w+1)/(y.week*y.week)) / 4
		e.baseline = 4 / (1/y.hour + 1/y.week)
	}
	e.value = max(floor, e.value*y.window)
	e.variance *= y.window * y.window
	return e
}

// score is how surprising a count is, in standard deviations: both square roots have
// the same deviation, one half, whatever the volume (Anscombe, 1948), and that of the
// baseline comes with it. It is rounded, so that it is the same everywhere.
func (y yardstick) score(observed uint64, e expectation) float64 {
	s := 2 * (math.Sqrt(float64(observed)+3.0/8) - math.Sqrt(e.value+3.0/8)) / math.Sqrt(1+y.window/e.baseline)
	return rounded(s)
}

// least returns the number of events that it takes at least to be listed.
func (y yardstick) least() uint64 {
	most := y.expect(1, 1).baseline
	root := math.Sqrt(floor+3.0/8) + listed/2.0*math.Sqrt(1+y.window/most)
	// One less than that, for the rounding.
	return uint64(max(1, math.Floor(root*root-3.0/8)))
}

func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// Expectation is a Number that need not be whole.
type Expectation struct {
	Value  float64         `json:"value"`
	Low    float64         `json:"low"`
	High   float64         `json:"high"`
	Method sketches.Method `json:"method"` // of the counts that it comes from
}

// number returns the expectation with its 95 % bounds.
func (e expectation) number(method sketches.Method) *Expectation {
	off := 1.96 * math.Sqrt(e.variance)
	return &Expectation{rounded(e.value), rounded(max(0, e.value-off)), rounded(e.value + off), method}
}
