package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

const someEvents = "time,user,item,type,id\n" +
	"2026-01-01T00:00:00Z,ann,a,view,1\n" +
	"2026-01-01T00:00:01Z,bob,a,view,2\n" +
	"2026-01-01T00:00:01Z,bob,a,view,2\n" +
	"2026-01-01T00:05:00Z,ann,b,play,3\n" +
	"yesterday,ann,b,view,4\n"

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// must runs the program, which has to succeed, and returns what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errs := call(t, nil, args...)
	if status != exitDone {
		t.Fatalf("%q: exit status %d: %s", args, status, errs)
	}
	return out
}

// refused runs the program, which has to fail and say why.
func refused(t *testing.T, why string, args ...string) {
	t.Helper()
	status, out, errs := call(t, nil, args...)
	if status != exitFailed || out != "" || !strings.Contains(errs, why) {
		t.Errorf("%q: exit status %d, want %d\nstdout: %q\nstderr: %s\nwant: %s", args, status, exitFailed, out, errs, why)
	}
}

func views(t *testing.T, data string) string {
	t.Helper()
	return must(t, "counts", "--json=false", "--type=view,play", "--data", data)
}

func TestReplayPrintsWhatBecameOfTheEvents(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "events.csv"), someEvents)

	got := must(t, "replay", "--data", filepath.Join(dir, "1"), file)
	want := `outcome     reason                                                                             records
counted                                                                                        3
malformed   time: not RFC 3339; as in 2026-01-31T23:59:59Z, or Unix milliseconds as a number   1
duplicate                                                                                      1
all                                                                                            5
`
	speed, ok := strings.CutPrefix(strings.TrimSuffix(got, "\n"), want)
	if !ok || !strings.HasSuffix(speed, " events a second") {
		t.Errorf("printed:\n%s", got)
	}

	var r report
	if err := json.Unmarshal([]byte(must(t, "replay", "--json", "--data", filepath.Join(dir, "2"), file)), &r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]uint64{"counted": 3, "duplicate": 1, "malformed": 1}, r.Outcomes); diff != "" {
		t.Errorf("outcomes: -want +got:\n%s", diff)
	}
	if r.Records != 5 || len(r.Files) != 1 || r.Files[0] != file || len(r.Reasons) != 1 || r.Seconds <= 0 || r.EventsPerSecond <= 0 {
		t.Errorf("got %+v", r)
	}
}

func TestAgainCountsOnceMore(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	file := write(t, filepath.Join(t.TempDir(), "events.csv"), someEvents)
	must(t, "replay", "--data", data, file)
	once := views(t, data)
	refused(t, "imported already", "replay", "--data", data, file)
	if got := views(t, data); got != once {
		t.Errorf("a refused import changed the counts from\n%sto\n%s", once, got)
	}
	must(t, "replay", "--again", "--data", data, file)
	if got := views(t, data); got == once {
		t.Error("--again changed nothing")
	}
	refused(t, "imported already", "replay", "--data", data, file)
}

// A file counts once, whatever other files it is named with.
func TestAFileIsRefusedAmongOthers(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	file := write(t, filepath.Join(dir, "events.csv"), someEvents)
	more := write(t, filepath.Join(dir, "more.csv"), "item,ts_ms\nz,1767225600000\n")
	must(t, "replay", "--data", data, file)
	once := views(t, data)
	refused(t, file+" was imported already", "replay", "--data", data, more, file)
	if got := views(t, data); got != once {
		t.Errorf("a refused import changed the counts from\n%sto\n%s", once, got)
	}
	must(t, "replay", "--data", data, more)
	must(t, "replay", "--again", "--data", data, more, file)
}

// C4, for --again too: it goes on with the import that it began, and begins no other.
func TestAgainGoesOn(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	file := write(t, filepath.Join(t.TempDir(), "events.csv"), someEvents)
	must(t, "replay", "--data", data, file)
	c, err := loadConfig(&cobra.Command{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Data = data
	var logs []string
	for range 2 { // begun, and ended before anything was read
		r, err := openReplay(t.Context(), environment{stderr: t.Output()}, &c, []string{file}, true)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, string(r.log.ID[:]))
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
	}
	if logs[0] != logs[1] {
		t.Error("the same call began another import")
	}
	status, out, _ := call(t, nil, "counts", "--json", "--data", data)
	if status != exitDone || !strings.Contains(out, `"complete":false`) {
		t.Errorf("while an import is unfinished: exit status %d, %s", status, out)
	}
	refused(t, "other settings", "replay", "--again", "--dedup-events=1000", "--data", data, file)
	must(t, "replay", "--again", "--data", data, file)
	if out := must(t, "counts", "--json", "--data", data); !strings.Contains(out, `"complete":true`) || !strings.Contains(out, `"value":4,`) {
		t.Errorf("got %s", out)
	}
}

func TestReplayReadsStandardInput(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	var out, errs strings.Builder
	status := mainExit(environment{stdin: strings.NewReader(someEvents), stdout: &out, stderr: &errs, args: []string{"replay", "--data", data, "-"}})
	if status != exitDone {
		t.Fatalf("exit status %d: %s", status, errs.String())
	}
	// Its content is what names it.
	refused(t, "imported already", "replay", "--data", data, write(t, filepath.Join(t.TempDir(), "events.csv"), someEvents))
	if left, err := filepath.Glob(filepath.Join(data, "import-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSettingsAreKeptWithTheData(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	file := write(t, filepath.Join(t.TempDir(), "events.csv"), someEvents)
	more := write(t, filepath.Join(t.TempDir(), "more.csv"), "time,item\n2026-01-01T00:00:00Z,c\n")
	must(t, "replay", "--data", data, "--view-types=play", "--partitions=3", "--dimensions=id2", file)
	refused(t, "3 partitions", "replay", "--data", data, "--partitions=4", more)
	must(t, "replay", "--data", data, more)
	if out := must(t, "counts", "--json", "--data", data, "c"); !strings.Contains(out, `"type":"play"`) || !strings.Contains(out, `"value":1,`) {
		t.Errorf("an event without a type is not of the kept view type: %s", out)
	}
}

func TestNothingIsMadeForAWrongCall(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	refused(t, "no such file", "replay", "--data", data, filepath.Join(t.TempDir(), "nowhere.csv"))
	refused(t, "no store in "+data, "viewers", "--data", data)
	if status, _, errs := call(t, nil, "replay", "--data", data, "--dimensions=user,country,country", "x.csv"); status != exitUsage || !strings.Contains(errs, "dimensions") {
		t.Errorf("exit status %d: %s", status, errs)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestHashKey(t *testing.T) {
	dir := t.TempDir()
	data, key := filepath.Join(dir, "data"), filepath.Join(dir, "data", keyName)
	file := write(t, filepath.Join(dir, "events.csv"), someEvents)
	must(t, "replay", "--data", data, file)
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key's file: %v, %v", info, err)
	}

	// Its copy elsewhere serves; another key does not; without any nothing is guessed.
	copied := filepath.Join(dir, "copy")
	if err := os.Rename(key, copied); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"viewers"}, {"replay", "--again", file}} {
		refused(t, "hash.key is missing", append(args, "--data", data)...)
	}
	must(t, "viewers", "--data", data, "--hash-key-file", copied)
	refused(t, "no such file", "viewers", "--data", data, "--hash-key-file", copied+"2")
	refused(t, "another hash key", "viewers", "--data", data, "--hash-key-file", write(t, filepath.Join(dir, "other"), strings.Repeat("ab", 16)))
	refused(t, "hash key", "viewers", "--data", data, "--hash-key-file", write(t, filepath.Join(dir, "short"), "abab"))
}

// Of processes that make a key at once, all get the one that stays.
func TestMakeKeyTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", keyName)
	first, err := makeKey(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := makeKey(path)
	if err != nil || second != first {
		t.Errorf("the second key is another, or %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("in the folder: %v, %v", entries, err)
	}
}
