package archtest

import (
	"iter"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "tidemark/"

// mayImport lists, for every package, which of ours it may import.
// The lists only ever point back towards sketches: that is the one-way flow.
// Test packages stand beside what they test, and nothing but tests imports them.
var mayImport = map[string][]string{
	"sketches":            {},
	"windows":             {"sketches"},
	"windows/windowstest": {"windows", "sketches"},
	"windows/ingest":      {"windows", "windows/journal", "sketches"},
	"windows/journal":     {"windows"},
	"windows/store":       {"windows", "sketches"},
	"sinks":               {"windows"},
	"sinks/sinkstest":     {"sinks", "windows"},
	"sinks/clickhouse":    {"sinks", "windows", "sketches"},
	"queries":             {"windows", "sketches"},
	"queries/queriestest": {"queries", "windows", "windows/windowstest", "sketches"},
	"web":                 {"queries", "windows", "web/keys"},
	"web/keys":            {},
	"cmd/traffic":         {},
	"cmd/recount":         {"windows/journal"}, // nothing that counts: it is compared with that
	"cmd/tidemark":        {"windows", "windows/ingest", "windows/journal", "windows/store", "sketches", "queries", "web", "web/keys", "sinks", "sinks/clickhouse", "cmd/traffic", "cmd/recount"},
	"cmd/archtest":        {},
}

func TestArrowsPointOneWay(t *testing.T) {
	for line := range list(t, `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("%s: not in the table; say what it may import", pkg)
			continue
		}
		for _, imp := range fields[1:] {
			if ours, ok := strings.CutPrefix(imp, module); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s must not import %s", pkg, ours)
			}
		}
	}
}

// A name ending in _windows.go or _windows_test.go is compiled for that
// operating system alone: here such a file, tests included, silently vanishes.
// Files with a build constraint of their own are left out on purpose; those of
// this kind have none.
func TestNoFileIsMistakenForAPlatform(t *testing.T) {
	for file := range list(t, `{{range .IgnoredGoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`) {
		if file = strings.TrimSpace(file); strings.HasSuffix(file, "_windows.go") || strings.HasSuffix(file, "_windows_test.go") {
			t.Errorf("not compiled here: %s", file)
		}
	}
}

// list yields what `go list` prints for every package of the module, line by line.
func list(t *testing.T, format string) iter.Seq[string] {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", format, module+"...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	return strings.Lines(string(out))
}
