package queries_test

import (
	"math/rand/v2"
	"net/url"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is the present of all tests: after every event.
var now = time.Date(2026, 12, 1, 12, 0, 30, 0, time.UTC)

// setups are ways to the same answers.
var setups = map[string]queriestest.Setup{
	"one partition":                 {},
	"eight partitions, short lists": {Partitions: 8, ListSize: 3, Batch: 17},
	"cut often":                     {Partitions: 2, Memory: 1 << 20, ListSize: 10},
	"all in open windows":           {Partitions: 3, Live: true, Batch: 100},
	"some stored, some open":        {Partitions: 3, Live: true, Memory: 1 << 20, ListSize: 5},
}

// TestAnswersAreExact holds what the engine says of the real sets against an
// oracle, in whole minutes: counts, rankings by views and small numbers of viewers
// to the last unit, other viewers within their bounds (Q2, Q4).
func TestAnswersAreExact(t *testing.T) {
	bounds := new(coverage)
	for _, set := range windowstest.Sets(t) {
		t.Run(set.Name, func(t *testing.T) {
			events := windowstest.WithoutDuplicates(set.Events(t))
			oracle := windowstest.NewOracle(events)
			for _, name := range []string{"eight partitions, short lists", "some stored, some open"} {
				t.Run(name, func(t *testing.T) {
					askAll(t, setups[name].Engine(t, events), oracle, bounds)
				})
			}
		})
	}
	bounds.check(t)
}

// askAll asks about ranges, types and items, drawn at random, the same each time.
func askAll(t *testing.T, e *queries.Engine, oracle *windowstest.Oracle, bounds *coverage) {
	r := rand.New(rand.NewPCG(3, 4))
	types := append(oracle.Types(), queries.AllTypes)
	for i := range 12 {
		q := windowstest.Question{Types: []string{types[i%len(types)]}}
		q.From, q.To = randomRange(r, oracle, i)
		if q.Types[0] == queries.AllTypes {
			q.Types = nil
		}
		values := url.Values{
			"from": {strconv.FormatInt(q.From, 10)}, "to": {strconv.FormatInt(q.To, 10)},
			"type": {types[i%len(types)]},
		}
		checkSubject(t, e, values, oracle.Site(q), bounds)
		items := oracle.Top(q, windowstest.Views, 40)
		for range min(4, len(items)) {
			item := items[r.IntN(len(items))]
			values.Set("item", item.Item)
			checkSubject(t, e, values, item.Tally, bounds)
		}
		values.Del("item")
		checkRanking(t, e, values, oracle, q, 1+r.IntN(30))
	}
}

// randomRange returns some whole minutes: first all, then ever shorter ones.
func randomRange(r *rand.Rand, oracle *windowstest.Oracle, i int) (from, to int64) {
	from, to = oracle.Span()
	from, to = from/windows.MillisPerMinute, to/windows.MillisPerMinute+1
	if i > 0 {
		length := max(1, (to-from)>>r.IntN(14))
		from += r.Int64N(to - from - length + 1)
		to = from + length
	}
	return from * windows.MillisPerMinute, to * windows.MillisPerMinute
}

func ask[T queries.Reply](t *testing.T, e *queries.Engine, path string, values url.Values) T {
	t.Helper()
	reply, err := e.Ask(t.Context(), path, values, now)
	if err != nil {
		t.Fatalf("%s?%s: %v", path, values.Encode(), err)
	}
	return reply.(T)
}

func checkSubject(t *testing.T, e *queries.Engine, values url.Values, want windowstest.Tally, bounds *coverage) {
	t.Helper()
	typ := values.Get("type")
	what := values.Encode()
	a := ask[queries.Answers](t, e, "viewers", values)[0]
	if got := a.Counts[typ]; got != sketches.ExactNumber(want.Events) {
		t.Errorf("%s: %+v events, the truth is %d", what, got, want.Events)
	}
	bounds.add(t, what, *a.Viewers, want.Viewers)
	c := ask[queries.Answers](t, e, "counts", values)[0]
	if c.Viewers != nil || c.Counts[typ] != a.Counts[typ] {
		t.Errorf("%s: counts says %+v, viewers %+v", what, c, a)
	}
	if want.Events == 0 && a.Hint == "" {
		t.Errorf("%s: nothing, and no hint", what)
	}
}

func checkRanking(t *testing.T, e *queries.Engine, values url.Values, oracle *windowstest.Oracle, q windowstest.Question, limit int) {
	t.Helper()
	values = url.Values{"from": values["from"], "to": values["to"], "type": values["type"], "limit": {strconv.Itoa(limit)}}
	what := values.Encode()
	byViews := ask[*queries.TopAnswer](t, e, "top", values)
	want := oracle.Top(q, windowstest.Views, limit)
	if len(byViews.Items) != len(want) || !byViews.Certified {
		t.Fatalf("%s: %d items, certified: %v; the truth has %d", what, len(byViews.Items), byViews.Certified, len(want))
	}
	for i, p := range byViews.Items {
		if p.Rank != i+1 || p.Item != want[i].Item || p.Views != sketches.ExactNumber(want[i].Events) || !within(p.Viewers, want[i].Viewers) {
			t.Errorf("%s: place %d is %+v, the truth %+v", what, i+1, p, want[i])
		}
	}
	values.Set("by", "viewers")
	byViewers := ask[*queries.TopAnswer](t, e, "top", values)
	want = oracle.Top(q, windowstest.Viewers, limit)
	if len(byViewers.Items) != len(want) {
		t.Fatalf("%s by viewers: %d items, the truth has %d", what, len(byViewers.Items), len(want))
	}
	for i, p := range byViewers.Items {
		truth := oracle.Item(q, p.Item)
		if p.Views.Value != truth.Events || !within(p.Viewers, truth.Viewers) {
			t.Errorf("%s by viewers: %+v, the truth of it is %+v", what, p, truth)
		}
		if truth.Viewers <= sketches.MaxTokens/4 && want[0].Viewers <= sketches.MaxTokens/4 && p.Item != want[i].Item {
			t.Errorf("%s by viewers: place %d is %s with %d, the truth %s with %d", what, i+1, p.Item, p.Viewers.Value, want[i].Item, want[i].Viewers)
		}
	}
}

// within reports whether a number is right, or may be: a number of viewers lies
// outside its bounds in one of 20 questions, but never by much.
func within(n queries.Number, truth uint64) bool {
	if n.Method == sketches.MethodExact {
		return n == sketches.ExactNumber(truth)
	}
	return n.Low <= n.Value && n.Value <= n.High && near(n, truth)
}

// near is what no answer may be further off than: 3.5 %.
func near(n queries.Number, truth uint64) bool {
	return 1000*max(n.Value, truth) <= 1035*min(n.Value, truth)
}

// coverage counts how many bounds hold the truth.
type coverage struct{ asked, inside int }

func (c *coverage) add(t *testing.T, what string, n queries.Number, truth uint64) {
	t.Helper()
	if !within(n, truth) {
		t.Errorf("%s: %+v viewers, the truth is %d", what, n, truth)
	}
	if n.Method == sketches.MethodExact {
		return
	}
	c.asked++
	if n.Low <= truth && truth <= n.High {
		c.inside++
	}
}

func (c *coverage) check(t *testing.T) {
	t.Helper()
	if c.asked == 0 {
		t.Fatal("no question had bounds")
	}
	if 100*c.inside < 95*c.asked {
		t.Errorf("%d of %d answers with bounds hold the truth: less than 95 %%", c.inside, c.asked)
	}
	t.Logf("%d of %d answers with bounds hold the truth", c.inside, c.asked)
}
