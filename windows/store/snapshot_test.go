package store

import (
	"errors"
	"testing"

	"tidemark/windows"
)

func TestSnapshotDoesNotChange(t *testing.T) {
	s := open(t, testOptions(t.TempDir(), 1))
	begin(t, s)
	seals := chainOf(t, 20)
	var snapshots []*Snapshot
	for _, seal := range seals {
		snapshots = append(snapshots, snapshot(t, s))
		if err := s.Apply(seal); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range snapshots {
		if diff := sealedRows(seals[:i]).Diff(stored(t, n)); diff != "" {
			t.Errorf("snapshot %d: %s", i, diff)
		}
		var to windows.Pair
		if i > 0 {
			to = seals[i-1].To
		}
		if n.Position(testLog, 0) != to {
			t.Errorf("snapshot %d: position %v, want %v", i, n.Position(testLog, 0), to)
		}
		if logs := n.Logs(); logs[0].Records != int64(i) {
			t.Errorf("snapshot %d: %d records", i, logs[0].Records)
		}
		if r, ok := n.Span(); ok != (i > 0) || ok && r != (windows.Range{From: 100, To: windows.Minute(100 + i)}) {
			t.Errorf("snapshot %d: span %v, %v", i, r, ok)
		}
		if parts := n.Parts(windows.Stretch{Range: windows.Range{From: 101, To: windows.MaxMinute}}); parts != max(0, i-1) {
			t.Errorf("snapshot %d: %d parts", i, parts)
		}
	}
}

func TestYieldEndsTheCall(t *testing.T) {
	s := open(t, testOptions(t.TempDir(), 1))
	begin(t, s)
	for _, seal := range chainOf(t, 3) {
		if err := s.Apply(seal); err != nil {
			t.Fatal(err)
		}
	}
	n := snapshot(t, s)
	enough := errors.New("enough")
	view := windows.Series{Type: "view"}
	id, _, err := n.ID("a")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	count := func() error { calls++; return enough }
	for name, err := range map[string]error{
		"rows": n.Rows(allTime, view, windows.Item, id, func(windows.Part, windows.Row) error { return count() }),
		"scan": n.Scan(allTime, view, func(windows.Part, uint32, windows.Row) error { return count() }),
		"list": n.Lists(allTime, view, func(windows.Part, windows.TopList) error { return count() }),
		"outc": n.Outcomes(allTime, func(windows.Part, windows.OutcomeCount) error { return count() }),
	} {
		if !errors.Is(err, enough) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if calls != 4 {
		t.Errorf("%d calls, want 4", calls)
	}
	// An item's number that is none.
	if err := n.Rows(allTime, view, windows.Item, 1, nil); err == nil {
		t.Error("rows of item 1")
	}
	if _, err := n.Name(99); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

func TestClosedStoreGivesNoSnapshot(t *testing.T) {
	s := open(t, testOptions(t.TempDir(), 1))
	s.Close()
	if _, err := s.Snapshot(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestTextsAndNames(t *testing.T) {
	s := open(t, testOptions(t.TempDir(), 1))
	begin(t, s)
	seals := chainOf(t, 3)
	say := func(at int64, value string) windows.Text { return windows.Text{At: at, Value: value} }
	seals[0].Items = []windows.ItemInfo{{Item: "a", Title: say(5, "five"), URL: say(1, "u")}, {Item: "ab", Title: say(1, "x")}}
	seals[1].Items = []windows.ItemInfo{{Item: "a", Title: say(4, "four"), Image: say(9, "i")}}
	seals[2].Items = []windows.ItemInfo{{Item: "a", Title: say(5, "fivf")}, {Item: "b", URL: say(1, "only this")}}
	for _, seal := range seals {
		if err := s.Apply(seal); err != nil {
			t.Fatal(err)
		}
	}
	n := snapshot(t, s)
	id, _, _ := n.ID("a")
	got, err := n.Texts(id)
	if want := (windows.ItemInfo{Title: say(5, "fivf"), URL: say(1, "u"), Image: say(9, "i")}); err != nil || got != want {
		t.Errorf("%+v, want %+v, %v", got, want, err)
	}
	var names []string
	if err := n.Items("a", func(_ uint32, name string) bool {
		names = append(names, name)
		return true
	}); err != nil || len(names) != 2 || names[1] != "ab" {
		t.Error(names, err)
	}
}
