package store

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/sketches"
	"tidemark/windows"
)

func TestOpenRefuses(t *testing.T) {
	made := t.TempDir()
	if err := open(t, testOptions(made, 4)).Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   error
		says   string
	}{
		{"no store", func(o *Options) { o.Create, o.Dir = false, t.TempDir() }, ErrNoStore, "import"},
		{"no folder", func(o *Options) { o.Create, o.Dir = false, o.Dir+"/none" }, ErrNoStore, "import"},
		{"no store, read-only", func(o *Options) { o.Create, o.ReadOnly, o.Dir = false, true, t.TempDir() }, ErrNoStore, "import"},
		{"another key", func(o *Options) { o.KeyID = sketches.Key{9}.ID() }, ErrKey, "--hash-key-file"},
		{"other partitions", func(o *Options) { o.Partitions = 8 }, ErrSettings, "4 partitions"},
		{"no partitions for a new store", func(o *Options) { o.Partitions = 0 }, nil, "partitions"},
		{"everything", func(o *Options) { *o = Options{Partitions: -1, CacheBytes: -1} }, nil, "dir"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions(made, 4)
			c.change(&o)
			s, err := Open(o)
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Error(err)
			}
		})
	}
}

func TestOpenTakesWhatTheStoreWasMadeWith(t *testing.T) {
	dir := t.TempDir()
	o := testOptions(dir, 3)
	o.Dimensions = []string{"country"}
	if err := open(t, o).Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Dir: dir, Logger: o.Logger})
	m := s.Meta()
	if m.KeyID != testHasher.KeyID() || m.Partitions != 3 || m.ViewTypes[0] != "view" || m.Dimensions[0] != "country" {
		t.Errorf("%+v", m)
	}
	s.Close()
	s = open(t, Options{Dir: dir, Logger: o.Logger, ViewTypes: []string{"sale"}})
	s.Close()
	if m := open(t, Options{Dir: dir, Logger: o.Logger}).Meta(); m.ViewTypes[0] != "sale" || m.Dimensions[0] != "country" {
		t.Errorf("%+v", m)
	}
}

func TestReadOnlyTakesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, testOptions(dir, 1))
	begin(t, s)
	seals := chainOf(t, 2)
	if err := s.Apply(seals[0]); err != nil {
		t.Fatal(err)
	}
	s.Close()
	o := testOptions(dir, 1)
	o.Create, o.ReadOnly = false, true
	s = open(t, o)
	if err := s.Apply(seals[1]); !errors.Is(err, pebble.ErrReadOnly) {
		t.Error(err)
	}
	if err := s.Finish(testLog); !errors.Is(err, pebble.ErrReadOnly) {
		t.Error(err)
	}
	if _, err := s.Begin(Log{ID: windows.LogID{1}, E: []uint64{1}}); !errors.Is(err, pebble.ErrReadOnly) {
		t.Error(err)
	}
	if diff := sealedRows(seals[:1]).Diff(stored(t, snapshot(t, s))); diff != "" {
		t.Error(diff)
	}
}

// A store that was begun and never finished is made when it is opened the next time.
func TestStoreThatWasNeverFinishedIsMade(t *testing.T) {
	dir := t.TempDir()
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: newLogger(testOptions(dir, 1).Logger)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	o := testOptions(dir, 1)
	o.Create = false
	if _, err := Open(o); !errors.Is(err, ErrNoStore) {
		t.Error(err)
	}
	begin(t, open(t, testOptions(dir, 1)))
}

func TestFolderOfSomethingElseIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: newLogger(testOptions(dir, 1).Logger)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("x"), nil, pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(testOptions(dir, 1)); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// holdEnv makes this test binary hold the store in the folder until its input ends.
const holdEnv = "TIDEMARK_TEST_HOLD"

func TestSecondProcessIsHeldOut(t *testing.T) {
	if dir := os.Getenv(holdEnv); dir != "" {
		open(t, testOptions(dir, 1))
		os.Stdout.WriteString("held\n")
		bufio.NewReader(os.Stdin).ReadString('\n')
		return
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSecondProcessIsHeldOut$")
	cmd.Env = append(os.Environ(), holdEnv+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatal(line, err)
	}
	for _, readOnly := range []bool{false, true} {
		o := testOptions(dir, 1)
		o.Create, o.ReadOnly = !readOnly, readOnly
		if _, err := Open(o); !errors.Is(err, ErrHeld) {
			t.Errorf("read-only %v: %v", readOnly, err)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	open(t, testOptions(dir, 1))
}

func TestOneProcessOpensItOnce(t *testing.T) {
	dir := t.TempDir()
	open(t, testOptions(dir, 1))
	t.Chdir(dir)
	o := testOptions(".", 1)
	if _, err := Open(o); !errors.Is(err, ErrHeld) {
		t.Error(err)
	}
}
