package queries_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/windows/store"
	"tidemark/windows/windowstest"
)

// risingAt is the instant that the tests of rising ask at; the week before it has events
// from a day before on.
var risingAt = time.Date(2026, 1, 15, 12, 7, 20, 0, time.UTC)

// risingEvents are of items whose rates differ between last week, the last hour and the
// last minutes, some of few users.
func risingEvents() []windowstest.Event {
	r := rand.New(rand.NewPCG(5, 8))
	events := []windowstest.Event{{Time: risingAt.Add(-8 * 24 * time.Hour).UnixMilli(), Item: "first", Type: "view", Dims: []string{"DE"}}}
	add := func(item string, users, n int, from time.Time, span time.Duration) {
		for range n {
			typ, country := "view", "DE"
			if r.IntN(10) == 0 {
				typ = "like"
			}
			if r.IntN(3) == 0 {
				country = "AT"
			}
			events = append(events, windowstest.Event{
				Time: from.Add(rand.N(span)).UnixMilli(), Item: item, Type: typ, User: fmt.Sprint(item, " ", r.IntN(users)), Dims: []string{country},
			})
		}
	}
	rates := []int{0, 0, 1, 4, 15, 60}
	for i := range 50 {
		item, users := fmt.Sprintf("item-%d", i), 5000
		if i%9 == 0 {
			users = 3 // a robot
		}
		add(item, users, 65*rates[r.IntN(len(rates))], risingAt.Add(-7*24*time.Hour-10*time.Minute), 65*time.Minute)
		add(item, users, 60*rates[r.IntN(len(rates))], risingAt.Add(-70*time.Minute), 62*time.Minute)
		add(item, users, 5*rates[r.IntN(len(rates))], risingAt.Add(-5*time.Minute-20*time.Second), 5*time.Minute+20*time.Second)
	}
	for _, item := range []string{"twin-b", "twin-a", "Twin-a"} { // equal in everything but the name
		for i := range 40 {
			events = append(events, windowstest.Event{Time: risingAt.Add(-time.Minute).UnixMilli(), Item: item, Type: "view", User: fmt.Sprint(i), Dims: []string{"DE"}})
		}
	}
	slices.SortStableFunc(events, func(a, b windowstest.Event) int { return cmp.Compare(a.Time, b.Time) })
	return events
}

type risen struct {
	Name            string
	Score, Expected float64
	Views           uint64
}

// rise works it out from the events, the slow way.
func rise(events []windowstest.Event, from, until, known time.Time, types []string, name func(windowstest.Event) string) (all []risen) {
	minute := func(t time.Time) int64 { return t.UnixMilli() }
	type counted struct {
		window, hour, week float64
		users              map[string]bool
	}
	items := make(map[string]*counted)
	hourFrom := from.Add(-time.Hour)
	if hourFrom.Before(known) {
		hourFrom = known
	}
	weekFrom := from.Truncate(15 * time.Minute).Add(-7 * 24 * time.Hour)
	weekTo := until.Add(15*time.Minute - 1).Truncate(15 * time.Minute).Add(-7 * 24 * time.Hour)
	if weekTo.Sub(weekFrom) < time.Hour {
		weekTo = weekFrom.Add(time.Hour)
	}
	for _, e := range events {
		n := name(e)
		if n == "" || !slices.Contains(types, e.Type) {
			continue
		}
		c := items[n]
		if c == nil {
			c = &counted{users: make(map[string]bool)}
			items[n] = c
		}
		in := func(a, b time.Time) bool { return minute(a) <= e.Time && e.Time < minute(b) }
		switch {
		case in(from, until.Add(time.Minute-1).Truncate(time.Minute)):
			c.window++
			c.users[e.User] = true
		case in(hourFrom, from):
			c.hour++
		case in(weekFrom, weekTo):
			c.week++
		}
	}
	w, h := until.Sub(from).Minutes(), from.Sub(hourFrom).Minutes()
	weekKnown := !weekFrom.Before(known)
	for n, c := range items {
		rate, baseline := c.hour/h, h
		if weekKnown && c.week > 0 {
			l := weekTo.Sub(weekFrom).Minutes()
			rate, baseline = (rate+c.week/l)/2, 4/(1/h+1/l)
		}
		e := math.Max(1, rate*w)
		score := 2 * (math.Sqrt(c.window+0.375) - math.Sqrt(e+0.375)) / math.Sqrt(1+w/baseline)
		score = math.Round(score*1e4) / 1e4
		if score >= 5 && len(c.users)*10 >= int(c.window) {
			all = append(all, risen{n, score, math.Round(e*1e4) / 1e4, uint64(c.window)})
		}
	}
	slices.SortFunc(all, func(a, b risen) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Views, a.Views), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func askRising(t *testing.T, e *queries.Engine, query string) (*queries.TopAnswer, []risen) {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := e.Ask(t.Context(), "top", values, now)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	a := reply.(*queries.TopAnswer)
	var got []risen
	for i, x := range a.Items {
		name := x.Item
		if x.Value != nil {
			name = *x.Value
		}
		if x.Rank != i+1 || x.Score == nil || x.Expected == nil || x.Expected.Low > x.Expected.Value || x.Viewers.Method == "" {
			t.Errorf("%s: %+v", query, x)
			continue
		}
		got = append(got, risen{name, *x.Score, x.Expected.Value, x.Views.Value})
	}
	return a, got
}

// TestRisingIsExact holds rankings by what rises against the formula, worked out from
// the events, for every way that they can be stored.
func TestRisingIsExact(t *testing.T) {
	events := risingEvents()
	ways := map[string]queriestest.Setup{
		"on disk":                      {Store: newOnDisk(t, store.Retention{}, 0)},
		"on disk, some of it open":     {Store: newOnDisk(t, store.Retention{}, 3), Partitions: 3, Memory: 2 << 20, Live: true},
		"minutes gone after two days":  {Store: newOnDisk(t, store.Retention{Minute: 48 * time.Hour, Quarter: 35 * 24 * time.Hour}, 0), Partitions: 2},
		"watermark within the minute":  {Live: true, Watermark: risingAt.Add(10 * time.Second).UnixMilli(), Partitions: 2},
		"watermark before the instant": {Live: true, Watermark: risingAt.Add(-10 * time.Second).UnixMilli(), Memory: 2 << 20},
	}
	maps.Copy(ways, setups)
	known := risingAt.Add(-8 * 24 * time.Hour).Truncate(time.Minute).Add(time.Minute)
	item := func(e windowstest.Event) string { return e.Item }
	in := func(country string) func(windowstest.Event) string {
		return func(e windowstest.Event) string {
			if e.Dims[0] != country {
				return ""
			}
			return e.Item
		}
	}
	for way, s := range ways {
		t.Run(way, func(t *testing.T) {
			s.Dimensions = []string{"country"}
			e := s.Engine(t, events)
			whole := risingAt.Truncate(time.Minute).Add(time.Minute)
			until := whole
			if s.Watermark > 0 {
				until = time.UnixMilli(max(s.Watermark, risingAt.UnixMilli()))
			}
			for _, last := range []time.Duration{time.Minute, 5 * time.Minute, time.Hour, 6 * time.Hour} {
				from := risingAt.Truncate(time.Minute).Add(-last)
				base := fmt.Sprintf("by=rising&limit=1000&last=%dm&at=%s", int(last.Minutes()), risingAt.Format(time.RFC3339))
				for query, want := range map[string][]risen{
					base:                                 rise(events, from, until, known, []string{"view"}, item),
					base + "&type=*":                     rise(events, from, until, known, []string{"view", "like"}, item),
					base + "&dimension=country&value=AT": rise(events, from, until, known, []string{"view"}, in("AT")),
					base + "&dimension=country":          rise(events, from, until, known, []string{"view"}, func(e windowstest.Event) string { return e.Dims[0] }),
				} {
					for range 2 { // the second time from what is remembered
						a, got := askRising(t, e, query)
						if diff := gocmp.Diff(want, got); diff != "" {
							t.Errorf("%s: -want +got\n%s", query, diff)
						}
						if !a.Certified || len(a.Baseline) != 2 {
							t.Errorf("%s: %+v", query, a)
						}
					}
				}
				want := rise(events, from, until, known, []string{"view"}, item)
				if _, got := askRising(t, e, strings.Replace(base, "1000", "2", 1)); len(want) < 3 || gocmp.Diff(want[:2], got) != "" {
					t.Errorf("the first two of %v: %v", want, got)
				}
			}
		})
	}
}

// TestRisingWhereLittleIsKnown has no week, no hour, and nothing at all.
func TestRisingWhereLittleIsKnown(t *testing.T) {
	var events []windowstest.Event
	add := func(from time.Time, minutes, rate int) {
		for i := range minutes * rate {
			events = append(events, windowstest.Event{Time: from.Add(time.Duration(i) * time.Minute / time.Duration(rate)).UnixMilli(), Item: "a", Type: "view", User: fmt.Sprint(i)})
		}
	}
	begin := risingAt.Truncate(time.Minute)
	add(begin, 20, 30)
	add(begin.Add(20*time.Minute), 5, 120)
	e := queriestest.Setup{}.Engine(t, events)
	for minutes, want := range map[int]bool{
		1:  false, // nothing to compare with
		15: false, // as it was
		24: true,
	} {
		at := begin.Add(time.Duration(minutes) * time.Minute)
		a, got := askRising(t, e, "by=rising&last=1m&at="+at.Format(time.RFC3339))
		if (len(got) == 1) != want || want != (a.Hint == "") {
			t.Errorf("after %d minutes: %+v, %+v", minutes, a, got)
		}
		from := at.Add(-time.Minute)
		if wants := rise(events, from, at, begin.Add(time.Minute), []string{"view"}, func(e windowstest.Event) string { return e.Item }); want && gocmp.Diff(wants, got) != "" {
			t.Error(gocmp.Diff(wants, got))
		}
	}
	if a, got := askRising(t, queriestest.Setup{}.Engine(t, events[:1]), "by=rising&last=5m"); len(got) > 0 || a.Hint == "" {
		t.Errorf("of nothing: %+v", a)
	}
	for _, wrong := range []string{"by=rising", "by=rising&last=7h", "by=rising&last=all", "by=rising&from=2026-01-01", "by=rising&last=5m&viewers=false"} {
		values, _ := url.ParseQuery(wrong)
		if _, err := e.Ask(t.Context(), "top", values, now); err == nil {
			t.Errorf("%s was answered", wrong)
		}
	}
}

// TestRisingWithoutUsers lists what nobody is known to have seen: the robots' gate is
// for those who are known.
func TestRisingWithoutUsers(t *testing.T) {
	events := risingEvents()
	for i := range events {
		events[i].User = ""
	}
	e := queriestest.Setup{}.Engine(t, events)
	if _, got := askRising(t, e, "by=rising&last=5m&at="+risingAt.Format(time.RFC3339)); len(got) == 0 {
		t.Error("nothing rises")
	}
}

// TestWhatRoseReally asks about the real sets what docs/trending.md says of them.
func TestWhatRoseReally(t *testing.T) {
	type asked struct{ set, at, last string }
	for q, want := range map[asked][]risen{
		{"gharchive-2015-02-22", "2015-02-22T23:58:00Z", "60m"}:    {{"u_088a6696a6/swc-collaborate", 8.279, 1, 49}, {"u_795f78995b/ECE-586-PDP-8", 6.1359, 1, 30}},
		{"usagov-bitly-2012-03-16", "2012-03-16T19:01:00Z", "10m"}: nil,
		{"usagov-bitly-2012-03-16", "2012-03-16T19:11:00Z", "10m"}: {{"hWO2vB", 10.5618, 1, 58}},
		{"usagov-bitly-2012-03-16", "2012-03-16T19:21:00Z", "10m"}: nil,
		{"usagov-bitly-2012-03-16", "2012-03-16T19:31:00Z", "10m"}: {{"wQacbF", 5.6155, 2.5, 23}},
	} {
		for _, set := range windowstest.Sets(t) {
			if set.Name != q.set {
				continue
			}
			e := queriestest.Setup{}.Engine(t, windowstest.WithoutDuplicates(set.Events(t)))
			if _, got := askRising(t, e, "by=rising&type=*&last="+q.last+"&at="+q.at); gocmp.Diff(want, got) != "" {
				t.Errorf("%+v: %s", q, gocmp.Diff(want, got))
			}
		}
	}
}
