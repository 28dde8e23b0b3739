package ingest

import (
	"encoding/binary"
	"math"
	"strconv"

	"tidemark/windows"
)

// Unix times in seconds, taken for milliseconds, would all fall into the first
// weeks of 1970. A number that is a time from March 1973 to 2105 in seconds is
// therefore refused: who means the weeks from 2 January to 19 February 1970 can
// say so in RFC 3339. Smaller numbers are left alone: nobody has events of before
// 1973, but tests have events near 0.
const (
	secondsFrom = 100_000_000
	secondsTo   = windows.MaxTime / 1000
)

// parseMillis reads Unix milliseconds, written as a number of JSON. A fraction is
// cut off: some languages write 1767225600000.25 for want of integers.
func parseMillis(v []byte) (ms int64, reason string) {
	if ms, ok := digits(v); ok {
		return checkMillis(ms)
	}
	return parseNumber(v)
}

// digits reads 1 to 15 digits without a leading zero.
func digits(v []byte) (n int64, ok bool) {
	if len(v) == 0 || len(v) > 15 || v[0] == '0' && len(v) > 1 {
		return 0, false
	}
	for _, c := range v {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, true
}

func parseNumber(v []byte) (ms int64, reason string) {
	f, err := strconv.ParseFloat(string(v), 64)
	switch {
	case f < 0:
		return 0, reasonTimeEarly
	case f >= float64(windows.MaxTime) || err != nil:
		return 0, reasonTimeLate // the one error of what is a number: it is too large
	}
	return checkMillis(int64(math.Floor(f)))
}

func checkMillis(ms int64) (int64, string) {
	switch {
	case ms >= windows.MaxTime:
		return 0, reasonTimeLate
	case ms >= secondsFrom && ms < secondsTo:
		return 0, reasonTimeSeconds
	}
	return ms, ""
}

// clock reads times. It remembers the last date, which is most often the next one.
type clock struct {
	date [10]byte // 2006-01-02
	ms   int64    // since 1970
}

// parseCell reads a time as CSV has it: in either form.
func (c *clock) parseCell(v []byte) (ms int64, reason string) {
	if ms, ok := digits(v); ok {
		return checkMillis(ms)
	}
	if isNumber(v) {
		return parseNumber(v)
	}
	return c.parse(v)
}

// parse reads a time of RFC 3339 with a zone, to the millisecond: what is
// finer is cut off. It takes what time.Time.UnmarshalText takes, and also t and z
// in small letters, which RFC 3339 allows. A leap second, :60, is refused as there
// and everywhere in Go: Unix time has no such instant.
func (c *clock) parse(v []byte) (ms int64, reason string) {
	if len(v) < len("2006-01-02T15:04:05") {
		return 0, reasonTimeText
	}
	if string(v[:10]) != string(c.date[:]) {
		days, ok := parseDate(v)
		if !ok {
			return 0, reasonTimeText
		}
		copy(c.date[:], v)
		c.ms = int64(days) * 86_400_000
	}
	hour, minute, second := digits2(v[11:]), digits2(v[14:]), digits2(v[17:])
	if v[10]|0x20 != 't' || v[13] != ':' || v[16] != ':' || hour > 23 || minute > 59 || second > 59 {
		return 0, reasonTimeText
	}
	ms = c.ms + int64(hour)*3_600_000 + int64(minute)*60_000 + int64(second)*1000
	v = v[19:]
	if len(v) != 1 || v[0]|0x20 != 'z' {
		fraction, rest, ok := parseFraction(v)
		if !ok {
			return 0, reasonTimeText
		}
		if len(rest) == 0 {
			return 0, reasonTimeZone
		}
		offset, ok := parseOffset(rest)
		if !ok {
			return 0, reasonTimeText
		}
		ms += fraction - offset
	}
	switch {
	case ms < 0:
		return 0, reasonTimeEarly
	case ms >= windows.MaxTime:
		return 0, reasonTimeLate
	}
	return ms, ""
}

// parseDate reads 2006-01-02 as days since 1970-01-01 in the Gregorian calendar.
func parseDate(v []byte) (days int, ok bool) {
	century, year := digits2(v), digits2(v[2:])
	month, day := digits2(v[5:]), digits2(v[8:])
	if century > 99 || year > 99 || v[4] != '-' || v[7] != '-' || month < 1 || month > 12 || day < 1 {
		return 0, false
	}
	y, m := century*100+year, month
	if day > 28 && day > daysIn(y, m) {
		return 0, false
	}
	// Years from March, so that the leap day is the last of its year; eras of 400
	// years, moved up by one so that nothing is negative. Howard Hinnant,
	// "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
	if m <= 2 {
		y--
		m += 12
	}
	y += 400
	era := y / 400
	yearOfEra := y % 400
	dayOfYear := (153*(m-3)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return (era-1)*146_097 + dayOfEra - 719_468, true
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// digits2 reads two digits. If they are none it returns more than 99.
func digits2(v []byte) int {
	x := binary.LittleEndian.Uint16(v) - 0x3030
	tens, ones := x&0xff, x>>8
	if tens > 9 || ones > 9 {
		return 100
	}
	return int(tens*10 + ones)
}

// parseFraction reads .123456 as milliseconds, if it is there.
func parseFraction(v []byte) (ms int64, rest []byte, ok bool) {
	if len(v) == 0 || v[0] != '.' {
		return 0, v, true
	}
	v = v[1:]
	n := 0
	for n < len(v) && v[n]-'0' <= 9 {
		if n < 3 {
			ms = ms*10 + int64(v[n]-'0')
		}
		n++
	}
	for i := n; i < 3; i++ {
		ms *= 10
	}
	return ms, v[n:], n > 0
}

// parseOffset reads Z or +01:00 as milliseconds to the east.
func parseOffset(v []byte) (ms int64, ok bool) {
	if len(v) == 1 {
		return 0, v[0]|0x20 == 'z'
	}
	if len(v) != len("+01:00") || v[3] != ':' || v[0] != '+' && v[0] != '-' {
		return 0, false
	}
	hours, minutes := digits2(v[1:]), digits2(v[4:])
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	ms = int64(hours)*3_600_000 + int64(minutes)*60_000
	if v[0] == '-' {
		ms = -ms
	}
	return ms, true
}

// isNumber reports whether v is a number in the grammar of JSON.
func isNumber(v []byte) bool {
	n, _ := scanNumber(v, 0)
	return n == len(v) && n > 0
}

// scanNumber returns where the number of JSON that begins at b[i] ends, and
// whether it is written as an integer. If there is none it returns -1.
func scanNumber(b []byte, i int) (end int, integer bool) {
	at := func(i int) byte {
		if i < len(b) {
			return b[i]
		}
		return 0
	}
	if at(i) == '-' {
		i++
	}
	switch c := at(i); {
	case c == '0':
		i++
	case c-'1' < 9:
		for at(i)-'0' < 10 {
			i++
		}
	default:
		return -1, false
	}
	integer = true
	if at(i) == '.' {
		integer = false
		i++
		if at(i)-'0' >= 10 {
			return -1, false
		}
		for at(i)-'0' < 10 {
			i++
		}
	}
	if at(i)|0x20 == 'e' {
		integer = false
		i++
		if c := at(i); c == '+' || c == '-' {
			i++
		}
		if at(i)-'0' >= 10 {
			return -1, false
		}
		for at(i)-'0' < 10 {
			i++
		}
	}
	return i, integer
}
