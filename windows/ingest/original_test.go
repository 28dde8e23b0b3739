package ingest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// withoutPlaces returns the events alone, without where they stood.
func withoutPlaces(events []event) []event {
	var out []event
	for _, e := range events {
		if e.Outcome != windows.Malformed {
			e.Offset, e.partition = 0, 0
			out = append(out, e)
		}
	}
	return out
}

// What is sent elsewhere is the same event there, whatever it was written in and
// whatever names it has; what is none is told apart, with its reason.
func TestOriginalsAreTheSameEvents(t *testing.T) {
	shape := windowstest.Shape{
		Seed: 3, Events: 3000, Items: 200, Users: 100, Start: time.UnixMilli(stamp).Add(-time.Hour), Span: time.Hour, OddNames: true, IDs: true,
		Duplicates: 0.1, NoUser: 0.1, Types: []string{"view", "like"}, Dims: [][]string{{"DE", "", "a\"b"}, {"phone", "\u2028"}},
	}
	var csv, ndjson bytes.Buffer
	if err := windowstest.WriteCSV(&csv, shape.Stream(), "country", "device"); err != nil {
		t.Fatal(err)
	}
	if err := windowstest.WriteNDJSON(&ndjson, shape.Stream(), "country", "device"); err != nil {
		t.Fatal(err)
	}
	odd := `[{"item":"a","bot":true,"watched_ms":1.50e2,"owner":"o","title":"t\u00e9\"","url":"u","image":"i","time":"2026-01-01T00:00:00+05:30","country":7,"unknown":{"a":[1]}},
{"item":"no time","user":42,"device":true},{"item":5},{"item":""},{"item":"x","time":1767225600},
{"item":"b","bot":false,"watched_ms":-0}]`
	for name, content := range map[string]string{"a.csv": csv.String(), "a.ndjson": ndjson.String(), "odd.json": odd, "bot.csv": "item,bot,watched_ms\na,1,5\nb,0,\nc,,\nd,2,\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFiles(t.Context(), configOf(path))
		if err != nil {
			t.Fatal(err)
		}
		var again []byte
		var faults []string
		n := int64(0)
		for o, err := range f.Originals(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; o.Number != n || o.File != 0 {
				t.Fatalf("record %d of file %d comes as number %d", o.Number, o.File, n)
			}
			if o.Reason != "" {
				faults = append(faults, o.Reason)
				continue
			}
			again = o.AppendJSON(again, o.ID, o.Time, o.HasTime)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		copied := filepath.Join(dir, "copied.ndjson")
		if err := os.WriteFile(copied, again, 0o600); err != nil {
			t.Fatal(err)
		}
		events := importFiles(t, configOf(path), 0)
		if d := cmp.Diff(withoutPlaces(events), withoutPlaces(importFiles(t, configOf(copied), 0)), cmp.AllowUnexported(event{})); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		var want []string
		for _, e := range events {
			if e.Outcome == windows.Malformed {
				want = append(want, e.Reason)
			}
		}
		if d := cmp.Diff(want, faults); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
