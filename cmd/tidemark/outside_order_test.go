package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// orderWays are ways to import the same events.
var orderWays = []struct {
	seed  uint64 // of another order; 0: as it is
	flags string
}{
	{0, "--partitions=4"},
	{1, "--partitions=16 --window-memory=1MiB"},
	{0, "--partitions=1"},
	{2, "--partitions=3 --window-memory=2MiB"},
}

// Order, partitions, budget and grouping change no count and no register: what the
// stores hold is the same bit for bit.
func TestOrderAndGroupingChangeNothing(t *testing.T) {
	streams := map[string][]windowstest.Event{
		"generated": windowstest.Shape{
			Seed: 5, Events: 40_000, Items: 400, Users: 9_000, Start: time.UnixMilli(manyStart), Span: 3 * time.Hour,
			NoUser: 0.2, Late: 0.4, LateBy: 20 * time.Hour, OddNames: true, IDs: true, Duplicates: 0.05,
			Types: []string{"view", "like"}, Dims: [][]string{{"DE", "AT", "(other)", ""}},
		}.Stream(),
	}
	for _, set := range windowstest.Sets(t) {
		if set.Name == "git-prometheus" || set.Name == "movielens-small-ratings" {
			streams[set.Name] = set.Events(t)
		}
	}
	for name, events := range streams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := windowstest.NewOracle(windowstest.WithoutDuplicates(events))
			var base *windowstest.Merged
			ways := orderWays
			if name != "generated" && !soak() {
				ways = ways[:2]
			}
			for _, way := range ways {
				order := events
				if way.seed > 0 {
					order = windowstest.Shuffled(events, way.seed)
				}
				file := fmt.Sprintf("%d.csv", way.seed)
				if way.seed == 2 {
					file = "2.ndjson"
				}
				data := newFolder(t)
				args := append(strings.Fields(way.flags), "--dimensions=country", viewTypes(o), writeEvents(t, file, order, "country"))
				out := data.replay(t, args...)
				out.checkSum(t, len(events))
				if out.counted() != uint64(o.Events()) {
					t.Errorf("%+v: %d events count, they were %d: %v", way, out.counted(), o.Events(), out.Outcomes)
				}
				got := data.contents(t)
				if base == nil {
					base = got
					continue
				}
				if base.Digest() != got.Digest() {
					t.Errorf("%+v: %s", way, base.Diff(got))
				}
			}
		})
	}
}
