// Package sinks delivers what the engine seals to where others read it: it says
// what a Sink must guarantee and what it takes seals from, and Deliverer moves them.
//
// Delivery is by pull. Seals wait in an outbox until every sink has them; each sink
// takes them at its own pace, and one that is away stops nothing but itself.
//
// Invariants. Tests cite them by number.
//
//	D1. Seals reach a sink in the order in which their partition was sealed.
//	D2. A seal is marked as delivered only when the sink has said that it is there
//	    for good. So it is delivered at least once, and since delivering one again
//	    changes nothing (see Sink), its effect is there exactly once.
//	D3. What is being delivered does not change: after a failure the same seals are
//	    delivered again, until they are there.
//	D4. Nothing is left out. A sink that cannot take a seal, or that has lost what it
//	    had, stops with the reason and goes on once that is mended.
package sinks
