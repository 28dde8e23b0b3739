// Package store keeps sealed minutes on disk, in Pebble, and answers from them.
//
// What is stored is never changed in place: a seal adds the parts of its minutes,
// as blocks of rows sorted by series and item, and any answer is a merge of parts.
// FORMAT.md beside this file is the format, byte by byte, with what each point of
// a crash leaves behind.
//
// Invariants:
//
//	ST1. A seal is in the store as a whole or not at all, and once: it is taken
//	     exactly if the position of its partition is the seal's predecessor.
//	ST2. A seal that Apply has acknowledged is on the disk.
//	ST3. No block refers to an id whose name is not in the store: names are written
//	     to the log before any seal that uses them, by whomever.
//	ST4. A Snapshot never changes. What it says a partition's position is, that is
//	     exactly what its rows hold.
//	ST5. A part is read only if the catalogue names it. So what a crash leaves
//	     behind of a part is never part of an answer.
//	ST6. A value that is not what was written is an error that names its key, never
//	     a number.
//	ST7. A store belongs to one hash key, one number of partitions, and one process
//	     at a time.
//	ST8. A seal waits in the outbox, as a whole, from the batch that stores it until
//	     every sink that is subscribed has it; those of a partition without a gap.
package store
