// Package journal is an embedded log: records of a fixed number of partitions, in
// one physical log that is cut into segments. FORMAT.md beside this file is the
// format, byte by byte, with what each point of a crash leaves behind.
//
// One call of Append is one group. A single goroutine writes: whatever was
// appended while the last sync ran goes into the next write, and is synced with
// it. Readers walk the physical log once for all partitions, from memory as far as
// it is recent.
//
// Every group says up to which position the log was synced when it was written. So
// a later group vouches for what lies before it, and recovery can tell a torn tail,
// which nobody was told of, from damage to what was acknowledged.
//
// Invariants:
//
//	J1. What Append has acknowledged is on the disk. It is handed out at the same
//	    partition, offset and stamp for ever, until it is trimmed.
//	J2. A group is in the log as a whole or not at all.
//	J3. Nothing is handed out that is not synced.
//	J4. Offsets count from 0 in each partition, without gaps, in the order of the
//	    log. Stamps never fall.
//	J5. A file is never trusted after a write or a sync of it has failed: what was
//	    synced before stays, the rest is dropped, and a new segment is begun. Nor is
//	    it trusted by the next Open, which can't know of the failure: what no group
//	    vouches for is copied into a new segment, and synced there.
//	J6. Bytes that are not what was written are an error that names the file and
//	    the position, or a torn tail; never a record.
//	J7. Segments are removed from the old end only, one at a time, so that those
//	    that are there always follow on from each other.
//	J8. Memory is bounded by the options: the queue, the recent part, and one group
//	    a reader.
//	J9. A journal belongs to one number of partitions, and to one process at a time.
package journal
