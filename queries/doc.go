// Package queries answers questions from what is sealed in the store and from
// what is still open in the windows: how many viewers and events an item, or the
// whole site, had in a range of time, and which items had the most.
//
// A question is what a URL's parameters say (Ask); an answer is a struct whose
// JSON is the API's. Between the two stand, one file each: the range and its
// buckets (times.go, zones.go), one consistent look at the store and the windows
// (view.go), the summaries of some keys in some buckets (gather.go), and then one
// question a file.
//
// Invariants:
//
//	Q1. Store first, then what waits and is open, partition by partition, after the
//	    pair that the snapshot holds: no event is missing or counted twice while a
//	    seal moves into the store.
//	Q2. The truth lies within every number's bounds: always where the method is
//	    exact or count-min, in 95 of 100 questions where it is hll.
//	Q3. While no window is over its budget of slots, an answer is a function of the
//	    events alone: not of their order, of partitions, seals, or of what is still
//	    open. So nothing in an answer may depend on how a minute is cut into parts.
//	Q4. A ranking that calls itself certified is the right one: no item outside it
//	    can beat its last place. While no window is over its budget every ranking by
//	    views is.
//	Q5. The answer names the range that it used; nothing is taken in or left out
//	    silently.
//	Q6. No question makes an answer without bounds: items, buckets, values and
//	    ranks are limited, and the limit is named when it is met.
//	Q7. What is remembered from one question to the next never changes an answer.
package queries
