// Package windows turns a stream of events into sealed one-minute summaries. It
// holds the vocabulary that the other packages speak (Event, Minute, Outcome,
// Series, Row, Partial, Seal) and the engine: one goroutine a partition, its open
// windows, the watermark, and the cuts that seal them.
//
// An event enters the summaries of its window under these keys: its type's
// series (Row kinds Item and Site), and for each declared dimension that it has a
// value of, the series of that value (Item and Site again).
//
// Invariants:
//
//	W1. An event is counted in the minute of its own time, never of its arrival.
//	W2. Every record has exactly one Outcome; a window's outcomes and those of
//	    its siblings sum to the records read.
//	W3. A Partial never changes; readers need no lock.
//	W4. One goroutine owns a partition's windows. Everybody else reads them under
//	    the partition's lock, which is held for one run of at most 128 events.
//	W5. What a window holds is a function of the records that entered it, in the
//	    order of their offsets: not of batch sizes, clocks or memory addresses.
//	    Counts and viewers do not even depend on the order.
//	W6. Two items never share a slot: a slot is found by 88 bits of a hash that is
//	    keyed by the deployment's secret, so nobody outside can make two meet, and
//	    by chance 10^9 items do with a probability of 10^-9.
//	W7. Memory is bounded: a window gives slots to at most its limit of keys; what
//	    comes beyond is counted exactly in its series' Overflow, estimated by item
//	    in the Count-Min table, and the highest of it are kept by name in a heap.
//	W8. A pair (F, S) never falls, and holds each record once: see Pair. What has no
//	    usable minute is in the first seal behind it, even of a minute that stays open.
//
// How it is fast: events come in batches and are handled in runs of 128 by
// separate tight loops (resolve, touch, update), so that the cache misses of a run
// overlap; a slot is one cache line; there is no pointer in the tables, no lock
// and no allocation for an event. Figures: make bench.
package windows
