package sketches

import "math"

// Estimate returns how many different users the registers have seen: what the
// library's Sketch.Estimate returns for them. It is LogLog-Beta (Qin, Kim and
// Tung, arXiv:1612.02284) with the library's polynomial for p = 14, from a
// histogram of the ranks, since there are 52 of those and 16,384 registers.
func (r Registers) Estimate() uint64 {
	ranks := r.histogram()
	var sum float64
	for rank := MaxRank; rank >= 0; rank-- { // the small terms first
		sum += math.Ldexp(float64(ranks[rank]), -rank)
	}
	m, zeros := float64(RegisterCount), float64(ranks[0])
	alpha := 0.7213 / (1 + 1.079/m) // corrects the bias of the harmonic mean
	return uint64(alpha*m*(m-zeros)/(sum+beta(zeros)) + 0.5)
}

// beta is the library's fit for p = 14. Its powers are multiplied up in the order
// in which math.Pow, which the library calls, does it for whole exponents: so not
// even a rounding differs.
func beta(zeros float64) float64 {
	z := math.Log(zeros + 1)
	z2 := z * z
	z3, z4 := z*z2, z2*z2
	return -0.371009760230692*zeros +
		0.00978811941207509*z +
		0.185796293324165*z2 +
		0.203015527328432*z3 +
		-0.116710521803686*z4 +
		0.0431106699492820*(z*z4) +
		-0.00599583540511831*(z2*z4) +
		0.000449704299509437*(z3*z4)
}

// histogram counts the registers of each rank. Four tables in turn: runs of the
// same rank would else wait for one another's store.
func (r Registers) histogram() [64]uint32 {
	regs := (*[RegisterCount]byte)(r)
	var h [4][64]uint32
	for i := 0; i < RegisterCount; i += 4 {
		h[0][regs[i]&63]++
		h[1][regs[i+1]&63]++
		h[2][regs[i+2]&63]++
		h[3][regs[i+3]&63]++
	}
	for rank := range h[0] {
		h[0][rank] += h[1][rank] + h[2][rank] + h[3][rank]
	}
	return h[0]
}
