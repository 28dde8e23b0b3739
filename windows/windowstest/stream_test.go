package windowstest_test

import (
	"bytes"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tidemark/windows/windowstest"
)

func TestAStreamIsAFunctionOfItsShape(t *testing.T) {
	shape := windowstest.Shape{
		Seed: 1, Events: 2000, Items: 300, Users: 50, Start: time.UnixMilli(1_700_000_000_000), Span: time.Hour,
		NoUser: 0.2, Late: 0.3, LateBy: 24 * time.Hour, Duplicates: 0.1, IDs: true, OddNames: true,
		Types: []string{"view", "like"}, Dims: [][]string{{"DE", "AT", ""}},
	}
	events := shape.Stream()
	if diff := gocmp.Diff(events, shape.Stream()); diff != "" {
		t.Error(diff)
	}
	shape.Seed = 2
	if gocmp.Equal(events, shape.Stream()) {
		t.Error("another seed makes the same stream")
	}
	once := windowstest.WithoutDuplicates(events)
	if n := len(events) - len(once); n < 100 || n > 300 {
		t.Errorf("%d of %d events are duplicates, asked for a tenth", n, len(events))
	}
	doubled := windowstest.Doubled(events, 1)
	if len(doubled) != 2*len(events) {
		t.Errorf("%d events doubled are %d", len(events), len(doubled))
	}
	if diff := gocmp.Diff(once, windowstest.WithoutDuplicates(doubled)); diff != "" {
		t.Error(diff)
	}
	if gocmp.Equal(events, windowstest.Shuffled(events, 1)) {
		t.Error("shuffling changes nothing")
	}

	var file bytes.Buffer
	if err := windowstest.WriteCSV(&file, events, "country"); err != nil {
		t.Fatal(err)
	}
	read, err := windowstest.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events { // the standard reader takes \r\n for \n
		if events[i].Item == "a\r\nb" {
			events[i].Item = "a\nb"
		}
		if events[i].User == "a\r\nb" {
			events[i].User = "a\nb"
		}
	}
	if diff := gocmp.Diff(events, read); diff != "" {
		t.Error(diff)
	}
}
