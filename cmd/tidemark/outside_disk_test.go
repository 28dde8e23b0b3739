package main_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// smallDisk names the folder of the small file system that a test has been started
// again in.
const smallDisk = "TIDEMARK_TEST_SMALL_DISK"

// onSmallDisk starts the test again where a file system of that size is mounted on the
// folder that it returns there; elsewhere it returns "".
func onSmallDisk(t *testing.T, size string) string {
	t.Helper()
	if dir := os.Getenv(smallDisk); dir != "" {
		return dir
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "-rm", "true").CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v: %s", err, out)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c",
		`mount -t tmpfs -o size=`+size+` none "$1" && exec "$0" -test.run="^$2\$" -test.v -test.timeout=3m`, os.Args[0], dir, t.Name())
	cmd.Env = append(os.Environ(), smallDisk+"="+dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

// fill takes all the space that is left, and returns what gives it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for b := make([]byte, 1<<20); len(b) > 0; {
		if _, err := f.Write(b); err != nil {
			b = b[:len(b)/2]
		}
	}
	return func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
}

// until waits for something that must come.
func until(t *testing.T, p *process, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("not so after a minute: %s\n%s", what, p.log)
		}
	}
}

// A disk that is full, under journal and store: events are refused with the reason,
// questions are answered, and when there is room again all goes on by itself, with nothing
// lost or doubled.
func TestServerOnAFullDisk(t *testing.T) {
	dir := onSmallDisk(t, "400m")
	if dir == "" {
		return
	}
	data := newFolder(t)
	data.dir = filepath.Join(dir, "data")
	p := data.start(t, "--lateness=3s", "--idle=1s")
	// They end a second before their minute, so it is sealed some five seconds later: a
	// seal of 8 MB, since each has an item of its own.
	last := time.Now().Truncate(time.Minute).Add(-time.Second)
	var events []windowstest.Event
	for i := range 8_000 {
		events = append(events, windowstest.Event{
			Time: last.UnixMilli(), Item: fmt.Sprintf("%s-%d", strings.Repeat("x", 1000), i), Type: "view", User: fmt.Sprint(i), ID: fmt.Sprint(i),
		})
	}
	for part := events; len(part) > 0; part = part[2000:] {
		if status, body, err := send(p.url, part[:2000]); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s %v", status, body, err)
		}
	}
	settled(t, p.server, len(events))
	free := fill(t, dir)
	more := []windowstest.Event{{Time: last.UnixMilli(), Item: "after", Type: "view", ID: "after"}}
	until(t, p, "events are refused", func() bool {
		status, body, err := send(p.url, more)
		if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s %v", status, body, err)
		}
		return status == http.StatusServiceUnavailable && strings.Contains(body, "the disk is full")
	})
	until(t, p, "the store waits", func() bool {
		_, metrics := p.get(t, "/metrics")
		return strings.Contains(metrics, "\ntidemark_store_waiting 1\n")
	})
	if status, body := p.get(t, "/readyz/ingest"); status != http.StatusServiceUnavailable || !strings.Contains(body, "the disk is full") {
		t.Errorf("/readyz/ingest: %d %s", status, body)
	}
	settled(t, p.server, len(events)+1) // is answered, and right
	if status, body := p.get(t, "/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: %d %s", status, body)
	}
	free()
	until(t, p, "events are taken again", func() bool {
		status, body, err := send(p.url, more)
		if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s %v", status, body, err)
		}
		ready, _ := p.get(t, "/readyz/ingest")
		return status == http.StatusOK && ready == http.StatusOK
	})
	settled(t, p.server, len(events)+1)
	data.recount(t, false, "--server", p.url)
	if s := p.end(t, syscall.SIGTERM); s != 0 {
		t.Fatalf("exit status %d\n%s", s, p.log)
	}
	if got := data.recount(t, false); got.Counts != int64(len(events))+1 {
		t.Errorf("%+v", got)
	}
}

// A server that waits for a full disk ends when it is told to, in time, and goes on where
// it was.
func TestServerEndsOnAFullDisk(t *testing.T) {
	dir := onSmallDisk(t, "300m")
	if dir == "" {
		return
	}
	data := newFolder(t)
	data.dir = filepath.Join(dir, "data")
	p := data.start(t, "--lateness=3s", "--idle=1s")
	var events []windowstest.Event
	for i := range 5000 {
		events = append(events, windowstest.Event{Time: time.Now().UnixMilli(), Item: fmt.Sprintf("%s-%d", strings.Repeat("x", 1000), i), Type: "view", ID: fmt.Sprint(i)})
	}
	if status, body, err := send(p.url, events); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
	settled(t, p.server, len(events))
	free := fill(t, dir)
	begun := time.Now()
	p.end(t, syscall.SIGTERM)
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v to end\n%s", took, p.log)
	}
	free()
	p = data.start(t)
	settled(t, p.server, len(events))
}
