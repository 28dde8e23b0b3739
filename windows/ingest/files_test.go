package ingest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"tidemark/sketches"
	"tidemark/windows"
)

// collect runs an import and returns its events with what they point to copied.
func collect(t *testing.T, cfg FilesConfig, from int64) ([]windows.Event, int64) {
	t.Helper()
	f, err := OpenFiles(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var mu sync.Mutex
	var events []windows.Event
	n, err := f.Run(t.Context(), RunConfig{From: from, Stamp: 1800000000000, Submit: func(_ context.Context, _ int, b windows.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range b.Events {
			e.Item = append([]byte(nil), e.Item...)
			e.Type = append([]byte(nil), e.Type...)
			events = append(events, e)
		}
		b.Release()
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return events, n
}

func TestRealSetsHaveNoMalformedRecord(t *testing.T) {
	dir := os.Getenv("TIDEMARK_DATA")
	if dir == "" {
		t.Skip("TIDEMARK_DATA is unset")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.events.csv.gz"))
	for _, file := range files {
		events, n := collect(t, FilesConfig{Paths: []string{file}, Partitions: 4, Hasher: sketches.NewHasher(sketches.Key{1}), Type: "view"}, 0)
		t.Log(file, n, len(events))
		for _, e := range events {
			if e.Outcome == windows.Malformed {
				t.Fatal(e.Offset, e.Reason)
			}
		}
	}
}
