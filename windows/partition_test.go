package windows

import (
	"slices"
	"testing"
	"time"
)

// minutesRead returns the minutes that Read shows, in its order.
func minutesRead(p *Partition, stored Pair) (minutes []Minute, ok bool) {
	ok = p.Read(stored, func(c *Content) { minutes = append(minutes, c.Minute()) })
	return minutes, ok
}

// A reader that took its snapshot of the store at any moment around a seal finds
// the minute exactly once, or is told to take a newer snapshot.
func TestReadShowsWhatTheSnapshotLacks(t *testing.T) {
	p, h := testPartition(100, nil)
	none := Pair{}
	addItems(t, p, h, 3)
	check := func(when string, snapshot Pair, ok bool, want ...Minute) {
		t.Helper()
		got, gotOK := minutesRead(p, snapshot)
		if gotOK != ok || !slices.Equal(got, want) {
			t.Errorf("%s, snapshot at %+v: read %v, %v, want %v, %v", when, snapshot, got, gotOK, want, ok)
		}
	}
	check("open", none, true, 5)
	first := Pair{F: 6, S: 6}
	p.Cut(first)
	check("cut", none, true, 5)
	check("in the store, Stored not said yet", first, true)
	p.Stored()
	check("stored", none, false)
	check("stored", first, true)

	addItems(t, p, h, 1) // late: the minute opens again
	check("late", first, true, 5)
	second := Pair{F: 6, S: 7}
	p.Cut(second)
	third := Pair{F: 7, S: 8}
	addItems(t, p, h, 1)
	p.Cut(third)
	check("two wait", first, true, 5, 5)
	check("two wait, one in the store", second, true, 5)
	check("two wait, both in the store", third, true)
}

// A live partition is cut when its watermark passes a minute's end, and the
// watermark never passes the clock by more than the skew.
func TestTheWatermarkCutsMinutes(t *testing.T) {
	now := time.Now().Truncate(time.Minute)
	p, h := testPartition(100, nil)
	p.History, p.Lateness, p.MaxSkew = false, 30*time.Second, time.Minute
	p.watermark = NewWatermark(p.Lateness, p.MaxSkew, 0)
	var cuts []Pair
	offset := int64(0)
	add := func(at time.Time) {
		name := []byte("a")
		ev := Event{Offset: offset, Time: at.UnixMilli(), Item: name, Type: viewType, ItemHash: h.Item(name)}
		offset++
		if err := p.Add([]Event{ev}, func(to Pair) error {
			cuts = append(cuts, to)
			p.Cut(to)
			p.Stored()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	minute := MinuteOf(now.UnixMilli())
	add(now.Add(-10 * time.Minute))
	add(now.Add(-9*time.Minute + 29*time.Second))
	if len(cuts) != 0 {
		t.Errorf("cut %v before the watermark passed a minute's end", cuts)
	}
	add(now.Add(-9*time.Minute + 30*time.Second))
	if want := []Pair{{F: minute - 9, S: 3}}; !slices.Equal(cuts, want) {
		t.Errorf("cuts %v, want %v", cuts, want)
	}
	cuts = nil
	add(now.Add(24 * time.Hour)) // a clock that is a day ahead closes nothing that is still to come
	for _, c := range cuts {
		if c.F.Time().After(time.Now().Add(time.Minute)) {
			t.Errorf("a cut closed %v, which is ahead of the clock by more than the skew", c.F.Time())
		}
	}
}
