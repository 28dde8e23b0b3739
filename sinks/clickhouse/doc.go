// Package clickhouse is the sink that writes sealed minutes into ClickHouse, where
// analysts query them in SQL: counts exactly, viewers as sketches that SQL merges.
//
// The tables and what they are for are in migrations/. A delivery writes whole
// seals, first all their rows, last their rows in the table seals.
//
// Invariants. Tests cite them by number.
//
//	CH1. Delivering a seal again changes no answer. Counts are rows whose keys end
//	     with the seal's identity, and of two rows with one key the fuller stays;
//	     viewers and texts are merged by operations that are idempotent. So nothing
//	     depends on deduplication by the server, on the grouping of inserts, or on
//	     whether an insert that failed was taken.
//	CH2. A row in seals says that every other row of that seal is there, on disk.
//	CH3. An insert spans at most maxMonths partitions: ClickHouse takes 100, and its
//	     error for more is that of too many parts, for which one waits.
//	CH4. What a column cannot hold is refused, by name, and never sent. Neither the
//	     driver nor the server would refuse it: they wrap.
//	CH5. Numbers come out as they went in: sums of events are those of the seals, and
//	     the viewers of any union of rows are what package sketches says of it.
//	CH6. Nothing is written to a database of another deployment, or whose tables are
//	     not as the migrations left them, or that knows more of a log than is known here.
package clickhouse
