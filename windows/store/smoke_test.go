package store

import (
	"log/slog"
	"testing"

	"tidemark/sketches"
	"tidemark/windows"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir() + "/s"
	h := sketches.NewHasher(sketches.NewKey())
	opts := Options{Dir: dir, Create: true, KeyID: h.KeyID(), Partitions: 1, ViewTypes: []string{"view"}, Logger: slog.New(slog.DiscardHandler)}
	s, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	id := windows.LogID{1}
	if _, err := s.Begin(Log{ID: id, Names: []string{"a"}, Started: 1, E: []uint64{7}}); err != nil {
		t.Fatal(err)
	}
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(opts); err != nil {
		t.Fatal(err)
	}
	t.Log(s.Logs(), s.Meta())
	if _, err := Open(opts); err == nil {
		t.Fatal("opened twice")
	} else {
		t.Log(err)
	}
	s.Close()
}
