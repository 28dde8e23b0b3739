package queries

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/windows"
)

// parameters reads a question's parameters one by one and keeps the first fault.
type parameters struct {
	values url.Values
	now    time.Time
	err    error
}

// known says which parameters a question has; every other is refused, with the
// nearest known one.
func (p *parameters) known(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if slices.Contains(names, name) {
			continue
		}
		nearest := "."
		if n := Nearest(name, names); n != "" {
			nearest = fmt.Sprintf("; did you mean %s?", n)
		}
		known := strings.Join(names, ", ")
		if known == "" {
			known = "none"
		}
		p.fail(name, "unknown parameter%s Known here: %s", nearest, known)
		return
	}
}

func (p *parameters) fail(parameter, format string, args ...any) {
	if p.err == nil {
		p.err = malformed(parameter, format, args...)
	}
}

func (p *parameters) has(name string) bool { return len(p.values[name]) > 0 }

// one returns the value of a parameter that may be given once; "" if it is not.
func (p *parameters) one(name string) string {
	v := p.values[name]
	if len(v) == 0 {
		return ""
	}
	if len(v) > 1 {
		p.fail(name, "may be given once, not %d times", len(v))
	}
	if v[0] == "" {
		p.fail(name, "is empty")
	}
	return v[0]
}

// choice is one with a list of what it may be.
func choice[T ~string](p *parameters, name string, allowed []T, absent T) T {
	v := T(p.one(name))
	if v == "" {
		return absent
	}
	if !slices.Contains(allowed, v) {
		p.fail(name, "%q is not one of %s", v, join(allowed))
	}
	return v
}

func (p *parameters) boolean(name string, absent bool) bool {
	return choice(p, name, []string{"true", "false"}, strconv.FormatBool(absent)) == "true"
}

// number is a whole number from least to most.
func (p *parameters) number(name string, least, most, absent int) int {
	v := p.one(name)
	if v == "" {
		return absent
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		p.fail(name, "%q is not a whole number from %d to %d", v, least, most)
		return absent
	}
	return n
}

// names returns the values of a parameter that may be repeated.
func (p *parameters) names(name string, maxBytes, most int) []string {
	v := p.values[name]
	if len(v) > most {
		p.fail(name, "at most %d, not %d", most, len(v))
	}
	for _, s := range v {
		if s == "" || len(s) > maxBytes || !utf8.ValidString(s) {
			p.fail(name, "has to be 1 to %d bytes of UTF-8", maxBytes)
		}
	}
	return v
}

// dimension returns the dimension and its value, if they are asked for.
func (p *parameters) dimension() (dimension, value string, hasValue bool) {
	dimension = p.one("dimension")
	if !p.has("value") {
		return dimension, "", false
	}
	if dimension == "" {
		p.fail("value", "is a value of a dimension: give dimension too")
	}
	return dimension, p.one("value"), true
}

func (p *parameters) zone() *time.Location {
	name := p.one("tz")
	if name == "" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" { // of this machine: not a name that others know
		p.fail("tz", "%q is not a time zone of the IANA database, such as Europe/Berlin or UTC", name)
		return time.UTC
	}
	return zone
}

// when reads from, to, last and at.
func (p *parameters) when(zone *time.Location) When {
	w := When{Now: p.now}
	if p.has("at") {
		w.Now, w.At = p.instant("at", zone), true
	}
	if p.has("last") {
		if p.has("from") || p.has("to") {
			p.fail("last", "cannot be given beside from or to")
		}
		w.Last = p.last()
		return w
	}
	if p.has("at") {
		p.fail("at", "puts another instant in the place of now: give last too")
	}
	if p.has("from") {
		w.From = p.instant("from", zone)
	}
	if p.has("to") {
		w.To = p.instant("to", zone)
	}
	if p.err == nil && p.has("from") && p.has("to") && !w.From.Before(w.To) {
		p.fail("to", "has to be after from")
	}
	return w
}

// last is a number of minutes, hours, days or weeks; 0 for all.
func (p *parameters) last() time.Duration {
	v := p.one("last")
	if v == "all" || v == "" {
		return 0
	}
	const most = 200 * 366 * 24 * time.Hour
	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	unit := units[v[len(v)-1]]
	n, err := strconv.ParseUint(v[:len(v)-1], 10, 32)
	if err != nil || unit == 0 || n == 0 || time.Duration(n) > most/unit {
		p.fail("last", "%q is not all, or a number of minutes, hours, days or weeks, such as 5m, 24h, 30d, 4w", v)
		return 0
	}
	return time.Duration(n) * unit
}

// instant is RFC 3339, Unix milliseconds, or a date: its beginning in the zone.
func (p *parameters) instant(name string, zone *time.Location) time.Time {
	v := p.one(name)
	t, ok := parseInstant(v, zone)
	if !ok {
		p.fail(name, "%q is not a time: RFC 3339 with its zone (2026-01-31T12:00:00Z), Unix milliseconds, or a date (2026-01-31)", v)
		return t
	}
	if t.UnixMilli() < 0 || t.UnixMilli() > windows.MaxTime {
		p.fail(name, "%q is not between 1970 and 2106", v)
		return time.Time{}
	}
	return t
}

func parseInstant(v string, zone *time.Location) (time.Time, bool) {
	// In a URL a plus that is not escaped is a space, which no time has.
	if t, err := time.Parse(time.RFC3339, strings.ReplaceAll(v, " ", "+")); err == nil {
		return t, true
	}
	if t, err := time.Parse(time.DateOnly, v); err == nil {
		return dateOf(t).start(zone), true
	}
	if ms, err := strconv.ParseInt(v, 10, 64); err == nil && v[0] != '+' {
		return time.UnixMilli(ms), true
	}
	return time.Time{}, false
}
