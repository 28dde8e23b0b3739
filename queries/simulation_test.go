package queries

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The simulation asks a ranking by what rises every second, of items whose views come
// at random: it counts who is listed though nothing has changed, and how long it takes
// until who has really become popular is. docs/trending.md has its figures.

// views is when an item was seen, in seconds, ascending; 0 is where the simulation
// begins, an hour and the longest window after the first.
type views []float64

// seen returns views at a rate a minute from one second to another.
func seen(r *rand.Rand, rate, from, to float64) (v views) {
	for at := from + r.ExpFloat64()*60/rate; at < to; at += r.ExpFloat64() * 60 / rate {
		v = append(v, at)
	}
	return v
}

func (v views) between(from, to float64) uint64 {
	first, _ := slices.BinarySearch(v, from)
	last, _ := slices.BinarySearch(v, to)
	return uint64(last - first)
}

// poisson is how many views there were in last week's hour.
func poisson(r *rand.Rand, mean float64) (n uint64) {
	for at := r.ExpFloat64(); at < mean; at += r.ExpFloat64() {
		n++
	}
	return n
}

// scoreAt returns an item's score at a second, in a ranking of the last minutes.
func (v views) scoreAt(second float64, last int, week uint64) float64 {
	from := (math.Floor(second/60) - float64(last)) * 60
	y := yardstick{window: (second - from) / 60, hour: 60, week: weekOf(last)}
	return y.score(v.between(from, second), y.expect(v.between(from-3600, from), week))
}

// weekOf is how long last week's stretch is.
func weekOf(last int) float64 {
	if last == 60 {
		return 75
	}
	return 60
}

// simulated is what the simulation has to say of a window.
type simulated struct {
	last    int
	entries [2]float64 // that nothing was the reason of, an hour, among 1,000 items: with last week's hour and without
	highest float64    // score of those
	times   [3]string  // until a burst is listed: half of them, and nine of ten
}

var burstRates = [3]float64{5, 50, 500}

func simulate(r *rand.Rand, last, hours, bursts int) simulated {
	s := simulated{last: last}
	before := -float64(3600 + 60*last)
	for range hours {
		for i := range 1000 {
			rate := 0.5 * math.Pow(100, float64(i)/999) // 0.5 to 50 a minute
			v := seen(r, rate, before, 3600)
			week := poisson(r, rate*weekOf(last))
			// A score rises with a view, or where a minute begins, and else only falls.
			first, _ := slices.BinarySearch(v, 0)
			at := slices.Clone(v[first:])
			for minute := range 60 {
				at = append(at, float64(60*minute))
			}
			slices.Sort(at)
			for k, week := range []uint64{week, 0} {
				in := true // what was listed at the start is no entry
				for _, second := range at {
					score := v.scoreAt(math.Ceil(second), last, week)
					now := score >= listed
					s.highest = max(s.highest, score)
					if now && !in {
						s.entries[k] += 1 / float64(hours)
					}
					in = now
				}
			}
		}
	}
	for i, rate := range burstRates {
		took := make([]float64, bursts)
		for b := range took {
			at := r.Float64() * 60 // within a minute
			end := max(600, 2*3600*burstRates[0]/rate)
			v := append(seen(r, rate, before, at), seen(r, 3*rate, at, end)...)
			week := poisson(r, rate*weekOf(last))
			took[b] = math.Inf(1)
			for second := math.Ceil(at); second < end; second++ {
				if v.scoreAt(second, last, week) >= listed {
					took[b] = second - at
					break
				}
			}
		}
		slices.Sort(took)
		s.times[i] = fmt.Sprintf("%s, %s", duration(took[bursts/2]), duration(took[bursts*9/10]))
	}
	return s
}

func duration(seconds float64) string {
	if math.IsInf(seconds, 1) {
		return "never"
	}
	return (time.Duration(math.Ceil(seconds)) * time.Second).String()
}

// TestNothingRisesByChance is the promise of docs/trending.md: no trend, at most one
// entry an hour among 1,000 items; and its table is what comes out here.
func TestNothingRisesByChance(t *testing.T) {
	doc, err := os.ReadFile("../docs/trending.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, last := range []int{1, 5, 60} {
		s := simulate(rand.New(rand.NewPCG(uint64(last), 8)), last, 5, 100)
		if slices.Max(s.entries[:]) > 1 {
			t.Errorf("last %dm: %.1f entries an hour", last, s.entries)
		}
		row := fmt.Sprintf("| `last=%dm` | %.1f | %.1f | %.1f | %s |", last, s.entries[0], s.entries[1], s.highest, strings.Join(s.times[:], " | "))
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/trending.md lacks\n%s", row)
		}
	}
}
