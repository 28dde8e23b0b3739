package sketches

import "math"

// Method says how a Number was come by.
type Method string

// The methods, from the best to the weakest.
const (
	MethodExact    Method = "exact"     // there is no error
	MethodHLL      Method = "hll"       // HyperLogLog: tokens or registers
	MethodCountMin Method = "count-min" // a Count-Min table, or bounded by one
)

// Number is an answer with its bounds: the truth lies in [Low, High] with a
// probability of at least 95 %, and always where the method is MethodExact.
type Number struct {
	Value  uint64 `json:"value"`
	Low    uint64 `json:"low"`
	High   uint64 `json:"high"`
	Method Method `json:"method"`
}

// ExactNumber returns n, known exactly.
func ExactNumber(n uint64) Number { return Number{Value: n, Low: n, High: n, Method: MethodExact} }

// StandardError is σ of an estimate from registers, relative to the truth.
const StandardError = 1.04 / 128 // 1.04/√RegisterCount

// denseNumber puts 95 % bounds around an estimate from registers.
func denseNumber(n uint64) Number {
	const z = 1.96
	return Number{
		Value:  n,
		Low:    uint64(math.Floor(float64(n) / (1 + z*StandardError))),
		High:   saturate(math.Ceil(float64(n) / (1 - z*StandardError))),
		Method: MethodHLL,
	}
}

// saturate converts, with what is too large becoming the largest.
func saturate(f float64) uint64 {
	if f >= 1<<64 {
		return math.MaxUint64
	}
	return uint64(f)
}
