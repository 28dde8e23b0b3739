package windows

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAnIdleWatermarkAdvancesWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatermark(30*time.Second, time.Minute, 5*time.Second)
		base := time.Now()
		at := func() time.Duration { return time.UnixMilli(w.At(time.Now())).Sub(base) }
		w.Idle(time.Now(), 0)
		if w.At(time.Now()) != 0 {
			t.Error("it advances before any event")
		}
		w.Observe(base.UnixMilli())
		w.Busy()
		want := func(when string, d time.Duration) {
			t.Helper()
			if got := at(); got != d {
				t.Errorf("%s: at %v, want %v", when, got, d)
			}
		}
		want("after an event", -30*time.Second)
		for range 50 { // 5 s at the log's end
			w.Idle(time.Now(), 0)
			time.Sleep(100 * time.Millisecond)
		}
		want("idle for less than asked", -30*time.Second)
		for range 100 {
			w.Idle(time.Now(), 0)
			time.Sleep(100 * time.Millisecond)
		}
		w.Idle(time.Now(), 0)
		want("idle for 10 s more", -20*time.Second)
		w.Busy() // a backlog came: no time passes while it is read
		time.Sleep(time.Hour)
		want("an hour behind the log's end", -20*time.Second)
		w.Idle(time.Now(), base.UnixMilli())
		want("just caught up", -20*time.Second)
		time.Sleep(5 * time.Second)
		w.Idle(time.Now(), base.UnixMilli())
		want("idle, and the log's most advanced partition is ahead", 0)
		w.Observe(base.Add(48 * time.Hour).UnixMilli())
		if ahead := time.Until(time.UnixMilli(w.At(time.Now()))); ahead != time.Minute {
			t.Errorf("ahead of the clock by %v, want at most the skew", ahead)
		}
	})
}
