package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// leveled is what an answer of viewers says, as far as levels change it.
type leveled struct {
	From, To time.Time
	Clipped  bool
	Viewers  number
	Counts   map[string]number
	Series   []struct {
		Start, End time.Time
		Viewers    number
		Counts     map[string]number
	}
	Values []struct {
		Value   string
		Viewers number
		Counts  map[string]number
	}
}

// levelExaminer asks a server that keeps little about a set in random ranges, steps,
// zones and breakdowns.
type levelExaminer struct {
	*examiner

	server *server
	floors map[int64]int64 // by the size of a level, ms: what is kept from when on
	kinds  map[string]int  // what came up
}

// kinds of a value that events are given: some have none.
var valuesOf = []string{"red", "green", "blue", ""}

// Each set is imported half by half, every other line, so that what comes second is
// late in periods that are rolled up already, and retention has taken some of them. Then
// whatever is asked is exact, or clipped and exact for what is left, or refused saying
// what is kept; and what is kept is neither clipped nor refused.
func TestEverySetByStepZoneAndAge(t *testing.T) {
	for i, set := range windowstest.Sets(t) {
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			e := importHalves(t, set.Events(t), uint64(i))
			n := 25
			if soak() {
				n = 2000
			}
			for range n {
				e.ranges(t)
				e.series(t)
				e.breakdown(t)
				if t.Failed() {
					break
				}
			}
			e.lifetime(t)
			e.verdict(t)
			t.Logf("%v", e.kinds)
		})
	}
}

// importHalves imports the events and serves them, with the default retention.
func importHalves(t *testing.T, events []windowstest.Event, seed uint64) *levelExaminer {
	t.Helper()
	var halves [2][]windowstest.Event
	for i, ev := range events {
		ev.Dims = []string{valuesOf[len(ev.User+ev.Item)%len(valuesOf)]}
		halves[i%2] = append(halves[i%2], ev)
	}
	o := windowstest.NewOracle(append(windowstest.WithoutDuplicates(halves[0]), windowstest.WithoutDuplicates(halves[1])...), "colour")
	data := newFolder(t)
	flags := []string{"--data", data.dir, "--hash-key-file", data.key, "--retention.minute=48h"}
	for i, half := range halves {
		file := writeEvents(t, fmt.Sprintf("half-%d.csv", i), half, "colour")
		// What is no event, and what is of the future, is booked when it came: years
		// later, and that is not the newest minute.
		appendTo(t, file, "soon,u,item,view,,,\n"+strconv.FormatInt(time.Now().Add(1000*time.Hour).UnixMilli(), 10)+",u,item,view,,,\n")
		out := parseOutcomes(t, tidemark(t, append([]string{"replay", "--json", "--dimensions=colour", viewTypes(o), file}, flags...)...))
		if out.Outcomes["malformed"] != 1 || out.Outcomes["future"] != 1 {
			t.Errorf("%v", out.Outcomes)
		}
	}
	server := serveWith(t, flags...)
	e := &levelExaminer{newExaminer(server, o, seed), server, map[int64]int64{}, map[string]int{}}
	var status struct {
		Retention []struct {
			Period string
			From   *time.Time
		}
	}
	server.ask(t, "/v1/status", nil, &status)
	sizes := map[string]int64{"minute": 1, "quarter hour": 15, "hour": 60, "day": 24 * 60}
	for _, r := range status.Retention {
		if size := sizes[r.Period] * windows.MillisPerMinute; size > 0 {
			e.floors[size] = 0
			if r.From != nil {
				e.floors[size] = r.From.UnixMilli()
			}
		}
	}
	if len(e.floors) != len(sizes) {
		t.Fatalf("the status says of retention %+v", status)
	}
	return e
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// subject picks the site, or an item.
func (e *levelExaminer) subject(query url.Values) func(windowstest.Question) windowstest.Tally {
	if e.random.IntN(3) == 0 {
		return e.oracle.Site
	}
	item := e.item()
	query.Set("item", item)
	return func(q windowstest.Question) windowstest.Tally { return e.oracle.Item(q, item) }
}

// ask asks for viewers of all types. Where it is refused, it says what is kept, and
// the answer is nil.
func (e *levelExaminer) ask(t *testing.T, query url.Values) *leveled {
	t.Helper()
	query.Set("type", "*")
	status, body := e.server.get(t, "/v1/viewers?"+query.Encode())
	switch status {
	case http.StatusOK:
		var a leveled
		decode(t, body, &a)
		e.kinds["answered"]++
		if a.Clipped {
			e.kinds["clipped"]++
		}
		return &a
	case http.StatusUnprocessableEntity:
		e.kinds["refused"]++
		var p struct{ Detail string }
		if err := json.Unmarshal([]byte(body), &p); err != nil || !strings.Contains(p.Detail, "kept") && !strings.Contains(p.Detail, "more than 10000 steps") {
			t.Errorf("%s: %s", query.Encode(), body)
		}
		return nil
	default:
		t.Fatalf("%s: %d %s", query.Encode(), status, body)
		return nil
	}
}

// check compares a number of events and of viewers with the truth.
func (e *levelExaminer) check(t *testing.T, what string, counts map[string]number, viewers number, truth windowstest.Tally) {
	t.Helper()
	if n := truth.Events; counts["*"] != (number{n, n, n, "exact"}) {
		t.Errorf("%s: %+v events, the truth is %d", what, counts["*"], n)
	}
	e.checkViewers(t, what, viewers, truth)
}

// ranges asks for ranges of whole periods of a level, at random ages.
func (e *levelExaminer) ranges(t *testing.T) {
	t.Helper()
	for size, floor := range e.floors {
		whole := func(ms int64) int64 { return ms / size * size }
		first, end := whole(e.from), whole(e.to-1)+size
		from := whole(first + e.random.Int64N(end-first))
		if e.random.IntN(2) == 0 { // of the newest two days
			from = whole(max(first, end-e.random.Int64N(48*time.Hour.Milliseconds())-size))
		}
		to := min(end, from+size*(1+e.random.Int64N(200)))
		query := url.Values{"from": {strconv.FormatInt(from, 10)}, "to": {strconv.FormatInt(to, 10)}}
		truth := e.subject(query)
		a := e.ask(t, query)
		kept := from >= floor
		if a == nil || a.Clipped {
			if kept {
				t.Errorf("%s: not answered whole, and kept are periods of %v from %v on", query.Encode(), time.Duration(size)*time.Millisecond, time.UnixMilli(floor).UTC())
			}
			if a == nil {
				continue
			}
		}
		if !a.Clipped && (a.From.UnixMilli() != from || a.To.UnixMilli() != to) {
			t.Errorf("%s: answered for %v to %v, and not clipped", query.Encode(), a.From, a.To)
		}
		e.check(t, query.Encode(), a.Counts, a.Viewers, truth(windowstest.Question{From: a.From.UnixMilli(), To: a.To.UnixMilli()}))
	}
}

// zones are some of a whole hour from Greenwich, and of three quarters, with clocks that
// go forward at one o'clock, at midnight, by half an hour, and a day that there never was.
var zones = []string{
	"", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe",
	"Africa/Cairo", "America/Sao_Paulo", "Pacific/Apia", "Pacific/Chatham",
}

// beginsStep reports whether an instant, in its zone, is one that a step begins at.
func beginsStep(at time.Time, step string) bool {
	before := at.Add(-time.Millisecond)
	switch step {
	case "minute", "hour":
		return at.UnixMilli()%windows.MillisPerMinute == 0 && (step == "minute" || before.Hour() != at.Hour() || at.Minute() == 0)
	case "week":
		return at.YearDay() != before.YearDay() && at.Weekday() == time.Monday
	case "month":
		return at.Month() != before.Month()
	default:
		return at.YearDay() != before.YearDay()
	}
}

// series asks for a series: its buckets follow on from each other, each begins where
// the step does in the zone, and says what the truth is.
func (e *levelExaminer) series(t *testing.T) {
	t.Helper()
	step := []string{"minute", "hour", "day", "week", "month"}[e.random.IntN(5)]
	zone := zones[e.random.IntN(len(zones))]
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	from := e.minutes[e.random.IntN(len(e.minutes))]
	spans := map[string]time.Duration{"minute": 2 * time.Hour, "hour": 60 * time.Hour, "day": 40 * 24 * time.Hour, "week": 200 * 24 * time.Hour, "month": 500 * 24 * time.Hour}
	if e.random.IntN(2) == 0 {
		from = e.to - e.random.Int64N(spans[step].Milliseconds())
	}
	to := from + 1 + e.random.Int64N(spans[step].Milliseconds())
	query := url.Values{"step": {step}, "from": {strconv.FormatInt(max(from, 0), 10)}, "to": {strconv.FormatInt(to, 10)}}
	if zone != "" {
		query.Set("tz", zone)
	}
	truth := e.subject(query)
	a := e.ask(t, query)
	if a == nil {
		return
	}
	what := query.Encode()
	e.kinds[step]++
	at := a.From
	var sum uint64
	for i, b := range a.Series {
		begins := i == 0 && a.Clipped || beginsStep(b.Start.In(loc), step) // what is left of a step is told
		if !b.Start.Equal(at) || !b.End.After(b.Start) || !begins || !beginsStep(b.End.In(loc), step) {
			t.Fatalf("%s: a bucket from %v to %v after %v", what, b.Start, b.End, at)
		}
		at = b.End
		e.check(t, what+" from "+b.Start.String(), b.Counts, b.Viewers, truth(windowstest.Question{From: b.Start.UnixMilli(), To: b.End.UnixMilli()}))
		sum += b.Counts["*"].Value
	}
	if !at.Equal(a.To) || sum != a.Counts["*"].Value {
		t.Errorf("%s: %d events up to %v, the buckets have %d up to %v", what, a.Counts["*"].Value, a.To, sum, at)
	}
	if !a.Clipped && (a.From.UnixMilli() > from || a.To.UnixMilli() < to) {
		t.Errorf("%s: from %v to %v, and not clipped", what, a.From, a.To)
	}
	e.check(t, what, a.Counts, a.Viewers, truth(windowstest.Question{From: a.From.UnixMilli(), To: a.To.UnixMilli()}))
}

// breakdown asks for every value of a dimension: of all time, or of some days.
func (e *levelExaminer) breakdown(t *testing.T) {
	t.Helper()
	query := url.Values{"dimension": {"colour"}}
	if e.random.IntN(2) == 0 {
		const day = 24 * 60 * windows.MillisPerMinute
		from := e.minutes[e.random.IntN(len(e.minutes))] / day * day
		query.Set("from", strconv.FormatInt(from, 10))
		query.Set("to", strconv.FormatInt(from+day*(1+e.random.Int64N(60)), 10))
	}
	truth := e.subject(query)
	a := e.ask(t, query)
	if a == nil {
		t.Errorf("%s: whole days are kept, and refused", query.Encode())
		return
	}
	for _, v := range valuesOf[:len(valuesOf)-1] {
		q := windowstest.Question{From: a.From.UnixMilli(), To: a.To.UnixMilli(), Dimension: "colour", Value: v}
		at := slices.IndexFunc(a.Values, func(got struct {
			Value   string
			Viewers number
			Counts  map[string]number
		},
		) bool {
			return got.Value == v
		})
		if want := truth(q); at >= 0 {
			e.check(t, query.Encode()+" "+v, a.Values[at].Counts, a.Values[at].Viewers, want)
		} else if want.Events > 0 {
			t.Errorf("%s: nothing of %s, the truth is %+v", query.Encode(), v, want)
		}
	}
}

// lifetime asks for all there ever was: retention takes nothing of it.
func (e *levelExaminer) lifetime(t *testing.T) {
	t.Helper()
	all := windowstest.Question{From: e.from, To: e.to}
	a := e.ask(t, url.Values{"last": {"all"}})
	if a.Clipped || a.From.UnixMilli() > e.from || a.To.UnixMilli() < e.to || a.To.UnixMilli() > e.to+24*time.Hour.Milliseconds() {
		t.Errorf("all there ever was is from %v to %v, clipped: %t", a.From, a.To, a.Clipped)
	}
	e.check(t, "all", a.Counts, a.Viewers, e.oracle.Site(all))
	for range 5 {
		item := e.item()
		a := e.ask(t, url.Values{"item": {item}})
		e.check(t, item, a.Counts, a.Viewers, e.oracle.Item(all, item))
	}
}
