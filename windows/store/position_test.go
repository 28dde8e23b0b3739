package store

import (
	"errors"
	"testing"

	"tidemark/windows"
)

// chainOf makes seals of one partition, each of one minute.
func chainOf(tb testing.TB, n int) []*windows.Seal {
	tb.Helper()
	src := newFeeder(0, feederConfig{})
	for i := range n {
		src.add(tb, []windows.Event{recordOf(int64(i), windows.Minute(100+i), "view", "a", i)})
		src.end(tb, int64(i+1))
	}
	return src.seals
}

func TestSealIsTakenIfThePositionIsItsPredecessor(t *testing.T) {
	seals := chainOf(t, 3)
	for _, c := range []struct {
		name  string
		apply []int // seals in this order
		fails bool  // the last one
		holds int   // seals that the store then has
	}{
		{"in order", []int{0, 1, 2}, false, 3},
		{"the same again", []int{0, 0}, false, 1},
		{"an older one again", []int{0, 1, 0}, false, 2},
		{"with a gap", []int{0, 2}, true, 1},
		{"the first is missing", []int{1}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, testOptions(t.TempDir(), 1))
			begin(t, s)
			for i, at := range c.apply {
				err := s.Apply(seals[at])
				if fails := c.fails && i == len(c.apply)-1; fails != (err != nil) || fails && !errors.Is(err, ErrGap) {
					t.Fatalf("seal %d: %v", at, err)
				}
			}
			n := snapshot(t, s)
			if diff := sealedRows(seals[:c.holds]).Diff(stored(t, n)); diff != "" {
				t.Error(diff)
			}
			want := windows.Position{E: 100}
			if c.holds > 0 {
				last := seals[c.holds-1]
				want.To, want.R, want.H = last.To, last.R, last.H
			}
			if got := s.Positions(testLog)[0]; got != want {
				t.Errorf("position %v, want %v", got, want)
			}
			if got := n.Position(testLog, 0); got != want.To {
				t.Errorf("position of the snapshot %v, want %v", got, want.To)
			}
		})
	}
}

// A partition that is idle cuts twice at one offset: both minutes are kept.
func TestTwoSealsAtOneOffset(t *testing.T) {
	seals := chainOf(t, 1)
	second := *seals[0]
	second.From = seals[0].To
	second.To = windows.Pair{F: seals[0].To.F + 5, S: seals[0].To.S}
	s := open(t, testOptions(t.TempDir(), 1))
	begin(t, s)
	for _, seal := range []*windows.Seal{seals[0], &second} {
		if err := s.Apply(seal); err != nil {
			t.Fatal(err)
		}
	}
	if diff := sealedRows([]*windows.Seal{seals[0], &second}).Diff(stored(t, snapshot(t, s))); diff != "" {
		t.Error(diff)
	}
}

func TestSealsThatAreRefused(t *testing.T) {
	seals := chainOf(t, 1)
	for _, c := range []struct {
		name   string
		change func(*windows.Seal)
		want   error
	}{
		{"of a log that was not begun", func(s *windows.Seal) { s.Log = windows.LogID{9} }, ErrUnknownLog},
		{"of another incarnation", func(s *windows.Seal) { s.E++ }, ErrGap},
		{"of a partition that there isn't", func(s *windows.Seal) { s.Partition = 1 }, ErrSettings},
		{"of a negative partition", func(s *windows.Seal) { s.Partition = -1 }, ErrSettings},
		{"that is no step", func(s *windows.Seal) { s.To = s.From }, ErrGap},
		{"that ends before it begins", func(s *windows.Seal) { s.From, s.To = s.To, s.From }, ErrGap},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, testOptions(t.TempDir(), 1))
			begin(t, s)
			seal := *seals[0]
			c.change(&seal)
			if err := s.Apply(&seal); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if _, any := snapshot(t, s).Span(); any {
				t.Error("something of it is stored")
			}
		})
	}
}

func TestLogIsBegunOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, testOptions(dir, 2))
	first := Log{ID: testLog, Names: []string{"a.csv", "b.csv"}, Contents: []string{"x", "y"}, Started: 5, Settings: "x=1", E: []uint64{1, 2}}
	if _, err := s.Begin(first); err != nil {
		t.Fatal(err)
	}
	again, err := s.Begin(Log{ID: testLog, Names: []string{"c"}, Started: 6, E: []uint64{3, 4}})
	if err != nil || again.Started != 5 || again.E[1] != 2 || again.Names[1] != "b.csv" || again.Done {
		t.Fatalf("%+v, %v", again, err)
	}
	for _, bad := range []Log{{ID: windows.LogID{1}, E: []uint64{1}}, {ID: windows.LogID{1}, E: []uint64{1, 0}}, {ID: windows.LogID{1}, E: []uint64{1, 2}, Started: -1}} {
		if _, err := s.Begin(bad); err == nil {
			t.Errorf("begun: %+v", bad)
		}
	}
	if err := s.Finish(windows.LogID{1}); !errors.Is(err, ErrUnknownLog) {
		t.Error(err)
	}
	if err := s.Finish(testLog); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, testOptions(dir, 2))
	if logs := s.Logs(); len(logs) != 1 || !logs[0].Done || logs[0].E[1] != 2 || logs[0].Names[0] != "a.csv" || logs[0].Contents[1] != "y" {
		t.Errorf("%+v", logs)
	}
}
