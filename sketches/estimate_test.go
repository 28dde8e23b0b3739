package sketches

import (
	"math"
	"testing"
)

// TestPowersAreThoseOfTheLibrary tries every number of empty registers that there
// is: multiplied up, the powers are bit for bit what math.Pow returns (S1).
func TestPowersAreThoseOfTheLibrary(t *testing.T) {
	pow := math.Pow // as it is, not what a linter makes of it
	for zeros := range RegisterCount + 1 {
		z := math.Log(float64(zeros) + 1)
		want := -0.371009760230692*float64(zeros) +
			0.00978811941207509*z +
			0.185796293324165*pow(z, 2) +
			0.203015527328432*pow(z, 3) +
			-0.116710521803686*pow(z, 4) +
			0.0431106699492820*pow(z, 5) +
			-0.00599583540511831*pow(z, 6) +
			0.000449704299509437*pow(z, 7)
		if got := beta(float64(zeros)); got != want {
			t.Fatalf("%d empty registers: %v, want %v", zeros, got, want)
		}
	}
}
