// Package traffic makes events up, as a site with videos would send them, and brings
// events of any kind to a server over HTTP, without losing or doubling one.
//
//	stream.go    who does what when: Zipf items, people who come back, a viral item
//	catalogue.go items with titles and channels; countries, devices, sources
//	pace.go      events into batches, each when it is due
//	sender.go    batches over several connections, each sent until it is taken
//	client.go    one batch, sent again until it is taken
//	latency.go   how long that took
//
// Invariants:
//
//	L1. A stream is a function of its Config: the same seed makes the same events at the
//	    same times from its start. Only the start itself and the run's name differ.
//	L2. A batch is sent, with the same bytes, until the server has answered that it is
//	    durable. Its events have IDs, so one that was taken without an answer counts once.
//	L3. The memory of a stream and of a sender is bounded, whatever the rate and however
//	    long they run.
package traffic
