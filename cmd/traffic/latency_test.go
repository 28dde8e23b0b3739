package traffic

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A quantile is that of the sorted durations, give or take the width of a bucket.
func TestQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	l := new(latencies)
	var all []time.Duration
	for range 5000 {
		d := time.Duration(r.ExpFloat64() * float64(10*time.Millisecond) * float64(1+r.IntN(100)))
		all = append(all, d)
		l.add(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0.001, 0.5, 0.9, 0.99, 1} {
		want := milliseconds(all[max(0, int(q*float64(len(all)))-1)])
		if got := l.quantile(q); got < want-0.001 || got > want*(1+1.0/fine)+0.002 {
			t.Errorf("%v: %v ms, sorted %v ms", q, got, want)
		}
	}
	for us := range uint64(100_000) {
		if b := bucketOf(us); upper(b) < us || b > 0 && upper(b-1) >= us {
			t.Fatalf("%d is in bucket %d, which ends at %d", us, b, upper(b))
		}
	}
	if got := new(latencies).quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
