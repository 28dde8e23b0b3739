package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/windows"
)

// fullDiskEnv is the folder of a file system that is soon full.
const fullDiskEnv = "TIDEMARK_TEST_FULL_DISK"

// A disk that is full ends the import with an error that says so, at once, wherever
// it strikes; with space again the same seals go on, and nothing is lost or doubled.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullDiskEnv); dir != "" {
		onFullDisk(t, dir)
		return
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "-rm", "true").CombinedOutput(); err != nil {
		t.Skipf("no file system of our own can be mounted here: %v: %s", err, out)
	}
	for _, size := range []string{"70m", "100m"} {
		t.Run(size, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c",
				`mount -t tmpfs -o size=`+size+` none "$1" && exec "$0" -test.run='^TestFullDisk$' -test.v`, os.Args[0], dir)
			cmd.Env = append(os.Environ(), fullDiskEnv+"="+dir)
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// onFullDisk fills the disk in one process and goes on in another: after such an
// error the first has nothing left to do but to end.
func onFullDisk(t *testing.T, dir string) {
	const ballast = 30 << 20
	seals := fullDiskSeals(t)
	options := testOptions(filepath.Join(dir, "store"), 1)
	if os.Getenv(fullDiskEnv+"_FILL") != "" {
		fill(t, options, seals)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, ballast), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), fullDiskEnv+"_FILL=1")
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	t.Logf("%v, after %v: %s", err, time.Since(begun).Round(time.Millisecond), out)
	if !strings.Contains(string(out), "the disk is full") {
		t.Error("it does not say that the disk is full")
	}
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	s := open(t, options)
	have := 0
	if to := s.Positions(testLog)[0].To; to != (windows.Pair{}) {
		for seals[have].To != to {
			have++
		}
		have++
	}
	t.Logf("%d of %d seals are there", have, len(seals))
	if diff := sealedRows(seals[:have]).Diff(stored(t, snapshot(t, s))); diff != "" {
		t.Fatal(diff)
	}
	if have < len(seals) { // there is room for a few more
		if err := s.Apply(seals[have]); err != nil {
			t.Fatal(err)
		}
		if diff := sealedRows(seals[:have+1]).Diff(stored(t, snapshot(t, s))); diff != "" {
			t.Fatal(diff)
		}
	}
}

// fill applies seals until the disk is full, which must be told.
func fill(t *testing.T, options Options, seals []*windows.Seal) {
	s, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, s)
	for i, seal := range seals {
		if err := s.Apply(seal); err != nil {
			t.Logf("seal %d: %v", i, err)
			if !errors.Is(err, ErrBroken) {
				t.Error("not ErrBroken")
			}
			if err := s.Apply(seal); !errors.Is(err, ErrBroken) {
				t.Errorf("the next one: %v", err)
			}
			if _, err := s.Snapshot(); !errors.Is(err, ErrBroken) {
				t.Errorf("a snapshot: %v", err)
			}
			os.Exit(0) // Pebble's goroutines are stuck
		}
	}
	t.Fatal("the disk was not full")
}

func fullDiskSeals(t *testing.T) []*windows.Seal {
	f := newFeeder(0, feederConfig{})
	r := rand.New(rand.NewPCG(1, 1))
	offset := int64(0)
	for minute := range windows.Minute(60) {
		var events []windows.Event
		for range 12_000 {
			events = append(events, recordOf(offset, 1000+minute, "view", fmt.Sprintf("item-%x", r.Uint64()), r.IntN(1<<30)))
			offset++
		}
		f.add(t, events)
		f.end(t, offset)
	}
	return f.seals
}
