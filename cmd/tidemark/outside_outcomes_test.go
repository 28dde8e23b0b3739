package main_test

import (
	"fmt"
	"testing"
	"time"

	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// With one partition all outcomes are told by the file alone: late and duplicate
// too, with look-backs that reach over everything and over next to nothing.
func TestOutcomesAreThoseOfTheRules(t *testing.T) {
	events := windowstest.Shape{
		Seed: 31, Events: 30_000, Items: 200, Users: 2_000, Start: time.UnixMilli(manyStart), Span: 40 * time.Minute,
		NoUser: 0.2, Late: 0.5, LateBy: 10 * time.Minute, Duplicates: 0.3, IDs: true,
	}.Stream()
	file := writeEvents(t, "late.csv", events)
	for _, dedup := range []int{8, 1000, 8192, 262_144} {
		for _, lateness := range []time.Duration{0, 30 * time.Second, 5 * time.Minute} {
			judge := windowstest.Judge{
				Generation: int64(dedup / 8), MaxSkew: time.Minute.Milliseconds(), MaxLateness: -1, Lateness: lateness.Milliseconds(),
			}
			records := windowstest.Split(sketches.NewHasher(testKey), events, 1, time.Now().UnixMilli())[0]
			judge.Judge(records)
			want := make(map[string]uint64)
			for i := range records {
				want[records[i].Outcome.String()]++
			}
			if want[windows.Late.String()] == 0 || want[windows.Duplicate.String()] == 0 {
				t.Fatalf("this run shows nothing: %v", want)
			}
			out := newFolder(t).replay(t, "--partitions=1", fmt.Sprintf("--dedup-events=%d", dedup), fmt.Sprintf("--lateness=%s", lateness), file)
			out.checkSum(t, len(events))
			for o, n := range want {
				if out.Outcomes[o] != n {
					t.Errorf("look-back of %d, lateness %v: %d records are %s, by the rules %d", dedup, lateness, out.Outcomes[o], o, n)
				}
			}
		}
	}
}
