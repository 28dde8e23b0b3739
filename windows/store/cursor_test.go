package store

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// However a cursor gets there, it is where a seek would have gone.
func TestCursorIsWhereASeekGoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), Logger: newLogger(testOptions("x", 1).Logger)})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var keys []string
		for range rapid.IntRange(0, 20).Draw(rt, "keys") {
			key := string([]byte{byte(rapid.IntRange(0, 4).Draw(rt, "level")), byte(rapid.IntRange(0, 30).Draw(rt, "key"))})
			keys = append(keys, key)
			if err := db.Set([]byte(key), []byte("x"), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		c, err := openCursor(db)
		if err != nil {
			t.Fatal(err)
		}
		defer c.iter.Close()
		at := len(keys)
		for range rapid.IntRange(1, 40).Draw(rt, "moves") {
			if rapid.Bool().Draw(rt, "next") && c.known {
				c.next()
				at = min(at+1, len(keys))
			} else {
				key := []byte{byte(rapid.IntRange(0, 4).Draw(rt, "level")), byte(rapid.IntRange(0, 30).Draw(rt, "key"))}
				if rapid.Bool().Draw(rt, "near") && at < len(keys) {
					key = []byte(keys[at])
					key[1] += byte(rapid.IntRange(0, 3).Draw(rt, "far"))
				}
				c.seek(key)
				at, _ = slices.BinarySearch(keys, string(key))
			}
			if c.valid() != (at < len(keys)) || at < len(keys) && string(c.key()) != keys[at] {
				rt.Fatalf("valid %v, want key %d of %q", c.valid(), at, keys)
			}
		}
	})
}
