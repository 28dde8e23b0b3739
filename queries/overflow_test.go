package queries_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/store"
	"tidemark/windows/windowstest"
)

// TestOverBudgetTheTruthLiesWithinTheBounds gives windows far fewer slots than
// there are items: counts come from the Count-Min tables then, and say so (Q2).
func TestOverBudgetTheTruthLiesWithinTheBounds(t *testing.T) {
	shape := windowstest.Shape{
		Seed: 5, Events: 60_000, Items: 20_000, Users: 4_000, Start: streamStart, Span: time.Hour,
		NoUser: 0.1, Types: []string{"view", "like"}, Dims: [][]string{{"DE", "AT", "CH", "FR", "IT", ""}},
	}
	events := shape.Stream()
	oracle := windowstest.NewOracle(events, "country")
	from, to := oracle.Span()
	for _, s := range []queriestest.Setup{
		{Limits: windows.Limits{Items: 100, Values: 3}},
		{Limits: windows.Limits{Items: 300, Values: 4}, Store: newOnDisk(t, store.Retention{}, 0), Partitions: 2},
		{Limits: windows.Limits{Items: 500, Values: 4}, Store: newOnDisk(t, store.Retention{}, 2), Memory: 20 << 20},
		{Limits: windows.Limits{Items: 1000, Values: 2}, Partitions: 4, ListSize: 20},
		{Limits: windows.Limits{Items: 400, Values: 3}, Partitions: 2, Live: true, Memory: 30 << 20},
	} {
		s.Dimensions = []string{"country"}
		t.Run(fmt.Sprintf("%+v", s.Limits), func(t *testing.T) {
			e := s.Engine(t, events)
			for _, typ := range []string{"view", "*"} {
				q := windowstest.Question{From: from, To: to, Types: []string{typ}}
				if typ == "*" {
					q.Types = nil
				}
				site := ask[queries.Answers](t, e, "viewers", url.Values{"type": {typ}})[0]
				if want := oracle.Site(q); site.Counts[typ] != sketches.ExactNumber(want.Events) || !within(*site.Viewers, want.Viewers) {
					t.Errorf("the site: %+v, the truth is %+v", site, want)
				}
				sketched := 0
				ranked := oracle.Top(q, windowstest.Views, 1000)
				for i := 0; i < len(ranked); i += 1 + i/20 {
					want := ranked[i]
					values := url.Values{"type": {typ}, "item": {want.Item}}
					sketched += checkBounds(t, e, values, typ, want.Tally)
					values.Set("dimension", "country")
					values.Set("value", "DE")
					q := q
					q.Dimension, q.Value = "country", "DE"
					checkBounds(t, e, values, typ, oracle.Item(q, want.Item))
				}
				if sketched == 0 {
					t.Error("nothing was over the budget")
				}
				checkRecall(t, e, typ, oracle, q)
			}
			a := ask[queries.Answers](t, e, "viewers", url.Values{"dimension": {"country"}})[0]
			for _, v := range a.Values {
				q := windowstest.Question{From: from, To: to, Types: []string{"view"}, Dimension: "country", Value: v.Value}
				want := oracle.Site(q)
				if v.Other {
					continue // of several values, together
				}
				if n := v.Counts["view"]; n.Low > want.Events || want.Events > n.High || v.Viewers.Low > want.Viewers || want.Viewers > v.Viewers.High {
					t.Errorf("%+v, the truth is %+v", v, want)
				}
			}
		})
	}
}

// checkBounds returns 1 if the answer is by a Count-Min table.
func checkBounds(t *testing.T, e *queries.Engine, values url.Values, typ string, want windowstest.Tally) int {
	t.Helper()
	a := ask[queries.Answers](t, e, "viewers", values)[0]
	n := a.Counts[typ]
	if n.Low > want.Events || want.Events > n.High || n.Low > n.Value || n.Value > n.High {
		t.Errorf("%s: %+v events, the truth is %d", values.Encode(), n, want.Events)
	}
	if v := *a.Viewers; v.Low > want.Viewers || want.Viewers > v.High || v.Low > v.Value || v.Value > v.High {
		t.Errorf("%s: %+v viewers, the truth is %d", values.Encode(), v, want.Viewers)
	}
	if n.Method != sketches.MethodCountMin {
		return 0
	}
	if a.Viewers.Method != sketches.MethodCountMin {
		t.Errorf("%s: the count is by %s, the viewers by %s", values.Encode(), n.Method, a.Viewers.Method)
	}
	return 1
}

// checkRecall asks that a ranking over its budget still finds the leaders, and
// calls itself certified only if it is right.
func checkRecall(t *testing.T, e *queries.Engine, typ string, oracle *windowstest.Oracle, q windowstest.Question) {
	t.Helper()
	const limit = 100
	a := ask[*queries.TopAnswer](t, e, "top", url.Values{"type": {typ}, "limit": {"100"}})
	want := oracle.Top(q, windowstest.Views, limit)
	least := want[limit-1].Events
	found := 0
	for _, p := range a.Items {
		truth := oracle.Item(q, p.Item)
		if p.Views.Low > truth.Events || truth.Events > p.Views.High {
			t.Errorf("%+v, the truth is %+v", p, truth)
		}
		if truth.Events >= least {
			found++
		} else if a.Certified {
			t.Errorf("certified, and %s has %d where the last place needs %d", p.Item, truth.Events, least)
		}
	}
	if found < 99 {
		t.Errorf("type %s: %d of the first 100 found", typ, found)
	}
}

// TestTypesBeyondTheLimit asks for a type that some windows had no series for.
func TestTypesBeyondTheLimit(t *testing.T) {
	var events []windowstest.Event
	for minute := range int64(4) {
		for i := range int64(200) {
			typ := fmt.Sprintf("type-%d", (i+minute*37)%100)
			events = append(events, windowstest.Event{
				Time: streamStart.UnixMilli() + minute*windows.MillisPerMinute + i*100,
				Item: fmt.Sprintf("item-%d", i%7), User: fmt.Sprintf("user-%d", i%50), Type: typ,
			})
		}
	}
	oracle := windowstest.NewOracle(events)
	from, to := oracle.Span()
	q := windowstest.Question{From: from, To: to}
	for _, s := range []queriestest.Setup{{}, {Live: true, Partitions: 2}} {
		e := s.Engine(t, events)
		for i := range 100 {
			typ := fmt.Sprintf("type-%d", i)
			q.Types = []string{typ}
			for _, item := range []string{"", "item-3"} {
				values, want := url.Values{"type": {typ}}, oracle.Site(q)
				if item != "" {
					values.Set("item", item)
					want = oracle.Item(q, item)
				}
				checkBounds(t, e, values, typ, want)
			}
		}
		q.Types = nil
		a := ask[queries.Answers](t, e, "viewers", url.Values{"type": {"*"}})[0]
		if want := oracle.Site(q); a.Counts["*"] != sketches.ExactNumber(want.Events) || !within(*a.Viewers, want.Viewers) {
			t.Errorf("all types: %+v, the truth is %+v", a, want)
		}
		if len(a.Counts) != queries.MaxTypes+1 {
			t.Errorf("%d types listed", len(a.Counts))
		}
		two := ask[queries.Answers](t, e, "viewers", url.Values{"type": {"type-1", "type-99"}})[0]
		q.Types = []string{"type-1", "type-99"}
		if n, want := two.Counts["*"], oracle.Site(q); n.Low > want.Events || want.Events > n.High || two.Type != "type-1,type-99" {
			t.Errorf("two types: %+v, the truth is %+v", two, want)
		}
	}
}
