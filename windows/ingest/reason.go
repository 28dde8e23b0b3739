package ingest

// Limits of an event's fields, in bytes. A title, url or image that is longer is
// left out of its event and counted, all else makes the record malformed.
const (
	MaxItem      = 1024
	MaxType      = 64
	MaxUser      = 256
	MaxID        = 256
	MaxDimension = 256 // a value of a declared dimension
	MaxTitle     = 1 << 10
	MaxURL       = 2 << 10
	MaxImage     = 2 << 10
)

// MaxRecord is how long a record may be in bytes, as it stands in its file. A
// longer one is malformed, and skipped without being kept.
const MaxRecord = 1 << 20

// The reasons why a record is malformed: where, what is wrong, and what is asked
// where that is not plain. They are shown to people and counted by programs, so
// they hold nothing of the record itself. Those about a field are made of its name
// once: see newField.
const (
	reasonItemMissing = "item: missing or empty"

	reasonTimeText    = "time: not RFC 3339; as in 2026-01-31T23:59:59Z, or Unix milliseconds as a number"
	reasonTimeZone    = "time: without a zone; Z or +01:00 is asked at its end"
	reasonTimeSeconds = "time: looks like seconds; Unix milliseconds are asked"
	reasonTimeEarly   = "time: before 1970"
	reasonTimeLate    = "time: in 2106 or later; as a number Unix milliseconds are asked"

	reasonUTF8      = "record: not UTF-8"
	reasonLong      = "record: longer than 1 MiB"
	reasonNotObject = "record: not a JSON object"
	reasonJSON      = "record: not valid JSON"
	reasonCut       = "record: JSON that ends too early"
	reasonTwice     = "record: a name stands twice in an object"
	reasonAfter     = "record: something after the JSON object"
	reasonQuote     = "record: a quote out of place; RFC 4180 is asked"
	reasonColumns   = "record: not as many columns as the header"

	reasonStored  = "record: not as the journal keeps them"
	reasonKey     = "kid: unknown key"
	reasonVersion = "record: of a version that this build does not know"

	reasonFileCut     = "file: cut short; its compressed data end too early"
	reasonFileDamaged = "file: damaged; the rest of its compressed data can't be read"
	reasonArrayCut    = "file: cut short; its JSON array is not closed"
)
