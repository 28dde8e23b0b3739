package windowstest_test

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tidemark/windows/windowstest"
)

// truth is what a NAME.truth.json holds, as far as the oracle answers it. Those
// files were counted by another program, in another language.
type truth struct {
	Totals struct {
		Events            int
		EventsWithoutUser int `json:"events_without_user"`
		Users, Items      int
		FirstTS           int64 `json:"first_ts"`
		LastTS            int64 `json:"last_ts"`
		Types             map[string]uint64
	}
	Tables map[string]digest
	Series map[string]struct{ Views, Users uint64 }
	Ranges map[string]answer
	Window map[string]struct{ List []answer } `json:"windows"`
	Trail  map[string]struct{ List []answer } `json:"trailing"`
	Filter map[string]answer                  `json:"filtered"`
}

type digest struct {
	Lines  int
	SHA256 string
}

type answer struct {
	Start, End          int64
	Views, Users, Items uint64
	TopViews            [][3]any             `json:"top_views"`
	TopUsers            [][3]any             `json:"top_users"`
	Chosen              map[string][2]uint64 `json:"chosen"`
}

var bucketSizes = map[string]int64{"second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}

func TestOracleSaysWhatTheTruthFilesSay(t *testing.T) {
	for _, set := range windowstest.Sets(t) {
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(set.Truth)
			if err != nil {
				t.Fatal(err)
			}
			var want truth
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			events := set.Events(t)
			o := windowstest.NewOracle(events)

			from, to := o.Span()
			everything := windowstest.Question{From: from, To: to}
			nobody := 0
			types := make(map[string]uint64)
			for _, e := range events {
				if e.User == "" {
					nobody++
				}
				types[e.Type]++
			}
			check(t, "events", o.Events(), want.Totals.Events)
			check(t, "events without a user", nobody, want.Totals.EventsWithoutUser)
			check(t, "users", o.Users(), want.Totals.Users)
			check(t, "items", len(o.ItemNames()), want.Totals.Items)
			check(t, "first", from, want.Totals.FirstTS)
			check(t, "last", to-1, want.Totals.LastTS)
			if diff := gocmp.Diff(want.Totals.Types, types); diff != "" {
				t.Errorf("types (-truth +oracle):\n%s", diff)
			}

			for name, d := range want.Tables {
				h := sha256.New()
				w := bufio.NewWriter(h)
				table := o.Table(everything, bucketSizes[name])
				for _, c := range table {
					fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", c.Item, c.Start, c.Events, c.Viewers)
				}
				w.Flush()
				check(t, "table "+name, digest{len(table), hex.EncodeToString(h.Sum(nil))}, d)
			}
			for item, s := range want.Series {
				check(t, "series "+item, o.Item(everything, item), windowstest.Tally{Events: s.Views, Viewers: s.Users})
			}
			for name, a := range want.Ranges {
				checkAnswer(t, "range "+name, o, windowstest.Question{From: a.Start, To: a.End}, a)
			}
			for name, list := range want.Window {
				for _, a := range list.List {
					checkAnswer(t, "window "+name, o, windowstest.Question{From: a.Start, To: a.End}, a)
				}
			}
			for name, list := range want.Trail {
				for _, a := range list.List {
					checkAnswer(t, "trailing "+name, o, windowstest.Question{From: a.Start, To: a.End}, a)
				}
			}
			for name, a := range want.Filter {
				q := windowstest.Question{From: a.Start, To: a.End}
				typ, byType := strings.CutPrefix(name, "type=")
				if byType {
					q.Types = []string{typ}
					checkAnswer(t, name, o, q, a)
					continue
				}
				bots := slices.DeleteFunc(slices.Clone(events), func(e windowstest.Event) bool { return (e.Bot == "1") != (name == "bots") })
				checkAnswer(t, name, windowstest.NewOracle(bots), q, a)
			}
		})
	}
}

func checkAnswer(t *testing.T, what string, o *windowstest.Oracle, q windowstest.Question, a answer) {
	t.Helper()
	what = fmt.Sprintf("%s [%d, %d)", what, q.From, q.To)
	check(t, what+" site", o.Site(q), windowstest.Tally{Events: a.Views, Viewers: a.Users})
	check(t, what+" items", uint64(len(o.Items(q))), a.Items)
	for item, n := range a.Chosen {
		check(t, what+" item "+item, o.Item(q, item), windowstest.Tally{Events: n[0], Viewers: n[1]})
	}
	for _, top := range []struct {
		name string
		by   windowstest.By
		want [][3]any
	}{{"views", windowstest.Views, a.TopViews}, {"viewers", windowstest.Viewers, a.TopUsers}} {
		got := o.Top(q, top.by, len(top.want))
		if len(got) != len(top.want) {
			t.Errorf("%s: top by %s has %d items, the truth %d", what, top.name, len(got), len(top.want))
			continue
		}
		for i, w := range top.want {
			number := uint64(w[1].(float64))
			if got[i].Item != w[0].(string) || top.by(got[i].Tally) != number {
				t.Errorf("%s: top by %s, place %d: got %+v, the truth %v", what, top.name, i+1, got[i], w)
			}
		}
	}
}

func check[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, the truth is %v", what, got, want)
	}
}

func TestWithoutDuplicatesKeepsTheFirstOfEachID(t *testing.T) {
	events := []windowstest.Event{{Item: "a", ID: "1"}, {Item: "b"}, {Item: "c", ID: "1"}, {Item: "b"}, {Item: "d", ID: "2"}}
	var got []string
	for _, e := range windowstest.WithoutDuplicates(events) {
		got = append(got, e.Item)
	}
	if diff := gocmp.Diff([]string{"a", "b", "b", "d"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOracleNarrowsToADimension(t *testing.T) {
	o := windowstest.NewOracle([]windowstest.Event{
		{Time: 1, Item: "a", User: "u", Type: "view", Dims: []string{"DE", "web"}},
		{Time: 2, Item: "a", User: "u", Type: "view", Dims: []string{"AT", "web"}},
		{Time: 3, Item: "b", User: "v", Type: "view", Dims: []string{"DE", ""}},
		{Time: 4, Item: "b", User: "w", Type: "like", Dims: []string{"DE", "app"}},
		{Time: 5, Item: "b", User: "x", Type: "view"},
	}, "country", "device")
	for _, c := range []struct {
		name string
		q    windowstest.Question
		want []windowstest.Ranked
	}{
		{"all", windowstest.Question{To: 6}, []windowstest.Ranked{{Item: "a", Tally: windowstest.Tally{Events: 2, Viewers: 1}}, {Item: "b", Tally: windowstest.Tally{Events: 3, Viewers: 3}}}},
		{"a value", windowstest.Question{To: 6, Dimension: "country", Value: "DE"}, []windowstest.Ranked{{Item: "a", Tally: windowstest.Tally{Events: 1, Viewers: 1}}, {Item: "b", Tally: windowstest.Tally{Events: 2, Viewers: 2}}}},
		{"and a type", windowstest.Question{To: 6, Dimension: "country", Value: "DE", Types: []string{"view"}}, []windowstest.Ranked{{Item: "a", Tally: windowstest.Tally{Events: 1, Viewers: 1}}, {Item: "b", Tally: windowstest.Tally{Events: 1, Viewers: 1}}}},
		{"the empty value is none", windowstest.Question{To: 6, Dimension: "device"}, []windowstest.Ranked{}},
		{"an unknown value", windowstest.Question{To: 6, Dimension: "device", Value: "tv"}, []windowstest.Ranked{}},
		{"half-open", windowstest.Question{From: 2, To: 3}, []windowstest.Ranked{{Item: "a", Tally: windowstest.Tally{Events: 1, Viewers: 1}}}},
	} {
		got := o.Items(c.q)
		slices.SortFunc(got, func(a, b windowstest.Ranked) int { return cmp.Compare(a.Item, b.Item) })
		if diff := gocmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
