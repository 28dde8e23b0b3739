package keys

import (
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newKey(t *testing.T, b Binding, scopes ...Scope) (Key, string) {
	t.Helper()
	k, text, err := New("test", scopes, b, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return k, text
}

func add(t *testing.T, path string, k Key) {
	t.Helper()
	if err := Edit(path, func(all []Key) ([]Key, error) { return append(all, k), nil }); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAKeyIs(t *testing.T) {
	k, text := newKey(t, Binding{}, Read, Ingest)
	other, second := newKey(t, Binding{}, Read)
	if text == second || k.ID == other.ID || len(text) != len(prefix)+43 || !strings.HasPrefix(text, prefix) {
		t.Errorf("%s %s, %s %s", k.ID, text, other.ID, second)
	}
	if !k.May(Read) || !k.May(Ingest) || k.May(Admin) || k.ReadsOnly() || !other.ReadsOnly() {
		t.Errorf("%v, %v", k.Scopes, other.Scopes)
	}
	if admin, _ := newKey(t, Binding{}, Admin); !admin.May(Read) || !admin.May(Ingest) || admin.ReadsOnly() {
		t.Error("an admin may not do everything")
	}
	for _, tt := range []struct {
		scopes []Scope
		b      Binding
		want   string
	}{
		{nil, Binding{}, "scopes: must be some of ingest, read, admin"},
		{[]Scope{"write"}, Binding{}, `got "write"`},
		{[]Scope{Ingest}, Binding{Item: "a"}, "only a key that may read"},
		{[]Scope{Read, Admin}, Binding{Item: "a"}, "only a key that may read"},
		{[]Scope{Read}, Binding{Item: "a", Question: "/v1/top"}, "one of them at most"},
		{[]Scope{Read}, Binding{Dimension: "channel"}, "NAME=VALUE"},
		{[]Scope{Read}, Binding{Question: "https://example.org/v1/top"}, "question"},
		{[]Scope{Read}, Binding{Question: "/metrics"}, "question"},
		{[]Scope{Read}, Binding{Question: "/v1/top?key=x"}, "question"},
	} {
		if _, _, err := New("", tt.scopes, tt.b, time.Now()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v %+v: %v, want %s", tt.scopes, tt.b, err, tt.want)
		}
	}
	if _, _, err := New(strings.Repeat("x", maxName+1), []Scope{Read}, Binding{}, time.Now()); err == nil {
		t.Error("a name without an end")
	}
}

func TestBindings(t *testing.T) {
	item, value := Binding{Item: "a"}, Binding{Dimension: "channel", Value: "ana"}
	question := Binding{Question: "/v1/top?by=views&last=1h"}
	for _, tt := range []struct {
		b     Binding
		url   string
		allow bool
	}{
		{Binding{}, "/metrics", true},
		{item, "/v1/viewers?item=a", true},
		{item, "/v1/counts?item=a&last=5m&step=minute&dimension=country", true},
		{item, "/v1/outcomes?item=a&item=a", true},
		{item, "/v1/viewers", false},
		{item, "/v1/viewers?item=b", false},
		{item, "/v1/viewers?item=a&item=b", false},
		{item, "/v1/viewers?Item=a", false},
		{item, "/v1/top?item=a", false},
		{item, "/v1/items?prefix=a", false},
		{item, "/v1/status", false},
		{item, "/metrics?item=a", false},
		{value, "/v1/viewers?dimension=channel&value=ana&item=x", true},
		{value, "/v1/top?dimension=channel&value=ana&limit=5", true},
		{value, "/v1/top?dimension=channel", false},
		{value, "/v1/top?dimension=channel&value=bob", false},
		{value, "/v1/top?dimension=channel&value=ana&value=bob", false},
		{value, "/v1/top?dimension=country&value=ana", false},
		{value, "/v1/counts?value=ana", false},
		{value, "/v1/outcomes?dimension=channel&value=ana", false},
		{value, "/v1/status?dimension=channel&value=ana", false},
		{question, "/v1/top?last=1h&by=views", true},
		{question, "/v1/top?last=1h&by=%76iews", true},
		{question, "/v1/top?last=1h", false},
		{question, "/v1/top?last=1h&by=views&limit=1000", false},
		{question, "/v1/top?last=1h&by=views&by=views", false},
		{question, "/v1/counts?last=1h&by=views", false},
	} {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := tt.b.Allows(u.Path, u.Query()); got != tt.allow {
			t.Errorf("bound to %s, %s: allowed %v", tt.b, tt.url, got)
		}
	}
}

// K1, K3: the file is its owner's only, does not have the key, and nothing of edits
// at the same time is lost.
func TestFileOfKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "keys.json")
	var all sync.WaitGroup
	texts := make([]string, 20)
	for i := range texts {
		all.Go(func() {
			var k Key
			k, texts[i] = newKey(t, Binding{}, Read)
			add(t, path, k)
		})
	}
	all.Wait()
	kept, err := Load(path)
	if err != nil || len(kept) != len(texts) {
		t.Fatalf("%d keys, %v", len(kept), err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range texts {
		if strings.Contains(string(text), key[len(prefix):]) {
			t.Error("the file has a key")
		}
		if ring.Find(key) == nil || ring.Find(key+"x") != nil || ring.Find(key[:len(key)-1]) != nil {
			t.Error("not found by its text alone")
		}
	}
	failed := errors.New("no")
	if err := Edit(path, func([]Key) ([]Key, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if err := Edit(path, func(all []Key) ([]Key, error) { return append(all, all[0]), nil }); err == nil {
		t.Error("an id twice")
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(text) {
		t.Errorf("a change that failed has changed it: %v", err)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || !slices.Equal(left, []string{path + ".lock"}) {
		t.Errorf("left behind: %v %v", left, err)
	}
}

const hash = `"hash":"` + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + `"`

// noFiles are what no server may take for keys.
var noFiles = []string{
	"", "null", "[]", "{}", `{"version":2,"keys":[]}`, `{"version":1,"keys":[]} {}`, `{"version":1,"keys":[{}]}`,
	`{"version":1,"keys":[{"id":"k","scopes":["read"],"hash":"aa"}]}`,
	`{"version":1,"keys":[{"id":"k","scopes":["read"],` + hash + `,"until":"2027-01-01"}]}`,
	`{"version":1,"keys":[{"id":"k","scopes":["rule"],` + hash + `}]}`,
	`{"version":1,"keys":[{"id":"k","scopes":["read"],` + hash + `},{"id":"k","scopes":["read"],` + hash + `}]}`,
}

func TestWhatIsNoFileOfKeys(t *testing.T) {
	for _, text := range noFiles {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("taken for keys: %s", text)
		}
	}
	if _, err := parse([]byte(`{"version":1,"keys":[{"id":"k","scopes":["read"],` + hash + `}]}`)); err != nil {
		t.Error(err)
	}
}

func FuzzFile(f *testing.F) {
	for _, text := range noFiles {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parse(text)
		if err != nil {
			return
		}
		for i := range c.Keys {
			if err := c.Keys[i].validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// K2: a running server follows the file, and what happens to it never opens it again.
func TestRingFollowsItsFile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(dir, "keys.json")
		ring, err := Open(path)
		if err != nil || ring.Made() {
			t.Fatalf("made: %v, %v", ring.Made(), err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			ring.Watch(t.Context(), slog.New(slog.DiscardHandler))
		}()
		pass := func() { time.Sleep(watchEvery); synctest.Wait() }
		pass()
		if ring.Made() {
			t.Error("keys without a file")
		}
		k, text := newKey(t, Binding{}, Read)
		add(t, path, k)
		pass()
		if !ring.Made() || ring.Find(text) == nil {
			t.Error("a new key is not known")
		}
		second, secondText := newKey(t, Binding{}, Admin)
		add(t, path, second)
		now := time.Now()
		revoke := func(all []Key) ([]Key, error) { all[0].Revoked = &now; return all, nil }
		if err := Edit(path, revoke); err != nil {
			t.Fatal(err)
		}
		pass()
		if found := ring.Find(text); found == nil || found.Revoked == nil || ring.Find(secondText) == nil {
			t.Errorf("revoked: %+v", found)
		}
		for _, harm := range []func() error{
			func() error { return os.WriteFile(path, []byte("{"), 0o600) },
			func() error { return os.Remove(path) },
			func() error { return os.Mkdir(path, 0o700) },
		} {
			if err := harm(); err != nil {
				t.Fatal(err)
			}
			pass()
			if !ring.Made() || ring.Broken() == nil || ring.Find(secondText) == nil {
				t.Errorf("made: %v, broken: %v", ring.Made(), ring.Broken())
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := Edit(path, func([]Key) ([]Key, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		pass()
		if !ring.Made() || ring.Broken() != nil || ring.Find(secondText) != nil {
			t.Error("a file without keys is not one: nobody may do anything")
		}
	})
	if _, err := Open(dir); err == nil {
		t.Error("a folder is no file of keys")
	}
}
