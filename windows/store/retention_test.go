package store

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tidemark/windows"
)

// The process ends between every two steps of a retention cut: what is then on the disk
// says what the seals say, of all that is kept, at once and when the cut is done.
func TestCrashesBetweenTheStepsOfRetention(t *testing.T) {
	const partitions = 2
	w := newLevelWorld(31, partitions, windows.Limits{})
	o := memOptions(partitions)
	fs := vfs.NewCrashableMem()
	o.FS = fs
	o.Keep = Retention{Minute: 5 * time.Hour, Quarter: 20 * time.Hour, Hour: 30 * time.Hour, Day: 48 * time.Hour}
	s := open(t, o)
	begin(t, s)
	type crash struct {
		fs   *vfs.MemFS
		step string
	}
	var crashes []crash
	steps := make(map[string]int)
	s.hook = func(name string) {
		switch name {
		case "retain.committed", "retain.shown", "retain.excised":
			steps[name]++
			crashes = append(crashes, crash{fs.CrashClone(vfs.CrashCloneCfg{}), name})
		}
	}
	for round := range 30 {
		w.apply(t, s, w.seal(t, round%partitions, round*worldDays/30))
	}
	if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
		t.Fatal(err)
	}
	if steps["retain.committed"] < 4 || steps["retain.shown"] < 4 || steps["retain.excised"] < 4 {
		t.Fatalf("not every level was cut: %v", steps)
	}
	for _, c := range crashes {
		o.FS = c.fs
		s := open(t, o)
		for _, when := range []string{"crash at ", "gone on after "} {
			w.check(t, s, when+c.step)
			n := snapshot(t, s)
			all := windows.Range{To: windows.MaxMinute}
			got, gone := planned(t, n, all)
			if diff := w.want(all).Diff(got); diff != "" || len(gone) > 0 {
				t.Errorf("%s%s: lifetime totals lack %v: %s", when, c.step, gone, diff)
			}
			n.Close()
			if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
				t.Fatalf("%s%s: %v", when, c.step, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
