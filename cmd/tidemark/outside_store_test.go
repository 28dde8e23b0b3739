package main_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"tidemark/windows"
	"tidemark/windows/store"
	"tidemark/windows/windowstest"
)

// open opens the store of a folder that no process holds.
func (f folder) open(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{Dir: filepath.Join(f.dir, "store"), ReadOnly: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // closed already where it was not an error that ended the test
	return s
}

// contents returns everything that the store holds, merged: counts, tokens,
// registers, by the names of the items.
func (f folder) contents(t *testing.T) *windowstest.Merged {
	t.Helper()
	s := f.open(t)
	n, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var m windowstest.Merged
	all := windows.Stretch{Level: windows.LevelMinute, Range: windows.Range{To: windows.MaxMinute}}
	names := make(map[uint32]string)
	for _, series := range n.Series() {
		err := n.Scan(all, series, func(p windows.Part, item uint32, row windows.Row) error {
			name, known := names[item]
			if !known && row.Kind == windows.Item {
				var err error
				if name, err = n.Name(item); err != nil {
					return err
				}
				names[item] = name
			}
			if row.Kind != windows.Item {
				name = ""
			}
			m.Add(p.Start, series, row.Kind, name, row)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return &m
}

// position returns how far the newest seal of the only import has got, in records.
func (f folder) position(t *testing.T) int64 {
	t.Helper()
	s := f.open(t)
	defer s.Close()
	var newest int64
	for _, l := range s.Logs() {
		for _, p := range s.Positions(l.ID) {
			newest = max(newest, p.To.S)
		}
	}
	return newest
}

// checkTable compares every item in every minute, type by type, with the oracle.
func checkTable(t *testing.T, got *windowstest.Merged, o *windowstest.Oracle) {
	t.Helper()
	from, to := o.Span()
	for _, typ := range o.Types() {
		q := windowstest.Question{From: from, To: to, Types: []string{typ}}
		for _, c := range o.Table(q, windows.MillisPerMinute) {
			n, tokens, ok := got.Tally(windows.MinuteOf(c.Start), windows.Series{Type: typ}, windows.Item, c.Item)
			if !ok || n != c.Events || tokens != c.Viewers {
				t.Fatalf("%s %q in minute %d: %d events by %d viewers, the truth is %+v", typ, c.Item, c.Start, n, tokens, c.Tally)
			}
		}
	}
	if n := got.Events(windows.Item); n != uint64(o.Events()) {
		t.Errorf("all items together have %d events, the truth is %d", n, o.Events())
	}
	if n := got.Events(windows.Site); n != uint64(o.Events()) {
		t.Errorf("the site has %d events, the truth is %d", n, o.Events())
	}
}
