// Package ingest brings events in: from bytes to windows.Event, each with exactly
// one outcome. It reads history from files (OpenFiles), takes events into a journal
// (NewAccepter) and reads them from there (NewPump), and decides what becomes of a
// record (NewJudge).
//
// The path of a record through a file import, in the order of the files:
//
//	content.go   what the files are: hashed, so that a log has a name
//	source.go    raw bytes, inflated where they are gzip or zstd
//	format.go    which shape: lines of JSON, an array, objects over many lines, CSV
//	split.go     where the next record ends (csv.go: a row)
//	fast.go      JSON, the plain case, by hand
//	strict.go    JSON, everything else, by a strict library
//	record.go    what was read of it, checked (field.go, time.go)
//	decoder.go   as an event, with its hashes and its partition
//	chunk.go     buffers and events in them, handed out by partition
//	reading.go   the loop over all that
//	files.go     what an import is from outside
//	original.go  its records as they were written, to be sent elsewhere
//	http.go      a body of HTTP, read alike: into payloads of the journal
//	stored.go    the form of these, see FORMAT.md
//	pump.go      the loop from the journal, to events again
//	judge.go     future, duplicate, too old, late or counted (dedup.go, newest.go)
//
// What a value may be, beyond what its field's type says: a number written as an
// integer stands for its digits where text is asked (-0 for "-0"). null, and text
// that is empty, count as absent; only an item must be there. An empty time is one
// of CSV that is absent, but text of JSON that is no time. Values are bytes: never
// trimmed, folded or normalized, and a NUL is one like others. A value of a
// dimension is its text as it is written: 1.0 is not 1.
//
// Invariants:
//
//	I1. Each record of a log has one number, and each number one record: a function
//	    of the bytes of the files and their order, not of buffer sizes or restarts.
//	    Blank lines and the header of a CSV file are no records; everything else is,
//	    readable or not.
//	I2. What an event holds is a function of its record's bytes, the timestamp given
//	    to the import, and the settings. Whatever the fast pass accepts, the strict
//	    library accepts, with the same fields.
//	I3. A record that is not an event is Malformed, has its reason, and harms no
//	    other record. Reasons are from a fixed list: they can be counted.
//	I4. Memory is bounded whatever the input: MaxRecord bytes a record, a fixed
//	    number of buffers, and no allocation for an event once they are warm.
//	I5. A Judge's outcomes are a function of the records of its partition in the
//	    order of their offsets, from Look of the first one asked for: not of batch
//	    sizes, clocks or restarts.
//	I6. Who somebody is does not get beyond an Accepter: neither into the journal, nor
//	    into a reason, an error or a log.
package ingest
