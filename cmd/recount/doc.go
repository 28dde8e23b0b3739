// Package recount counts a journal again, as plainly as can be: with maps, record after
// record, by the rules as docs/exactly-once.md and windows/ingest/FORMAT.md have them
// written. It shares nothing with the code whose counts it is compared with: no window,
// no sketch, no table of event IDs, no decoder.
//
// Invariants:
//
//	RC1. What becomes of a record follows from the journal and the settings alone.
//	RC2. A minute is counted whole or left out: see Count.From and Count.Unsure.
//	RC3. Memory is bounded: a pass that meets more than its budget of counts gives up
//	     its latest minutes, and the next pass begins with them.
package recount
