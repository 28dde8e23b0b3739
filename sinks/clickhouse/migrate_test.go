package clickhouse

import (
	"errors"
	"strings"
	"testing"

	"tidemark/sinks"
)

// The tables are as rows are written to them, after the migrations and after they
// are done a second time, also half of them.
func TestMigrations(t *testing.T) {
	w := newWorld(t)
	w.sink(t)
	all, err := migrations(w.Database)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range all {
		if m.version != uint32(i+1) {
			t.Errorf("migration %s has version %d, want %d", m.name, m.version, i+1)
		}
	}
	versions := func() uint64 { return one[uint64](t, w, "SELECT count() FROM {{.}}.migrations") }
	if n := versions(); n != uint64(len(all)) {
		t.Errorf("%d migrations remembered, want %d", n, len(all))
	}
	w.sink(t)
	if n := versions(); n != uint64(len(all)) {
		t.Errorf("%d migrations remembered after another start, want %d", n, len(all))
	}
	// A crash before the first was remembered.
	w.exec(t, "TRUNCATE TABLE {{.}}.migrations", "DROP VIEW {{.}}.top_minutes", "DROP TABLE {{.}}.outcomes")
	w.sink(t)
	if n := versions(); n != uint64(len(all)) {
		t.Errorf("%d migrations remembered after a crash, want %d", n, len(all))
	}
}

// What Script prints makes a database that a sink takes as it is, and takes nothing
// but the right to write and read.
func TestScript(t *testing.T) {
	w := newWorld(t)
	w.Retention = 400
	var script strings.Builder
	if err := Script(&script, w.Options); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, s := range statements(script.String()) {
			if err := w.conn.Exec(t.Context(), s); err != nil {
				t.Fatalf("%s\n%v", s, err)
			}
		}
	}
	// Rights cannot be taken from the only user of the test's server: what a sink does
	// is looked up in the schema instead.
	changed := func() string {
		return one[string](t, w, "SELECT toString(max(metadata_modification_time)) FROM system.tables WHERE database = '"+w.Database+"'")
	}
	before := changed()
	w.sink(t)
	if after := changed(); before != after {
		t.Errorf("a sink changed the tables at %s; the script made them at %s", after, before)
	}
}

func TestNewerDatabase(t *testing.T) {
	w := newWorld(t)
	w.sink(t)
	w.exec(t, "INSERT INTO {{.}}.migrations (version, name, hash) SELECT 4000, '4000_later', ''")
	if err := w.fresh(t).Resume(t.Context(), sinks.Progress{}); !errors.Is(err, sinks.ErrStopped) || !strings.Contains(err.Error(), "newer program") {
		t.Errorf("got %v", err)
	}
}

func TestOtherMigration(t *testing.T) {
	w := newWorld(t)
	w.sink(t)
	w.exec(t, "INSERT INTO {{.}}.migrations (version, name, hash, at) SELECT 1, '0001_tables', 'ff', now() + 10")
	if err := w.fresh(t).Resume(t.Context(), sinks.Progress{}); !errors.Is(err, sinks.ErrStopped) || !strings.Contains(err.Error(), "0001_tables") {
		t.Errorf("got %v", err)
	}
}

func TestRetention(t *testing.T) {
	w := newWorld(t)
	rules := func() (n uint64) {
		return one[uint64](t, w, "SELECT count() FROM system.tables WHERE database = '"+w.Database+"' AND position(engine_full, ' TTL ') > 0")
	}
	w.sink(t)
	if n := rules(); n != 0 {
		t.Errorf("%d tables expire, want none", n)
	}
	for _, days := range []int{30, 300, 3} {
		w.Retention = days
		w.sink(t)
		if n := rules(); n != uint64(len(expiring)) {
			t.Errorf("%d days: %d tables expire, want %d", days, n, len(expiring))
		}
		s := one[string](t, w, "SELECT engine_full FROM system.tables WHERE database = '"+w.Database+"' AND name = 'item_minutes'")
		if want := (expiry{"", "minute"}).ttl(days) + " "; !strings.Contains(s, want) {
			t.Errorf("engine %q, want %q in it", s, want)
		}
	}
	w.Retention = 0
	w.sink(t)
	if n := rules(); n != 0 {
		t.Errorf("%d tables expire after the setting was taken back, want none", n)
	}
}

func TestValidate(t *testing.T) {
	err := Options{Database: "a-b", Retention: -1}.Validate()
	for _, want := range []string{"addr", "database", "retention"} {
		if err == nil || !strings.Contains(err.Error(), want+": ") {
			t.Errorf("%v: want %q in it", err, want)
		}
	}
}
