package windows

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheLatestTextOfAnItemWins(t *testing.T) {
	p, h := testPartition(100, nil)
	say := func(offset, at int64, item, title, url string) Event {
		ev := Event{Offset: offset, Time: at, Item: []byte(item), Type: viewType, ItemHash: h.Item([]byte(item)), Info: &Info{}}
		if title != "" {
			ev.Info.Title = []byte(title)
		}
		if url != "" {
			ev.Info.URL = []byte(url)
		}
		return ev
	}
	add := func(events ...Event) {
		if err := p.Add(events, func(Pair) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	add(say(0, 10, "a", "old", ""), say(1, 30, "a", "new", "u"), say(2, 20, "a", "between", ""), say(3, 30, "b", "x", ""), say(4, 30, "b", "y", ""))
	got := p.Cut(Pair{F: 1, S: 5}).Items
	want := []ItemInfo{
		{Item: "a", Title: Text{30, "new"}, URL: Text{30, "u"}},
		{Item: "b", Title: Text{30, "y"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	add(say(5, 40, "a", "new", "u"), say(6, 35, "a", "late", ""))
	if got := p.Cut(Pair{F: 1, S: 7}).Items; len(got) != 0 {
		t.Errorf("sealed again: %+v; nothing has changed", got)
	}
	add(say(7, 50, "a", "newest", ""))
	if diff := cmp.Diff([]ItemInfo{{Item: "a", Title: Text{50, "newest"}}}, p.Cut(Pair{F: 1, S: 8}).Items); diff != "" {
		t.Error(diff)
	}
}

func TestInfosMergeInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var infos []ItemInfo
	for range 50 {
		infos = append(infos, ItemInfo{Title: Text{r.Int64N(5), string(rune('a' + r.IntN(5)))}, URL: Text{r.Int64N(5), "u"}})
	}
	var want ItemInfo
	for _, i := range infos {
		want.Merge(i)
	}
	for range 20 {
		r.Shuffle(len(infos), func(a, b int) { infos[a], infos[b] = infos[b], infos[a] })
		var got ItemInfo
		for _, i := range infos {
			got.Merge(i)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestEventsThatDoNotCountAreKeptByItem(t *testing.T) {
	p, h := testPartition(100, nil)
	ev := Event{Time: Minute(5).UnixMilli(), Item: []byte("a"), Type: viewType, ItemHash: h.Item([]byte("a")), Outcome: Duplicate}
	if err := p.Add([]Event{ev}, func(Pair) error { return nil }); err != nil {
		t.Fatal(err)
	}
	c := p.Cut(Pair{F: 6, S: 1}).Partials[0]
	row, ok := c.Find(Series{Type: "view", Dimension: OutcomeDimension, Value: "duplicate"}, Item, ev.ItemHash)
	if !ok || row.Events != 1 {
		t.Errorf("duplicates of a: %+v, %v", row, ok)
	}
	if row, ok := c.Find(Series{Type: "view"}, Site, ev.ItemHash); ok {
		t.Errorf("views of the site: %+v, want none", row)
	}
}
