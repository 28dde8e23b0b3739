package windows

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// clocked is a live partition that is fed with events of some times.
type clocked struct {
	*Partition
	t      *testing.T
	offset int64
	cuts   []Pair
}

func newClocked(t *testing.T, idle time.Duration) *clocked {
	p, _ := testPartition(100, nil)
	p.History, p.Lateness, p.MaxSkew, p.Idle = false, 30*time.Second, time.Minute, idle
	p.watermark = NewWatermark(p.Lateness, p.MaxSkew, p.Idle)
	return &clocked{Partition: p, t: t}
}

func (c *clocked) cut(to Pair) error {
	c.cuts = append(c.cuts, to)
	c.Cut(to)
	c.Stored()
	return nil
}

func (c *clocked) add(at time.Time) {
	c.t.Helper()
	name := []byte("a")
	ev := Event{Offset: c.offset, Stamp: at.UnixMilli(), Time: at.UnixMilli(), Item: name, Type: viewType, ItemHash: c.Hasher.Item(name)}
	c.offset++
	if err := c.Add([]Event{ev}, c.cut); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clocked) tick(end int64) {
	c.t.Helper()
	if _, err := c.Tick(time.Now(), end, 0, c.cut); err != nil {
		c.t.Fatal(err)
	}
}

// A backlog of two days, and a log that says nothing for a day in the middle of it: no
// minute is closed by the time that passes, since the partition is not at the end of its
// log, or does not know it. At the end it is, and the last minute is closed.
func TestSilenceWithinABacklogClosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClocked(t, 5*time.Second)
		begin := time.Now().Add(-48 * time.Hour).Truncate(time.Minute)
		c.add(begin)
		for _, end := range []int64{1000, math.MaxInt64} {
			for range 100 {
				time.Sleep(10 * time.Minute)
				c.tick(end)
			}
		}
		if len(c.cuts) > 0 {
			t.Fatalf("cuts %v", c.cuts)
		}
		c.add(begin.Add(time.Minute)) // still in time: the first minute is open
		if len(c.cuts) > 0 {
			t.Fatalf("cuts %v", c.cuts)
		}
		for range 200 {
			c.tick(c.offset)
			time.Sleep(time.Second)
		}
		minute := MinuteOf(begin.UnixMilli())
		if n := len(c.cuts); n == 0 || c.cuts[n-1] != (Pair{F: minute + 2, S: 2}) || len(c.open) > 0 {
			t.Errorf("at the end of the log: cuts %v, %d windows open", c.cuts, len(c.open))
		}
	})
}

// A clock that is a day ahead, and then an hour behind: what counts is how far the
// partition's own events have got, so no minute is closed early, and none stays open.
func TestClockJumpsCloseNothing(t *testing.T) {
	c := newClocked(t, time.Hour)
	now := time.Now().Truncate(time.Minute)
	c.add(now)
	for _, jump := range []time.Duration{24 * time.Hour, -time.Hour} {
		if _, err := c.Tick(time.Now().Add(jump), 1000, 0, c.cut); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.cuts) > 0 {
		t.Fatalf("cuts %v", c.cuts)
	}
	c.add(now.Add(time.Minute + 29*time.Second))
	if len(c.cuts) > 0 {
		t.Fatalf("cuts %v before the first minute is over", c.cuts)
	}
	c.add(now.Add(time.Minute + 30*time.Second))
	if want := []Pair{{F: MinuteOf(now.UnixMilli()) + 1, S: 3}}; !slices.Equal(c.cuts, want) {
		t.Errorf("cuts %v, want %v", c.cuts, want)
	}
}
