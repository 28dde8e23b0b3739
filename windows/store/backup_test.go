package store

import (
	"path/filepath"
	"testing"

	"tidemark/windows"
)

// A backup is made while seals are applied: it is the store at one instant, with
// all that was acknowledged before, and seals go on from it.
func TestBackupIsTheStoreAtOneInstant(t *testing.T) {
	dir := t.TempDir()
	s := open(t, testOptions(filepath.Join(dir, "store"), 1))
	begin(t, s)
	seals := chainOf(t, 60)
	apply := func(s *Store, some []*windows.Seal) {
		for _, seal := range some {
			if err := s.Apply(seal); err != nil {
				t.Error(err)
			}
		}
	}
	apply(s, seals[:20])
	if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
		t.Fatal(err)
	}
	running := make(chan struct{})
	go func() {
		defer close(running)
		apply(s, seals[20:])
	}()
	backup := filepath.Join(dir, "backup")
	if err := s.Backup(backup); err != nil {
		t.Fatal(err)
	}
	<-running
	if err := s.Backup(backup); err == nil {
		t.Error("a backup over another one")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	o := testOptions(backup, 1)
	o.Create = false
	s = open(t, o)
	have := 0
	for to := s.Positions(testLog)[0].To; have == 0 || seals[have-1].To != to; {
		have++
	}
	if have < 20 {
		t.Errorf("%d seals, 20 were acknowledged before", have)
	}
	if diff := sealedRows(seals[:have]).Diff(stored(t, snapshot(t, s))); diff != "" {
		t.Error(diff)
	}
	apply(s, seals)
	if diff := sealedRows(seals).Diff(stored(t, snapshot(t, s))); diff != "" {
		t.Error(diff)
	}
}
