package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tidemark/windows/windowstest"
)

func filesStream(seed uint64) []windowstest.Event {
	return windowstest.Shape{
		Seed: seed, Events: 12_000, Items: 150, Users: 3_000, Start: time.UnixMilli(manyStart), Span: time.Hour,
		NoUser: 0.2, Late: 0.3, LateBy: time.Hour, Duplicates: 0.2, IDs: true, OddNames: true, Types: []string{"view", "like"},
	}.Stream()
}

// One call's files are one log, whatever the form of each: duplicates are found
// across them.
func TestFilesOfAllFormsAreOneLog(t *testing.T) {
	events := filesStream(51)
	third := len(events) / 3
	dir := t.TempDir()
	write := func(name string, events []windowstest.Event, to func(io.Writer, []windowstest.Event) error) string {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(to(f, events), f.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := []string{
		// Names say nothing: the first bytes do.
		write("first.txt", events[:third], func(w io.Writer, events []windowstest.Event) error {
			z := gzip.NewWriter(w)
			return errors.Join(windowstest.WriteCSV(z, events), z.Close())
		}),
		write("second.log", events[third:2*third], func(w io.Writer, events []windowstest.Event) error {
			z, err := zstd.NewWriter(w)
			if err != nil {
				return err
			}
			return errors.Join(windowstest.WriteNDJSON(z, events), z.Close())
		}),
		write("third.csv", events[2*third:], func(w io.Writer, events []windowstest.Event) error {
			var lines bytes.Buffer
			if err := windowstest.WriteNDJSON(&lines, events); err != nil {
				return err
			}
			var array []json.RawMessage
			for line := range bytes.Lines(lines.Bytes()) {
				array = append(array, bytes.Clone(bytes.TrimSpace(line)))
			}
			return json.NewEncoder(w).Encode(array)
		}),
	}
	o := windowstest.NewOracle(windowstest.WithoutDuplicates(events))
	data := newFolder(t)
	out := data.replay(t, append([]string{viewTypes(o)}, files...)...)
	out.checkSum(t, len(events))
	if out.counted() != uint64(o.Events()) {
		t.Errorf("%d events count: %v", o.Events(), out.Outcomes)
	}
	checkTable(t, data.contents(t), o)
}

// Standard input is a file like any other: by its content it is known again.
func TestStandardInput(t *testing.T) {
	events := filesStream(52)
	o := windowstest.NewOracle(windowstest.WithoutDuplicates(events))
	file := writeEvents(t, "in.ndjson", events)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data := newFolder(t)
	r := call{args: data.args("replay", "--json", viewTypes(o), "-"), stdin: bytes.NewReader(text)}.run(t)
	if r.status != 0 {
		t.Fatalf("exit status %d\n%s", r.status, r.stderr)
	}
	parseOutcomes(t, r.stdout).checkSum(t, len(events))
	checkTable(t, data.contents(t), o)
	for _, again := range []call{
		{args: data.args("replay", "-"), stdin: bytes.NewReader(text)},
		{args: data.args("replay", file)},
	} {
		if r := again.run(t); r.status != 1 || !strings.Contains(r.stderr, "already") {
			t.Errorf("%q again: exit status %d\n%s", again.args, r.status, r.stderr)
		}
	}
	left, err := filepath.Glob(filepath.Join(data.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if name := filepath.Base(path); name != "store" && name != "holder.json" {
			t.Errorf("left behind: %s", path)
		}
	}
}

// While an import is unfinished answers say so; another import may come in between.
func TestAnUnfinishedImportIsNotComplete(t *testing.T) {
	r := newReference(t)
	data := newFolder(t)
	for tries := 1; !r.killAt(t, data, 0.6); tries++ {
		if tries == 10 {
			t.Fatal("the replay is faster than its killer")
		}
		data = newFolder(t)
	}
	var a answer
	data.ask(t, "/v1/counts", url.Values{"type": {"*"}}, &a)
	if n := a.Counts["*"].Value; a.Complete || a.Final || !strings.Contains(a.Hint, "replay") || n == 0 || n >= uint64(r.oracle.Events()) {
		t.Errorf("an import is at 60 %%: %+v", a)
	}
	other := []windowstest.Event{{Time: manyStart, Item: "of another import", Type: "view", User: "u"}}
	data.replay(t, writeEvents(t, "other.csv", other))
	again := parseOutcomes(t, tidemark(t, data.args(append(slices.Clip(crashFlags), r.path)...)...))
	again.checkSum(t, r.lines)
	data.ask(t, "/v1/counts", url.Values{"type": {"*"}}, &a)
	if n := a.Counts["*"].Value; !a.Complete || !a.Final || n != uint64(r.oracle.Events()+len(other)) {
		t.Errorf("both imports are done, with %d events: %+v", r.oracle.Events()+len(other), a)
	}
}
