package sketches

import (
	"encoding/json"
	"math"
	"testing"
)

func TestNumberAsJSON(t *testing.T) {
	b, err := json.Marshal(Number{Value: 812, Low: 801, High: 823, Method: MethodHLL})
	if want := `{"value":812,"low":801,"high":823,"method":"hll"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
	if got := ExactNumber(3); got != (Number{3, 3, 3, "exact"}) {
		t.Errorf("%+v", got)
	}
}

func TestDenseNumberIsRoundedOutward(t *testing.T) {
	if got, want := denseNumber(10_000), (Number{10_000, 9843, 10_162, MethodHLL}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := denseNumber(0); got != (Number{0, 0, 0, MethodHLL}) {
		t.Errorf("%+v", got)
	}
	if got := denseNumber(math.MaxUint64); got.High != math.MaxUint64 || got.Low >= got.Value {
		t.Errorf("%+v: the largest number has bounds around it", got)
	}
}

// TestBoundsHoldTheTruth asks many sketches of many sizes (S3).
func TestBoundsHoldTheTruth(t *testing.T) {
	asked, held := 0, 0
	var seed uint64
	for _, n := range []int{5, 12, 13, 100, 700, 1024, 1025, 1100, 1500, 2500, 5000, 10_000, 20_000, 40_000, 100_000} {
		trials := min(300, max(60, 2_000_000/n))
		here := 0
		for range trials {
			seed++
			v := viewersOf(1, randomHashes(n, seed))
			x := v.Number()
			if x.Low <= uint64(n) && uint64(n) <= x.High {
				here++
			}
			if off := math.Abs(float64(x.Value)/float64(n) - 1); off > 0.035 {
				t.Errorf("%d users: off by %.2f %%", n, 100*off)
			}
			if x.Low > x.Value || x.Value > x.High || x.Method == MethodExact && x.Value != uint64(n) {
				t.Errorf("%d users: %+v", n, x)
			}
		}
		asked, held = asked+trials, held+here
		t.Logf("%6d users: the bounds hold the truth in %.1f %%", n, 100*float64(here)/float64(trials))
		// Five sigma below 95 %, for one size.
		if p := float64(here) / float64(trials); p < 0.95-5*math.Sqrt(0.95*0.05/float64(trials)) {
			t.Errorf("%d users: the bounds hold the truth in %.1f %%", n, 100*p)
		}
	}
	if p := float64(held) / float64(asked); p < 0.95 {
		t.Errorf("the bounds hold the truth in %.1f %%, want 95", 100*p)
	}
}
