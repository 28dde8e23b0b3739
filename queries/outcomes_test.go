package queries_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/windows/windowstest"
)

// TestOutcomesSumToTheRecords holds what became of all records, and of those of an
// item, against the log.
func TestOutcomesSumToTheRecords(t *testing.T) {
	events := hard.Stream()
	events = append(events, windowstest.Event{Time: 2_000_000_000_000, Item: "a", Type: "view", User: "u"}) // after its record's timestamp
	duplicates, ofA := 0, map[string]int{}
	seen := make(map[string]bool)
	for _, e := range events {
		outcome := "counted"
		switch {
		case e.Time == 2_000_000_000_000:
			outcome = "future"
		case e.ID != "" && seen[e.ID]:
			outcome = "duplicate"
			duplicates++
		}
		seen[e.ID] = true
		if e.Item == "a" {
			ofA[outcome]++
		}
	}
	for name, s := range setups {
		e := s.Engine(t, events)
		all := ask[queries.OutcomesAnswers](t, e, "outcomes", url.Values{"to": {"2100-01-01"}})[0] // the one of the future is booked when it came, after now
		var sum, counted uint64
		got := map[string]uint64{}
		for _, o := range all.Outcomes {
			sum += o.Records.Value
			got[o.Outcome] += o.Records.Value
			if o.Outcome == "counted" || o.Outcome == "late" {
				counted += o.Records.Value
			}
		}
		if sum != uint64(len(events)) || all.Records.Value != sum || all.Counted.Value != counted {
			t.Errorf("%s: %+v sum to %d, there were %d records", name, all, sum, len(events))
		}
		if got["duplicate"] != uint64(duplicates) || got["future"] != 1 {
			t.Errorf("%s: %v, there were %d duplicates and one of the future", name, got, duplicates)
		}
		answers := ask[queries.OutcomesAnswers](t, e, "outcomes", url.Values{"item": {"a", "never seen"}, "to": {"2100-01-01"}})
		have := map[string]int{}
		for _, o := range answers[0].Outcomes {
			have[o.Outcome] = int(o.Records.Value)
		}
		if diff := cmp.Diff(ofA, have); diff != "" {
			t.Errorf("%s: outcomes of a: %s", name, diff)
		}
		if answers[1].Item != "never seen" || len(answers[1].Outcomes) != 0 || answers[1].Records.Value != 0 {
			t.Errorf("%s: %+v of an item never seen", name, answers[1])
		}
	}
}

func TestItemsByPrefix(t *testing.T) {
	var events []windowstest.Event
	for i := range 300 {
		events = append(events, windowstest.Event{Time: streamStart.UnixMilli() + int64(i)*60_000, Item: fmt.Sprintf("vid-%03d", i), Type: "view", User: "u"})
	}
	events = append(events, windowstest.Event{Time: streamStart.UnixMilli(), Item: "other", Type: "view", User: "u"})
	for _, s := range []queriestest.Setup{{}, {Live: true}, {Live: true, Memory: 1 << 18}} {
		e := s.Engine(t, events)
		a := ask[*queries.ItemsAnswer](t, e, "items", url.Values{"prefix": {"vid-1"}, "limit": {"3"}})
		want := &queries.ItemsAnswer{Prefix: "vid-1", More: true, Items: []queries.KnownItem{{Item: "vid-100"}, {Item: "vid-101"}, {Item: "vid-102"}}}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Error(diff)
		}
		if a := ask[*queries.ItemsAnswer](t, e, "items", url.Values{"limit": {"301"}}); len(a.Items) != 301 || a.More || a.Items[0].Item != "other" {
			t.Errorf("%d items, more: %v", len(a.Items), a.More)
		}
		if a := ask[*queries.ItemsAnswer](t, e, "items", url.Values{"prefix": {"nothing"}}); len(a.Items) != 0 || a.More {
			t.Errorf("%+v", a)
		}
	}
}

func TestStatus(t *testing.T) {
	events := hard.Stream()
	finished := ask[*queries.StatusAnswer](t, queriestest.Setup{Dimensions: hardDimensions}.Engine(t, events), "status", nil)
	if l := finished.Logs; len(l) != 1 || !l[0].Done || l[0].Reading || l[0].Partitions != nil || finished.Kept == nil {
		t.Errorf("finished: %+v", finished)
	}
	if diff := cmp.Diff([]string{`"(other)"`, `"*"`, "like", "view"}, finished.Types); diff != "" {
		t.Error(diff)
	}
	live := ask[*queries.StatusAnswer](t, queriestest.Setup{Live: true, Partitions: 2}.Engine(t, events), "status", nil)
	if l := live.Logs; len(l) != 1 || l[0].Done || !l[0].Reading || len(l[0].Partitions) != 2 || l[0].Partitions[1].OpenWindows == 0 {
		t.Errorf("live: %+v", live)
	}
	empty := ask[*queries.StatusAnswer](t, queriestest.Setup{}.Engine(t, nil), "status", nil)
	if empty.Kept != nil || len(empty.Types) != 0 {
		t.Errorf("empty: %+v", empty)
	}
}

// TestHints says what surprises, and nothing else.
func TestHints(t *testing.T) {
	events := windowstest.WithoutDuplicates(hard.Stream())
	stored := setups["one partition"].Engine(t, events)
	broken := queriestest.Setup{BrokenOff: true}.Engine(t, events)
	importing := queriestest.Setup{Live: true}.Engine(t, events)
	empty := queriestest.Setup{}.Engine(t, nil)
	for _, c := range []struct {
		e           *queries.Engine
		path, query string
		want        string
	}{
		{stored, "viewers", "", ""},
		{stored, "viewers", "item=a", ""},
		{stored, "viewers", "type=sale", `no sale in this range; types here: view (12,102), like (4,363), "(other)" (1,578), "*" (950)`},
		{stored, "viewers", "type=sale&type=gift&item=a", `no sale or gift of this item in this range; types here: view (1,050), like (402), "(other)" (146), "*" (99)`},
		{stored, "viewers", "item=never", `no view of this item in this range`},
		{stored, "viewers", "item=never&item=nowhere&together=true&type=*", `no event of these items in this range`},
		{stored, "counts", "last=5m", "no event in this range; there are events from 2026-03-27T16:10:00Z to 2026-03-29T04:00:00Z"},
		{stored, "top", "last=5m", "no event in this range; there are events from 2026-03-27T16:10:00Z to 2026-03-29T04:00:00Z"},
		{stored, "top", "type=sale", `no sale in this range; types here: view (12,102), like (4,363), "(other)" (1,578), "*" (950)`},
		{broken, "top", "", "the import of events.csv was not finished; the same replay again goes on with it"},
		{importing, "counts", "", "an import of history is under way"},
		{empty, "counts", "", "there is no event yet"},
		{empty, "top", "", "there is no event yet"},
	} {
		values, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := c.e.Ask(t.Context(), c.path, values, now)
		if err != nil {
			t.Errorf("%s?%s: %v", c.path, c.query, err)
			continue
		}
		b, err := json.Marshal(reply)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Hint     string `json:"hint"`
			Complete bool   `json:"complete"`
		}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if got.Hint != c.want || got.Complete != (c.e == stored || c.e == empty) {
			t.Errorf("%s?%s: complete %v, hint %q, want %q", c.path, c.query, got.Complete, got.Hint, c.want)
		}
	}
}
