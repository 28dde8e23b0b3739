package windowstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Set is one of the real event files.
type Set struct {
	Name  string // "wikiticker-2015-09-12"
	Path  string // of its events, NAME.events.csv.gz
	Truth string // of its exact answers, NAME.truth.json
}

// suffix is how the event files' names end.
const suffix = ".events.csv.gz"

// DataVariable names the folder with the event files that may not be published.
const DataVariable = "TIDEMARK_DATA"

// Sets returns the event files: those of the repository, and those of the folder
// that TIDEMARK_DATA names. It says so loudly when that is unset, because then
// the access logs, click streams and shop hours are not tested.
func Sets(tb testing.TB) []Set {
	tb.Helper()
	root := Root(tb)
	files := filepath.Join(root, "cmd", "tidemark", "testdata")
	truth := filepath.Join(root, "windows", "windowstest", "testdata")
	sets := find(tb, files, truth)
	if len(sets) == 0 {
		tb.Fatalf("no event files in %s", files)
	}
	folder := os.Getenv(DataVariable)
	if folder == "" {
		tb.Logf("!!! %s is unset: only the %d sets of the repository are tested, not those that may not be published", DataVariable, len(sets))
		return sets
	}
	have := make(map[string]bool)
	for _, s := range sets {
		have[s.Name] = true
	}
	more := find(tb, folder, folder)
	if len(more) == 0 {
		tb.Fatalf("%s=%s: no file *%s there", DataVariable, folder, suffix)
	}
	for _, s := range more {
		if !have[s.Name] {
			sets = append(sets, s)
		}
	}
	return sets
}

func find(tb testing.TB, files, truth string) []Set {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(files, "*"+suffix))
	if err != nil {
		tb.Fatal(err)
	}
	var sets []Set
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), suffix)
		sets = append(sets, Set{Name: name, Path: path, Truth: filepath.Join(truth, name+".truth.json")})
	}
	return sets
}

// Events reads the set.
func (s Set) Events(tb testing.TB) []Event {
	tb.Helper()
	events, err := ReadFile(s.Path)
	if err != nil {
		tb.Fatal(err)
	}
	return events
}

// Root returns the folder of the module.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}
