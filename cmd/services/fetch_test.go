package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// V1: of many who want it one fetches it.
func TestFetchOnce(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	var fills atomic.Int32
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			f := fetcher{cache, io.Discard}
			dir, err := f.get("thing", "1.2", "", func(dir string) error {
				fills.Add(1)
				return os.WriteFile(filepath.Join(dir, "file"), []byte("whole"), 0o600)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if data, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(data) != "whole" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
	callers.Wait()
	if n := fills.Load(); n != 1 {
		t.Errorf("fetched %d times", n)
	}
}

// V1: what could not be fetched whole is absent, and fetched anew, also behind one
// who was killed.
func TestFetchWholeOrAbsent(t *testing.T) {
	t.Parallel()
	f := fetcher{t.TempDir(), io.Discard}
	broken := errors.New("no network")
	if _, err := f.get("thing", "1", "", func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o600), broken)
	}); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	killed := filepath.Join(f.cache, "thing-1.part")
	if err := os.Mkdir(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed, "half"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := f.get("thing", "1", "", func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("in the folder: %v, %v", files, err)
	}
}
