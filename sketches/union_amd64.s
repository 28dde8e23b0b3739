//go:build !noasm

#include "textflag.h"

// func unionAVX2(dst, src *[RegisterCount]byte)
// dst[i] = max(dst[i], src[i]), 128 registers a turn.
TEXT ·unionAVX2(SB), NOSPLIT, $0-16
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ $16384, CX

turn:
	VMOVDQU (DI), Y0
	VMOVDQU 32(DI), Y1
	VMOVDQU 64(DI), Y2
	VMOVDQU 96(DI), Y3
	VPMAXUB (SI), Y0, Y0
	VPMAXUB 32(SI), Y1, Y1
	VPMAXUB 64(SI), Y2, Y2
	VPMAXUB 96(SI), Y3, Y3
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	ADDQ $128, DI
	ADDQ $128, SI
	SUBQ $128, CX
	JNZ turn
	VZEROUPPER
	RET
