package queries

import (
	"testing"
	"time"

	"tidemark/windows"
)

// zonesWithOddities have changes of half an hour, at midnight, over midnight, a
// date left out, offsets of 5:45, and one that was no whole minute.
var zonesWithOddities = []string{
	"UTC", "America/New_York", "Europe/London", "Asia/Kolkata", "Asia/Kathmandu", "Pacific/Chatham",
	"Australia/Lord_Howe", "America/St_Johns", "America/Havana", "Asia/Beirut", "Atlantic/Azores",
	"America/Sao_Paulo", "Pacific/Apia", "Pacific/Kwajalein", "Africa/Monrovia", "Antarctica/Troll",
	"Africa/Casablanca", "Asia/Tehran", "America/Caracas", "Africa/Cairo",
}

// TestBucketsFollowTheLocalClock holds the buckets of a year around every oddity
// against what the local clock shows at each of its minutes.
func TestBucketsFollowTheLocalClock(t *testing.T) {
	for _, name := range zonesWithOddities {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, year := range []int{1971, 1993, 2006, 2011, 2024, 2040} {
				from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
				r := windows.Range{From: windows.MinuteOf(from.UnixMilli()), To: windows.MinuteOf(from.AddDate(1, 0, 0).UnixMilli())}
				for _, step := range []Step{StepHour, StepDay, StepWeek, StepMonth} {
					checkBuckets(t, step, zone, r)
				}
			}
		})
	}
}

// checkBuckets asks that buckets are the runs of minutes with the same label.
// Where a clock goes back over midnight, a date comes in two runs: then the
// shorter one belongs to its neighbour.
func checkBuckets(t *testing.T, step Step, zone *time.Location, r windows.Range) {
	t.Helper()
	edges, err := step.buckets(r, zone)
	if err != nil {
		t.Fatal(err)
	}
	if edges[0] > r.From || edges[len(edges)-1] < r.To {
		t.Errorf("%s %d: buckets from %d to %d do not cover %+v", step, r.From.Time().Year(), edges[0], edges[len(edges)-1], r)
	}
	wrong, ofDay := 0, 0
	for i := range len(edges) - 1 {
		if edges[i] >= edges[i+1] {
			t.Fatalf("%s: bucket %d is [%d, %d)", step, i, edges[i], edges[i+1])
		}
		// The label of a bucket is that of its middle.
		label := labelOf(step, (edges[i] + (edges[i+1]-edges[i])/2).Time().In(zone))
		for m := edges[i]; m < edges[i+1]; m++ {
			if m > edges[i]+3 && m < edges[i+1]-3 && m%13 != 0 {
				continue
			}
			if at := m.Time().In(zone); labelOf(step, at) != label {
				if wrong++; wrong < 5 {
					t.Logf("%s: minute %v lies in the bucket from %v", step, at, edges[i].Time().In(zone))
				}
			}
			ofDay++
		}
		if step == StepHour && edges[i+1]-edges[i] > 60 {
			t.Errorf("an hour of %d minutes from %v", edges[i+1]-edges[i], edges[i].Time().In(zone))
		}
	}
	// St. John's clock went back from 0:01 to 23:01: a minute of the new date lies
	// in the old one's bucket, once a year.
	if zone.String() == "America/St_Johns" && step != StepHour && wrong <= 1 {
		return
	}
	// Before 1972 Monrovia was 44:30 from UTC: its minutes begin half a minute apart.
	if zone.String() == "Africa/Monrovia" && r.From.Time().Year() < 1973 {
		return
	}
	if wrong > 0 {
		t.Errorf("%s in %d: %d of %d minutes lie in another bucket than the clock says", step, r.From.Time().Year(), wrong, ofDay)
	}
}

// labelOf names the step that the clock shows. The two hours that a clock shows
// with the same name are told apart by their offset.
func labelOf(step Step, t time.Time) string {
	switch step {
	case StepHour:
		return t.Format("2006-01-02 15 -07:00")
	case StepWeek:
		monday := t.AddDate(0, 0, -(int(t.Weekday())+6)%7)
		return monday.Format(time.DateOnly)
	case StepMonth:
		return t.Format("2006-01")
	default:
		return t.Format(time.DateOnly)
	}
}

func TestDatesBeginWhereTheirZoneSays(t *testing.T) {
	for _, c := range []struct {
		zone, date, want string
	}{
		{"UTC", "2026-01-31", "2026-01-31T00:00:00Z"},
		{"Asia/Kolkata", "2026-01-31", "2026-01-31T00:00:00+05:30"},
		{"Asia/Beirut", "2024-03-31", "2024-03-31T01:00:00+03:00"},         // there is no midnight
		{"America/Havana", "2024-11-03", "2024-11-03T00:00:00-04:00"},      // the first of two
		{"America/St_Johns", "2006-10-29", "2006-10-29T00:00:00-03:30"},    // the second of two
		{"Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"},        // left out
		{"America/New_York", "2026-03-08", "2026-03-08T00:00:00-05:00"},    // 23 hours long
		{"Australia/Lord_Howe", "2024-04-07", "2024-04-07T00:00:00+11:00"}, // 24 hours and a half
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := parseInstant(c.date, zone)
		if !ok || got.Format(time.RFC3339) != c.want {
			t.Errorf("%s in %s begins at %v, want %s", c.date, c.zone, got, c.want)
		}
	}
}
