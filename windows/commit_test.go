package windows_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/windows"
)

func TestCommitText(t *testing.T) {
	c := windows.Commit{
		E: 0xfedcba9876543210, To: windows.Pair{F: 29_000_000, S: 1 << 40}, R: 77,
		V: []windows.Version{{From: 9, Settings: 1 << 63}, {From: 3, Settings: 5}}, H: windows.Mark{Offset: 1<<40 - 1, Hash: 9},
	}
	for range 3 {
		at := c.Newest()
		next, err := c.Begin(windows.Pair{F: at.F + 1, S: at.S + 100}, windows.Mark{Offset: at.S + 98, Hash: 11})
		if err != nil {
			t.Fatal(err)
		}
		c = next
		got, err := windows.ParseCommit(c.Text(), 77)
		if diff := cmp.Diff(c, got); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	}
	if _, err := c.Begin(c.Newest(), c.H); err == nil {
		t.Error("a pair that is no step was begun")
	}
}

// A commit holds some 500 pairs of a busy partition, and then says that it is full.
func TestCommitIsFull(t *testing.T) {
	c := windows.Commit{E: 1, To: windows.Pair{F: 29_000_000, S: 1 << 40}, V: make([]windows.Version, 16)}
	for {
		at := c.Newest()
		next, err := c.Begin(windows.Pair{F: at.F + 5, S: at.S + 5*60*10_000}, windows.Mark{Offset: at.S, Hash: 1})
		if errors.Is(err, windows.ErrCommitFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		c = next
	}
	if len(c.P) < 400 || len(c.Text()) > windows.MaxCommitText {
		t.Errorf("%d pairs in %d bytes", len(c.P), len(c.Text()))
	}
	c = c.Deliver(5)
	if _, err := c.Begin(windows.Pair{F: c.Newest().F + 1, S: c.Newest().S}, c.H); err != nil {
		t.Errorf("after one was delivered: %v", err)
	}
}

func TestCommitSettings(t *testing.T) {
	c := windows.Commit{E: 1}
	for i := range int64(40) {
		c = c.Settle(windows.Version{From: 10 * i, Settings: uint64(i)})
	}
	if len(c.V) != 40 {
		t.Errorf("%d versions, and records from 0 on depend on all", len(c.V))
	}
	c.P = []windows.Pair{{F: 1, S: 1}}
	c = c.Deliver(305)
	if len(c.V) != 16 || c.Settings(305) != 30 || c.Settings(1<<40) != 39 {
		t.Errorf("versions %v", c.V)
	}
	c = c.Settle(windows.Version{From: 320, Settings: 99}) // takes back what held from 330 on
	if c.Settings(319) != 31 || c.Settings(320) != 99 || c.Settings(395) != 99 {
		t.Errorf("versions %v", c.V)
	}
}

func TestCommitFollows(t *testing.T) {
	c := windows.Commit{To: windows.Pair{F: 5, S: 10}, H: windows.Mark{Offset: 8, Hash: 3}}
	for _, tt := range []struct {
		name string
		end  int64
		hash uint64
		ok   bool
		want bool
	}{
		{"the same", 10, 3, true, true},
		{"longer", 99, 3, true, true},
		{"shorter", 9, 3, true, false},
		{"another record", 99, 4, true, false},
		{"removed by then", 99, 0, false, true},
	} {
		got := c.Follows(tt.end, func(offset int64) (uint64, bool) { return tt.hash, tt.ok && offset == 8 })
		if got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func FuzzCommit(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 4 {
		c := windows.Commit{E: r.Uint64(), To: windows.Pair{F: 7, S: 9}, V: make([]windows.Version, n), H: windows.Mark{Offset: 8}}
		for i := range n {
			c.P = append(c.P, windows.Pair{F: 7, S: int64(10 + i)})
		}
		f.Add(c.Text())
	}
	f.Add("1.")
	f.Add("2.AAAA")
	f.Add("1." + strings.Repeat("_", 99))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := windows.ParseCommit(text, 3)
		if err != nil {
			if !errors.Is(err, windows.ErrCommit) {
				t.Error(err)
			}
			return
		}
		if c.Text() != text {
			t.Errorf("%q is read, and written as %q", text, c.Text())
		}
	})
}
