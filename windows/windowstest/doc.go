// Package windowstest says what is right: an oracle that counts events one by
// one, streams of events that are hard to count, and a form of what the engine
// made of them that can be compared bit for bit. Tests use it; nothing else does.
//
// Invariants:
//
//	WT1. The oracle knows no sketch, no window and no minute. It counts with maps
//	     over a half-open range [From, To) of Unix milliseconds, names compared
//	     byte by byte.
//	WT2. A stream is a function of its Shape alone, seed included.
//	WT3. Merged is a function of the set of rows added, not of their order or
//	     grouping; two of them are equal exactly when all counts, tokens and
//	     registers are.
package windowstest
