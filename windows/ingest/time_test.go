package ingest

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/windows"
)

var times = []struct {
	text   string
	ms     int64
	reason string
}{
	{"1970-01-01T00:00:00Z", 0, ""},
	{"1969-12-31T23:59:59.999Z", 0, reasonTimeEarly},
	{"1970-01-01T01:00:00+01:00", 0, ""},
	{"1970-01-01T00:00:00+00:01", 0, reasonTimeEarly},
	{"2026-01-31T23:59:59Z", 1769903999000, ""},
	{"2026-01-31t23:59:59z", 1769903999000, ""},
	{"2026-01-31T23:59:59.9Z", 1769903999900, ""},
	{"2026-01-31T23:59:59.123999Z", 1769903999123, ""},
	{"2026-01-31T23:59:59.000000000000000000000001-23:59", 1769990339000, ""},
	{"2026-02-01T05:29:59+05:30", 1769903999000, ""},
	{"2024-02-29T12:00:00Z", 1709208000000, ""},
	{"2023-02-29T12:00:00Z", 0, reasonTimeText},
	{"2100-02-28T23:59:59Z", 4107542399000, ""},
	{"2100-02-29T00:00:00Z", 0, reasonTimeText},
	{"2000-02-29T00:00:00Z", 951782400000, ""},
	{"2026-04-31T00:00:00Z", 0, reasonTimeText},
	{"2026-00-01T00:00:00Z", 0, reasonTimeText},
	{"2026-13-01T00:00:00Z", 0, reasonTimeText},
	{"2026-01-00T00:00:00Z", 0, reasonTimeText},
	{"2105-12-31T23:59:59.999Z", windows.MaxTime - 1, ""},
	{"2106-01-01T00:00:00Z", 0, reasonTimeLate},
	{"2105-12-31T23:59:59-00:01", 0, reasonTimeLate},
	{"0000-01-01T00:00:00Z", 0, reasonTimeEarly},
	{"9999-12-31T23:59:59Z", 0, reasonTimeLate},
	{"10000-01-01T00:00:00Z", 0, reasonTimeText},
	{"2026-01-31T23:59:59", 0, reasonTimeZone},
	{"2026-01-31T23:59:59.5", 0, reasonTimeZone},
	{"2026-01-31T23:59:59.Z", 0, reasonTimeText},
	{"2026-01-31T23:59:59,5Z", 0, reasonTimeText},
	{"2026-01-31T23:59:60Z", 0, reasonTimeText},
	{"2026-01-31T24:00:00Z", 0, reasonTimeText},
	{"2026-01-31T23:60:00Z", 0, reasonTimeText},
	{"2026-01-31 23:59:59Z", 0, reasonTimeText},
	{"2026-01-31T23:59:59+0100", 0, reasonTimeText},
	{"2026-01-31T23:59:59+01", 0, reasonTimeText},
	{"2026-01-31T23:59:59+24:00", 0, reasonTimeText},
	{"2026-01-31T23:59:59+01:60", 0, reasonTimeText},
	{"2026-01-31T23:59:59 01:00", 0, reasonTimeText},
	{"2026-01-31T23:59:59Z ", 0, reasonTimeText},
	{" 2026-01-31T23:59:59Z", 0, reasonTimeText},
	{"2026-01-31", 0, reasonTimeText},
	{"31.01.2026 23:59:59", 0, reasonTimeText},
	{"noon", 0, reasonTimeText},
	{"", 0, reasonTimeText},
}

func TestTimes(t *testing.T) {
	var c clock
	for range 2 { // the second time with a date that is known, or is not
		for _, tt := range times {
			if ms, reason := c.parse([]byte(tt.text)); ms != tt.ms || reason != tt.reason {
				t.Errorf("%q: got %d %q, want %d %q", tt.text, ms, reason, tt.ms, tt.reason)
			}
		}
	}
}

// shape is the grammar of RFC 3339. The standard library takes more: a comma for
// the point, an hour of one digit, zones that are days away.
var shape = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// reference is the standard library's reading of RFC 3339.
func reference(text string) (ms int64, ok bool) {
	text = strings.NewReplacer("t", "T", "z", "Z").Replace(text)
	at, err := time.Parse(time.RFC3339, text)
	return at.UnixMilli(), err == nil && shape.MatchString(text)
}

func checkTime(t interface{ Fatalf(string, ...any) }, c *clock, text string) {
	ms, reason := c.parse([]byte(text))
	want, ok := reference(text)
	wantReason := ""
	switch {
	case !ok:
		if wantReason = reasonTimeText; reason == reasonTimeZone {
			_, ok = reference(text + "Z")
			wantReason = reasonTimeZone
		}
		if reason == reasonTimeZone && !ok {
			t.Fatalf("%q: got %q", text, reason)
		}
	case want < 0:
		wantReason = reasonTimeEarly
	case want >= windows.MaxTime:
		wantReason = reasonTimeLate
	}
	if reason != wantReason || reason == "" && ms != want {
		t.Fatalf("%q: got %d %q, want %d %q", text, ms, reason, want, wantReason)
	}
}

func FuzzTime(f *testing.F) {
	for _, tt := range times {
		f.Add(tt.text)
	}
	var c clock
	f.Fuzz(func(t *testing.T, text string) { checkTime(t, &c, text) })
}

// Every instant, in any zone and with any number of digits, is read as it was
// written, whatever was read before it.
func TestTimesAsWritten(t *testing.T) {
	var c clock
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, windows.MaxTime-1).Draw(t, "ms")
		zone := time.FixedZone("", 60*rapid.IntRange(-23*60-59, 23*60+59).Draw(t, "minutes east"))
		at := time.UnixMilli(ms).In(zone)
		text := at.Format(time.RFC3339Nano)
		if at.Year() < 1970 {
			t.Skip("a date before 1970, in its zone")
		}
		if got, reason := c.parse([]byte(text)); got != ms || reason != "" {
			t.Fatalf("%s: got %d %q, want %d", text, got, reason, ms)
		}
		broken := []byte(text)
		broken[rapid.IntRange(0, len(broken)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		checkTime(t, &c, string(broken))
	})
}

func TestMillis(t *testing.T) {
	for _, tt := range []struct {
		text   string
		ms     int64
		reason string
	}{
		{"0", 0, ""},
		{"-0", 0, ""},
		{"-1", 0, reasonTimeEarly},
		{"-0.001", 0, reasonTimeEarly},
		{"60000", 60000, ""},
		{"99999999", 99999999, ""},
		{"100000000", 0, reasonTimeSeconds},
		{"1767225600", 0, reasonTimeSeconds},
		{"1767225600.25", 0, reasonTimeSeconds},
		{"4291747199", 0, reasonTimeSeconds},
		{"4291747200", 4291747200, ""},
		{"1767225600000", 1767225600000, ""},
		{"1767225600000.75", 1767225600000, ""},
		{"1.7672256e12", 1767225600000, ""},
		{"1.7672256E+12", 1767225600000, ""},
		{"4291747199999", windows.MaxTime - 1, ""},
		{"4291747200000", 0, reasonTimeLate},
		{"1767225600000000", 0, reasonTimeLate},
		{"999999999999999999999999", 0, reasonTimeLate},
		{"-999999999999999999999999", 0, reasonTimeEarly},
		{"1e400", 0, reasonTimeLate},
		{"-1e400", 0, reasonTimeEarly},
		{"1e-400", 0, ""},
	} {
		if ms, reason := parseMillis([]byte(tt.text)); ms != tt.ms || reason != tt.reason {
			t.Errorf("%s: got %d %q, want %d %q", tt.text, ms, reason, tt.ms, tt.reason)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-0", "01", "1.", ".5", "1.5", "-1.5e+10", "1e", "1e5", "+1", "NaN", "1767225600000", "-", "", "1 ", "0x10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ok := isNumber([]byte(s))
		trimmed := s != "" && (s[0] == '-' || s[0]-'0' < 10) && s[len(s)-1]-'0' < 10 // JSON allows white space around
		if want := json.Valid([]byte(s)) && trimmed; ok != want {
			t.Fatalf("%q: a number: %v; want %v", s, ok, want)
		}
		if !ok {
			return
		}
		ms, reason := parseMillis([]byte(s))
		want, _ := strconv.ParseFloat(s, 64)
		if reason == "" && float64(ms) != math.Floor(want) {
			t.Fatalf("%s: got %d, want %v", s, ms, want)
		}
		if reason == reasonTimeEarly && want >= 0 || reason == reasonTimeLate && want < float64(windows.MaxTime) {
			t.Fatalf("%s: got %q", s, reason)
		}
	})
}
