package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A journal that was copied and went on by itself has the same name, and enough
// records: but others. The store that counted the one does not go on with the other.
func TestStoreRefusesACopyOfItsJournalThatWentOnByItself(t *testing.T) {
	data := newFolder(t)
	run := func(f folder, seed uint64, all int) {
		t.Helper()
		p := f.start(t, "--max-skew=1h")
		events := liveEvents(seed, 2000)
		for i := range events { // later than those before, so that minutes close
			events[i].Time += int64(all/2000) * (5 * time.Minute).Milliseconds()
		}
		if status, body, err := send(p.url, events); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s %v", status, body, err)
		}
		settled(t, p.server, all)
		if s := p.end(t, syscall.SIGTERM); s != 0 {
			t.Fatalf("exit status %d\n%s", s, p.log)
		}
	}
	run(data, 1, 2000)
	other := newFolder(t)
	if err := os.CopyFS(other.dir, os.DirFS(data.dir)); err != nil {
		t.Fatal(err)
	}
	other.key = data.key
	run(data, 2, 4000)
	run(other, 3, 4000)
	run(other, 4, 6000) // it is not shorter either
	journal := filepath.Join(data.dir, "journal")
	if err := os.RemoveAll(journal); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(journal, os.DirFS(filepath.Join(other.dir, "journal"))); err != nil {
		t.Fatal(err)
	}
	r := call{args: data.args("serve", "--listen", "127.0.0.1:0")}.run(t)
	if r.status != 1 || !strings.Contains(r.stderr, "has another record than the one that was counted") {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
}
