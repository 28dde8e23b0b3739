package journal

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// smallDisk names the folder of the small file system that the test has been
// started again in.
const smallDisk = "JOURNAL_TEST_SMALL_DISK"

// A real file system that is full, and then is not: 24 MB of memory, of which a
// file takes half. It needs a name space of its own to be mounted in.
func TestFullDisk(t *testing.T) {
	dir := os.Getenv(smallDisk)
	if dir == "" {
		dir = t.TempDir()
		if out, err := exec.CommandContext(t.Context(), "unshare", "-rm", "true").CombinedOutput(); err != nil {
			t.Skipf("no file system can be mounted here: %v: %s", err, out)
		}
		cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=24m none "$1" && exec "$0" -test.run='^TestFullDisk$' -test.v`, os.Args[0], dir)
		cmd.Env = append(os.Environ(), smallDisk+"="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 12<<20), 0o600))
	o := Options{Dir: filepath.Join(dir, "journal"), Partitions: 2, SegmentBytes: 2 << 20, Logger: slog.New(slog.DiscardHandler)}
	j, err := Open(o)
	must(t, err)
	w := newWorld(2)
	rng := newRand(1)
	for err == nil {
		err = w.append(j, w.group(rng, 3, 200_000))
	}
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("on a full disk: %v", err)
	}
	must(t, w.check(j))
	must(t, os.Remove(ballast))
	for err != nil {
		time.Sleep(10 * time.Millisecond)
		if err = w.append(j, w.group(rng, 3, 1000)); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	must(t, w.check(j))
	must(t, j.Close())
	j, err = Open(o)
	must(t, err)
	must(t, w.check(j))
	must(t, j.Close())
}
