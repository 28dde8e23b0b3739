package queries_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/sketches"
	"tidemark/windows/windowstest"
)

var streamStart = time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC) // the night in which Europe's clocks go forward

// hard is a stream with everything in it that makes counting hard.
var hard = windowstest.Shape{
	Seed: 1, Events: 20_000, Items: 600, Users: 3_000, Start: streamStart, Span: 6 * time.Hour,
	NoUser: 0.1, Late: 0.3, LateBy: 30 * time.Hour, Duplicates: 0.05, IDs: true, OddNames: true,
	Types: []string{"view", "like", "(other)", "*"}, Dims: [][]string{{"DE", "AT", "(other)", ""}, {"web", "app", ""}},
}

var hardDimensions = []string{"country", "device"}

// manyQuestions are of every kind.
var manyQuestions = []string{
	"viewers?", "viewers?type=*", "viewers?type=view&type=like", "viewers?item=a&item=A&item=never&type=*",
	"viewers?item=a&item=A&together=true", "viewers?step=hour&tz=Asia/Kathmandu&from=2026-03-27&to=2026-03-30", "viewers?step=day&tz=Europe/Berlin&type=*",
	"viewers?from=2026-03-28T23:00:00Z&to=2026-03-29T04:00:00Z&step=minute&item=a",
	"viewers?dimension=country", "viewers?dimension=country&value=DE&step=day", "counts?dimension=device&type=*",
	"counts?item=a&dimension=country&step=week", "counts?step=month&type=nothing",
	"top?limit=1000", "top?by=viewers&limit=1000", "top?by=viewers&limit=7&type=*", "top?limit=3&type=view&type=like",
	"top?dimension=country&value=DE&limit=5", "top?dimension=country", "top?dimension=device&by=viewers&type=*", "top?type=nothing",
	"outcomes?item=a&item=A&to=2100-01-01", "items?prefix=item-1",
}

// answersTo returns the JSON of the answers, but for how complete they are.
func answersTo(t *testing.T, e *queries.Engine, questions []string) []string {
	t.Helper()
	var all []string
	for _, q := range questions {
		path, query, _ := strings.Cut(q, "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := e.Ask(t.Context(), path, values, now)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		b, err := json.Marshal(reply)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q+" "+withoutProgress(t, b))
	}
	return all
}

// TestHowEventsCameChangesNothing asks many questions of many setups: the answers
// are the same to the last byte (Q3), but for how complete they are.
func TestHowEventsCameChangesNothing(t *testing.T) {
	events := hard.Stream()
	var want []string
	seed := uint64(0)
	for name, s := range setups {
		s.Dimensions = hardDimensions
		got := answersTo(t, s.Engine(t, windowstest.Shuffled(events, seed)), manyQuestions)
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, shuffled with %d: other answers than before:\n%s", name, seed, diff)
		}
		seed++
	}
}

// withoutProgress takes out what says how far the log has been read.
func withoutProgress(t *testing.T, b []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{"watermark", "hint", "complete", "final"} {
				delete(v, name)
			}
			for _, x := range v {
				strip(x)
			}
		case []any:
			for _, x := range v {
				strip(x)
			}
		}
	}
	strip(v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestSeriesAreExact holds every bucket of every step in several zones against the
// oracle.
func TestSeriesAreExact(t *testing.T) {
	events := windowstest.WithoutDuplicates(hard.Stream())
	oracle := windowstest.NewOracle(events, hardDimensions...)
	s := setups["some stored, some open"]
	s.Dimensions = hardDimensions
	e := s.Engine(t, events)
	for _, zone := range []string{"UTC", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "America/New_York"} {
		for _, step := range queries.Steps {
			values := url.Values{"step": {string(step)}, "tz": {zone}, "type": {"view"}, "item": {"a"}}
			q := windowstest.Question{Types: []string{"view"}}
			checkSeries(t, e, values, func(from, to int64) windowstest.Tally {
				q.From, q.To = from, to
				return oracle.Item(q, "a")
			})
			values = url.Values{"step": {string(step)}, "tz": {zone}, "type": {"*"}, "dimension": {"country"}, "value": {"DE"}}
			q = windowstest.Question{Dimension: "country", Value: "DE"}
			checkSeries(t, e, values, func(from, to int64) windowstest.Tally {
				q.From, q.To = from, to
				return oracle.Site(q)
			})
		}
	}
}

func checkSeries(t *testing.T, e *queries.Engine, values url.Values, truth func(from, to int64) windowstest.Tally) {
	t.Helper()
	what := values.Encode()
	a := ask[queries.Answers](t, e, "viewers", values)[0]
	typ := values.Get("type")
	at := a.From
	var sum uint64
	for _, b := range a.Series {
		if !b.Start.Equal(at) || !b.End.After(b.Start) {
			t.Fatalf("%s: a bucket from %v to %v after %v", what, b.Start, b.End, at)
		}
		at = b.End
		want := truth(b.Start.UnixMilli(), b.End.UnixMilli())
		if b.Counts[typ] != sketches.ExactNumber(want.Events) || !within(*b.Viewers, want.Viewers) {
			t.Errorf("%s: the bucket from %v is %+v, the truth is %+v", what, b.Start, b, want)
		}
		sum += b.Counts[typ].Value
	}
	if !at.Equal(a.To) || a.Counts[typ].Value != sum {
		t.Errorf("%s: %d in the whole up to %v, the buckets sum to %d up to %v", what, a.Counts[typ].Value, a.To, sum, at)
	}
	want := truth(a.From.UnixMilli(), a.To.UnixMilli())
	if a.Counts[typ] != sketches.ExactNumber(want.Events) || !within(*a.Viewers, want.Viewers) {
		t.Errorf("%s: %+v, the truth is %+v", what, a, want)
	}
}

// TestBreakdownsAreExact holds every value of a dimension against the oracle, of
// the site and of an item.
func TestBreakdownsAreExact(t *testing.T) {
	events := windowstest.WithoutDuplicates(hard.Stream())
	oracle := windowstest.NewOracle(events, hardDimensions...)
	s := setups["some stored, some open"]
	s.Dimensions = hardDimensions
	e := s.Engine(t, events)
	from, to := oracle.Span()
	for d, dimension := range hardDimensions {
		for _, item := range []string{"", "a", "A"} {
			values := url.Values{"dimension": {dimension}}
			if item != "" {
				values.Set("item", item)
			}
			a := ask[queries.Answers](t, e, "viewers", values)[0]
			var got []string
			for _, v := range a.Values {
				got = append(got, v.Value)
				q := windowstest.Question{From: from, To: to, Types: []string{"view"}, Dimension: dimension, Value: v.Value}
				want := oracle.Site(q)
				if item != "" {
					want = oracle.Item(q, item)
				}
				if v.Other || v.Counts["view"] != sketches.ExactNumber(want.Events) || !within(*v.Viewers, want.Viewers) {
					t.Errorf("%s: %+v, the truth is %+v", values.Encode(), v, want)
				}
			}
			for _, want := range hard.Dims[d] {
				q := windowstest.Question{From: from, To: to, Types: []string{"view"}, Dimension: dimension, Value: want}
				n := oracle.Site(q)
				if item != "" {
					n = oracle.Item(q, item)
				}
				if listed := strings.Contains(fmt.Sprintf("%q", got), fmt.Sprintf("%q", want)); listed != (n.Events > 0) {
					t.Errorf("%s: values %q; %q has %d", values.Encode(), got, want, n.Events)
				}
			}
		}
	}
	// Rankings within a value, and of the values.
	for _, by := range []windowstest.By{windowstest.Views, windowstest.Viewers} {
		q := windowstest.Question{From: from, To: to, Dimension: "country", Value: "AT"}
		values := url.Values{"dimension": {"country"}, "value": {"AT"}, "type": {"*"}, "limit": {"20"}}
		if by(windowstest.Tally{Viewers: 1}) == 1 {
			values.Set("by", "viewers")
		}
		a := ask[*queries.TopAnswer](t, e, "top", values)
		for i, want := range oracle.Top(q, by, 20) {
			if got := a.Items[i]; got.Item != want.Item || got.Views.Value != want.Events || got.Viewers.Value != want.Viewers {
				t.Errorf("%s: place %d is %+v, the truth %+v", values.Encode(), i+1, got, want)
			}
		}
	}
}

// TestSeveralItems asks for some at once: each its own answer, in order, or one
// for their union.
func TestSeveralItems(t *testing.T) {
	events := windowstest.WithoutDuplicates(hard.Stream())
	oracle := windowstest.NewOracle(events)
	from, to := oracle.Span()
	q := windowstest.Question{From: from, To: to, Types: []string{"view"}}
	e := setups["cut often"].Engine(t, events)
	items := []string{"A", "never seen", "a", "A"}
	answers := ask[queries.Answers](t, e, "viewers", url.Values{"item": items})
	if len(answers) != len(items) {
		t.Fatalf("%d answers", len(answers))
	}
	for i, a := range answers {
		want := oracle.Item(q, items[i])
		if a.Item != items[i] || a.Counts["view"].Value != want.Events || !within(*a.Viewers, want.Viewers) {
			t.Errorf("answer %d is %+v, the truth of %q is %+v", i, a, items[i], want)
		}
	}
	union := ask[queries.Answers](t, e, "viewers", url.Values{"item": items, "together": {"true"}})
	want := oracle.Together(q, items...)
	if a := union[0]; len(union) != 1 || a.Counts["view"].Value != want.Events || !within(*a.Viewers, want.Viewers) || a.Item != "" {
		t.Errorf("together: %+v, the truth is %+v", union, want)
	}

	b, err := json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	var back queries.Answers
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answers, back); diff != "" {
		t.Errorf("JSON and back: %s", diff)
	}
}

// TestWatermark says when a live log is complete, and when final.
func TestWatermark(t *testing.T) {
	events := hard.Stream()
	at := streamStart.Add(3 * time.Hour)
	s := queriestest.Setup{Live: true, Watermark: at.UnixMilli(), Settling: time.Hour}
	e := s.Engine(t, events)
	for _, c := range []struct {
		to              time.Time
		complete, final bool
	}{
		{at.Add(-2 * time.Hour), true, true},
		{at.Add(-time.Hour), true, true},
		{at.Add(-time.Hour + time.Minute), true, false},
		{at, true, false},
		{at.Add(time.Minute), false, false},
	} {
		values := url.Values{"from": {"2026-03-01"}, "to": {strconv.FormatInt(c.to.UnixMilli(), 10)}}
		a := ask[queries.Answers](t, e, "counts", values)[0]
		if a.Complete != c.complete || a.Final != c.final || a.Watermark == nil || !a.Watermark.Equal(at) {
			t.Errorf("to %v: %+v, want complete %v, final %v", c.to, a.Extent, c.complete, c.final)
		}
	}
	a := ask[queries.Answers](t, e, "counts", url.Values{"step": {"hour"}})[0]
	for _, b := range a.Series {
		if b.Complete != !b.End.After(at) {
			t.Errorf("the hour to %v is complete: %v, with a watermark of %v", b.End, b.Complete, at)
		}
	}
}
