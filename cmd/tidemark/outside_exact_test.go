package main_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// viewTypes returns the flag that makes all types of the events views.
func viewTypes(o *windowstest.Oracle) string {
	var flag strings.Builder
	flag.WriteString("--view-types=")
	for i, typ := range o.Types() {
		if i > 0 {
			flag.WriteString(",")
		}
		flag.WriteString(typ)
	}
	return flag.String()
}

// Every count, ranking and exact number of viewers of every set equals the
// oracle's, over HTTP and, for a few, from the command line.
func TestEverySetIsExact(t *testing.T) {
	for i, set := range windowstest.Sets(t) {
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			events := set.Events(t)
			o := windowstest.NewOracle(events)
			data := newFolder(t)
			out := data.replay(t, "--rules=none", viewTypes(o), set.Path)
			out.checkSum(t, len(events))
			if out.counted() != uint64(len(events)) {
				t.Errorf("of %d events count %d: %v", len(events), out.counted(), out.Outcomes)
			}

			checkTable(t, data.contents(t), o)

			n := 2
			direct := newExaminer(data, o, uint64(i))
			direct.examine(t, n)
			direct.verdict(t)

			server := data.serve(t)
			n = 40
			if soak() {
				n = 2000
			}
			e := newExaminer(server, o, uint64(i)+100)
			e.examine(t, n)
			e.verdict(t)
		})
	}
}

// A generated stream with everything that is hard at once: odd names, late events,
// duplicates, several types, events by nobody; as CSV and as NDJSON.
func TestAHardStreamIsExact(t *testing.T) {
	shape := windowstest.Shape{
		Seed: 77, Events: 60_000, Items: 500, Users: 20_000, Start: time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC), Span: 2 * time.Hour,
		NoUser: 0.1, Late: 0.2, LateBy: 72 * time.Hour, Duplicates: 0.1, IDs: true, OddNames: true,
		Types: []string{"view", "(other)", "日本語", "*like*"},
	}
	events := shape.Stream()
	counts := windowstest.WithoutDuplicates(events)
	o := windowstest.NewOracle(counts)
	for _, name := range []string{"hard.csv", "hard.ndjson"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := newFolder(t)
			out := data.replay(t, viewTypes(o), writeEvents(t, name, events))
			out.checkSum(t, len(events))
			if out.counted() != uint64(len(counts)) || out.Outcomes["duplicate"] != uint64(len(events)-len(counts)) {
				t.Errorf("%d events and %d duplicates: %v", len(counts), len(events)-len(counts), out.Outcomes)
			}
			e := newExaminer(data.serve(t), o, 1)
			e.examine(t, 60)
			e.verdict(t)
		})
	}
}

// Each set with event IDs, every line once more anywhere later, answers the same
// as without.
func TestDuplicatesChangeNothing(t *testing.T) {
	for i, set := range windowstest.Sets(t) {
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			events := set.Events(t)
			doubled := windowstest.Doubled(events, uint64(i))
			o := windowstest.NewOracle(events)
			data := newFolder(t)
			out := data.replay(t, viewTypes(o), writeEvents(t, "doubled.csv", doubled))
			out.checkSum(t, len(doubled))
			// A few lines of a set may have one ID from the start.
			once := len(windowstest.WithoutDuplicates(doubled))
			if out.counted() != uint64(once) || out.Outcomes["duplicate"] != uint64(len(doubled)-once) {
				t.Errorf("%d lines, %d of them different: %v", len(doubled), once, out.Outcomes)
			}
			if once != len(events) {
				t.Fatalf("the set has %d events of its own with an ID that stands before", len(events)-once)
			}
			e := newExaminer(data.serve(t), o, uint64(i))
			e.examine(t, 10)
			e.verdict(t)
		})
	}
}

// What an import was given once is refused the second time, by its content, and
// taken with --again.
func TestASecondImportIsRefused(t *testing.T) {
	set := windowstest.Sets(t)
	i := slices.IndexFunc(set, func(s windowstest.Set) bool { return s.Name == "wikiticker-2015-09-12" })
	events := set[i].Events(t)
	o := windowstest.NewOracle(events)
	data := newFolder(t)
	file := writeEvents(t, "once.csv", events)
	data.replay(t, viewTypes(o), file)
	before := everything(t, data, o)

	again := call{args: data.args("replay", "--json", file)}.run(t)
	if again.status != 1 || again.stderr == "" {
		t.Errorf("a second import: exit status %d\n%s", again.status, again.stderr)
	}
	same := call{args: data.args("replay", "--json", writeEvents(t, "by-another-name.csv", events))}.run(t)
	if same.status != 1 {
		t.Errorf("a second import under another name: exit status %d\n%s", same.status, same.stderr)
	}
	if after := everything(t, data, o); after != before {
		t.Errorf("a refused import has changed answers:\n%s\n%s", before, after)
	}

	out := data.replay(t, "--again", file)
	out.checkSum(t, len(events))
	twice := windowstest.NewOracle(append(slices.Clone(events), events...))
	e := newExaminer(data, twice, 1)
	e.examine(t, 3)
	e.verdict(t)
}
