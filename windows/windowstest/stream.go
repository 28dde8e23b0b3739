package windowstest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Shape says what a generated stream is like. The zero value of a field leaves
// that difficulty out.
type Shape struct {
	Seed   uint64
	Events int // of the stream, duplicates included; at least 1
	Items  int // different items, at most; at least 1
	Users  int // different users, at most; 0: views by nobody

	Start time.Time     // of the first event
	Span  time.Duration // event times grow over it

	Zipf       float64 // skew of items and users, more than 1; 0: 1.1
	NoUser     float64 // share of events without a user
	Late       float64 // share of events that come late …
	LateBy     time.Duration
	Duplicates float64 // share of lines that were there before, with the same ID
	IDs        bool    // every event has one
	OddNames   bool    // some items, users and types are OddNames
	Types      []string
	Dims       [][]string // the values of each dimension; "" is none
}

// OddNames are names that are easily folded, trimmed, cut or mistaken for
// something else. Each differs from all others only byte by byte.
var OddNames = []string{
	"a", "A", " a", "a ", "a\t", "á", "a\u0301", "ａ", "ß", "SS", "ı", "I",
	"(other)", "(outcome)", "*", "", "null", "0", "00", "-1", "NaN", "true", "[]", "{}",
	"a,b", `a"b`, `"a"`, "a\nb", "a\r\nb", "a\\u0061", "a\\", "a/b", "../a", "%61", "a%20b", "a+b", "a&b=c", "a?b#c", "a;b", "'--",
	"\u00a0", "\u200b", "\ufeff", "\u202eabc", "\u2028", "\x7f", "日本語", "نص", "👩‍👩‍👧", "\U0010ffff", "\ufffd", "=1+1", "<script>",
}

// LongName is the longest item that is allowed: 1,024 bytes, its last character
// the only difference from OtherLongName.
var (
	LongName      = strings.Repeat("é", 511) + "!a"
	OtherLongName = strings.Repeat("é", 511) + "!b"
)

// Stream makes the events of the shape, always the same.
func (s Shape) Stream() []Event {
	r := rand.New(rand.NewPCG(s.Seed, 0x7469646d61726b)) //nolint:gosec // a test stream must be the same each time
	skew := s.Zipf
	if skew == 0 {
		skew = 1.1
	}
	items := rand.NewZipf(r, skew, 1, uint64(max(s.Items, 1)-1))
	users := rand.NewZipf(r, 1.05, 20, uint64(max(s.Users, 1)-1))
	types := s.Types
	if types == nil {
		types = []string{"view"}
	}
	events := make([]Event, 0, s.Events)
	for i := range s.Events {
		if i > 0 && r.Float64() < s.Duplicates {
			if e := events[r.IntN(i)]; e.ID != "" {
				events = append(events, e)
				continue
			}
		}
		e := Event{
			Time: s.Start.Add(time.Duration(float64(s.Span) * float64(i) / float64(s.Events))).UnixMilli(),
			Item: s.name("item-", items.Uint64()),
			Type: types[min(int(r.ExpFloat64()), len(types)-1)],
		}
		if r.Float64() < s.Late {
			e.Time -= r.Int64N(s.LateBy.Milliseconds() + 1)
		}
		if s.Users > 0 && r.Float64() >= s.NoUser {
			e.User = s.name("u", users.Uint64())
		}
		if s.IDs {
			e.ID = fmt.Sprintf("id-%d", i)
		}
		for _, values := range s.Dims {
			e.Dims = append(e.Dims, values[min(int(r.ExpFloat64()*2), len(values)-1)])
		}
		events = append(events, e)
	}
	return events
}

// name returns the n-th name, which for an odd shape is now and then an odd one.
func (s Shape) name(prefix string, n uint64) string {
	if s.OddNames && n%3 == 1 {
		switch i := int(n/3) % (len(OddNames) + 2); {
		case i == len(OddNames):
			if prefix == "item-" {
				return LongName
			}
		case i == len(OddNames)+1:
			if prefix == "item-" {
				return OtherLongName
			}
		case OddNames[i] != "":
			return OddNames[i]
		}
	}
	return fmt.Sprintf("%s%d", prefix, n)
}

// Shuffled returns the events in another order, the same for the same seed.
func Shuffled(events []Event, seed uint64) []Event {
	shuffled := slices.Clone(events)
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test order must be the same each time
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled
}

// Doubled returns every event once and once more somewhere behind its first
// place, the same for the same seed. Events without an ID get one.
func Doubled(events []Event, seed uint64) []Event {
	r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a test order must be the same each time
	type place struct {
		at float64
		e  Event
	}
	places := make([]place, 0, 2*len(events))
	for i, e := range events {
		if e.ID == "" {
			e.ID = fmt.Sprintf("line-%d", i)
		}
		again := float64(i) + r.Float64()*float64(len(events)-i)
		if r.IntN(4) == 0 { // a retry comes at once
			again = float64(i) + 1
		}
		places = append(places, place{float64(i), e}, place{again + 0.5, e})
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	doubled := make([]Event, len(places))
	for i, p := range places {
		doubled[i] = p.e
	}
	return doubled
}
