package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// A bit is flipped in a file of the store, or its end is missing: then opening or
// reading fails, or everything is right, up to the position that the store says.
// It is never a wrong number.
func TestDamageIsNeverAWrongNumber(t *testing.T) {
	dir := t.TempDir()
	seals := damageSeals(t, 300)
	files := makeDamageStore(t, dir, seals)
	wants := make(map[windows.Pair]*windowstest.Merged)
	for i := range len(seals) + 1 {
		to := windows.Pair{}
		if i > 0 {
			to = seals[i-1].To
		}
		wants[to] = sealedRows(seals[:i])
	}
	r := rand.New(rand.NewPCG(1, 1))
	outcomes := make(map[string]int)
	for _, name := range files {
		if name == "MANIFEST-000001" {
			continue // the one that the store was made with: nobody reads it any more
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for range damageTries(name) {
			if len(content) == 0 {
				break
			}
			damagedContent := slices.Clone(content)
			what := ""
			if at := r.IntN(len(content)); r.IntN(4) == 0 {
				damagedContent, what = damagedContent[:at], fmt.Sprintf("%s cut at %d of %d", name, at, len(content))
			} else {
				bit := r.IntN(8)
				damagedContent[at] ^= 1 << bit
				what = fmt.Sprintf("%s bit %d of byte %d of %d flipped", name, bit, at, len(content))
			}
			copied := t.TempDir()
			for _, other := range files {
				if other == name {
					err = os.WriteFile(filepath.Join(copied, name), damagedContent, 0o600)
				} else {
					err = os.Link(filepath.Join(dir, other), filepath.Join(copied, other))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			outcome := readDamaged(t, copied, what, wants)
			kind, _, _ := strings.Cut(strings.TrimLeft(name, "0123456789."), "-")
			outcomes[kind+": "+outcome]++
		}
	}
	for _, o := range slices.Sorted(func(yield func(string) bool) {
		for o := range outcomes {
			if !yield(o) {
				return
			}
		}
	}) {
		t.Log(outcomes[o], o)
	}
}

// damageTries is more for the files where most goes wrong unnoticed: a manifest that
// is cut is an older one.
func damageTries(name string) int {
	switch {
	case strings.HasPrefix(name, "MANIFEST"):
		return 120
	case strings.HasSuffix(name, ".sst"):
		return 10
	}
	return 24
}

func damageSeals(t *testing.T, records int) []*windows.Seal {
	src := newFeeder(0, feederConfig{})
	r := rand.New(rand.NewPCG(1, 2))
	offset := int64(0)
	for i := range windows.Minute(6) {
		var events []windows.Event
		for range records {
			events = append(events, recordOf(offset, 1000+40*i+20*windows.Minute(r.IntN(4)), "view", fmt.Sprint("item", r.IntN(60)), r.IntN(60)))
			offset++
		}
		src.add(t, events)
		src.end(t, offset)
	}
	return src.seals
}

// A flipped bit in the newest log is told from the end of the log, where synced
// records follow it in a later block of 32 KB: in a store that was opened once, as
// Open leaves it.
func TestFlippedBitInTheNewestLogIsSeen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, testOptions(dir, 1))
	begin(t, s)
	for _, seal := range damageSeals(t, 3000) {
		if err := s.Apply(seal); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	newest := logs[len(logs)-1]
	content, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{10, len(content) / 4, len(content) / 2} {
		flipped := slices.Clone(content)
		flipped[at] ^= 4
		if err := os.WriteFile(newest, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(testOptions(dir, 1)); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d of %d: %v", at, len(content), err)
		}
	}
}

// makeDamageStore makes a store with files of every kind, and returns their names.
func makeDamageStore(t *testing.T, dir string, seals []*windows.Seal) (files []string) {
	s := open(t, testOptions(dir, 1))
	begin(t, s)
	for i, seal := range seals {
		if i > 0 { // the last one is in the log alone
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Apply(seal); err != nil {
			t.Fatal(err)
		}
		if i == 2 || i == 5 { // files come in between, and at the end; and late parts
			s.sizes.batch = 1
			if err := s.Maintain(t.Context(), windows.MaxMinute); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			files = append(files, e.Name())
		}
	}
	return files
}

// readDamaged opens a store that was damaged and reads all of it.
func readDamaged(t *testing.T, dir, what string, wants map[windows.Pair]*windowstest.Merged) (outcome string) {
	o := testOptions(dir, 1)
	s, err := Open(o)
	if err != nil {
		if strings.HasPrefix(what, "OPTIONS") { // some settings are read, and told by name
			return "opening fails"
		}
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: opening does not say that it is damaged: %v", what, err)
		}
		return "opening says it is damaged"
	}
	defer s.Close()
	n, err := s.Snapshot()
	if err != nil {
		return "reading fails"
	}
	defer n.Close()
	got, err := readAll(n, []windows.Stretch{allTime}, func(p windows.Part) windows.Minute { return p.Start })
	if err != nil {
		return "reading fails"
	}
	want := wants[n.Position(testLog, 0)]
	if want == nil {
		t.Errorf("%s: the position is %v", what, n.Position(testLog, 0))
		return "wrong"
	}
	if diff := want.Diff(got); diff != "" {
		t.Errorf("%s: %s", what, diff)
		return "wrong"
	}
	// All minutes together, as they are rolled up, against themselves.
	together := func(windows.Part) windows.Minute { return 0 }
	minutes, err := readAll(n, []windows.Stretch{allTime}, together)
	if err != nil {
		return "reading fails"
	}
	steps, _ := n.Plan([]windows.Minute{0, windows.MaxMinute})
	planned, err := readAll(n, steps, together)
	if err != nil {
		return "reading fails"
	}
	if diff := minutes.Diff(planned); diff != "" {
		t.Errorf("%s: as it is rolled up, by %v: %s", what, steps, diff)
		return "wrong"
	}
	if want.Len() < maxLen(wants) {
		return "an earlier position, and all up to there"
	}
	return "everything is right"
}

// readAll reads all rows of some stretches.
func readAll(n *Snapshot, at []windows.Stretch, minute func(windows.Part) windows.Minute) (*windowstest.Merged, error) {
	m := new(windowstest.Merged)
	for _, stretch := range at {
		for _, series := range n.Series() {
			err := n.Scan(stretch, series, func(p windows.Part, item uint32, r windows.Row) error {
				name := ""
				if r.Kind == windows.Item {
					var err error
					if name, err = n.Name(item); err != nil {
						return err
					}
				}
				m.Add(minute(p), series, r.Kind, name, r)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func maxLen(wants map[windows.Pair]*windowstest.Merged) int {
	n := 0
	for _, m := range wants {
		n = max(n, m.Len())
	}
	return n
}
