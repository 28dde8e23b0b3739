package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"tidemark/windows"
)

// readFrom reads a file of that name and content, from a record on, in chunks of
// that many events.
func readFrom(t testing.TB, name string, content io.Reader, from int64, chunkOf int) (events []string, err error) {
	cfg := configOf()
	f := &Files{cfg: cfg}
	r := f.reading(RunConfig{From: from, Stamp: stamp, Submit: func(_ context.Context, partition int, b windows.Batch) error {
		for _, e := range b.Events {
			if e.Offset < from || e.Offset >= from+int64(len(events)) && e.Offset > from+int64(len(events)+chunkOf) {
				t.Fatalf("record %d after %d from %d on", e.Offset, len(events), from)
			}
			for int64(len(events)) <= e.Offset-from {
				events = append(events, "")
			}
			events[e.Offset-from] = fmt.Sprint(copied(e, partition), partition)
		}
		b.Release()
		return nil
	}})
	r.pool.events = chunkOf
	r.pool.bytes = 100
	if r.src, err = newSource(content, maxWindow); err != nil {
		return nil, err
	}
	defer r.src.close()
	if err := r.records(t.Context(), name); err != nil {
		return nil, err
	}
	if err := r.finish(t.Context()); err != nil {
		return nil, err
	}
	if int64(len(events)) != max(0, r.number-from) {
		t.Fatalf("%d events from %d on of %d records", len(events), from, r.number)
	}
	for i, e := range events {
		if e == "" {
			t.Fatalf("record %d is missing", from+int64(i))
		}
	}
	return events, nil
}

// However a file is read, and from wherever on, its records are the same.
func checkFile(t testing.TB, name string, content []byte) {
	want, err := readFrom(t, name, bytes.NewReader(content), 0, chunkEvents)
	for _, from := range []int{0, 1, len(want) / 2, len(want), len(want) + 5} {
		for _, chunkOf := range []int{1, 3, chunkEvents} {
			var r io.Reader = bytes.NewReader(content)
			if chunkOf == 3 {
				r = iotest.HalfReader(iotest.DataErrReader(r))
			}
			got, gotErr := readFrom(t, name, r, int64(from), chunkOf)
			if (err == nil) != (gotErr == nil) {
				t.Fatalf("%v, the first time %v", gotErr, err)
			}
			if diff := cmp.Diff(want[min(from, len(want)):], got); diff != "" && len(want) > from {
				t.Fatalf("from %d in chunks of %d: %s", from, chunkOf, diff)
			}
		}
	}
}

var wholeFiles = map[string]string{
	"a.ndjson": "{\"item\":\"a\"}\n{\"item\":\"b\",\"user\":\"\\u00e9\"}\nx\n\n{\"item\":\"c\",\"title\":\"T\",\"country\":\"DE\"}",
	"b":        "[{\"item\":\"a\"},{\"item\":\"b\"},\n3]\n{\"item\":\"c\"}",
	"c":        "{\n\"item\":\"a\"\n}\n{\n\"item\":\"b\"\n}",
	"d.csv":    "\ufeffitem,country,x\na,DE,\n\"b\nb\",\"\"\"\",\r\nc,\"d\ne,,\n",
	"e":        "x\n{\"item\":\"a\"}\n",
	"f":        "",
}

func TestWholeFiles(t *testing.T) {
	for name, content := range wholeFiles {
		checkFile(t, name, []byte(content))
		checkFile(t, name+".gz", gzipped([]byte(content)))
		checkFile(t, name+".zst", zstandard([]byte(content)))
		long := strings.Repeat(content, 20_000)
		if name != "b" && name != "f" { // where it would change the format
			long += strings.Repeat("y", MaxRecord+1)
		}
		want, err := readFrom(t, name, strings.NewReader(long), 0, chunkEvents)
		if err != nil {
			t.Fatal(err)
		}
		half := len(want) / 2
		got, err := readFrom(t, name, iotest.HalfReader(strings.NewReader(long)), int64(half), 50)
		if diff := cmp.Diff(want[half:], got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func FuzzFile(f *testing.F) {
	for name, content := range wholeFiles {
		f.Add(name, []byte(content))
		f.Add(name, gzipped([]byte(content)))
		f.Add(name, zstandard([]byte(content)))
	}
	f.Fuzz(func(t *testing.T, name string, content []byte) { checkFile(t, name, content) })
}
