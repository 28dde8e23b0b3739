package queries_test

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// TestTextsStandBesideTheirItem asks for items of which the events said something.
func TestTextsStandBesideTheirItem(t *testing.T) {
	hasher := sketches.NewHasher(queriestest.Key)
	store := queriestest.NewStore(hasher)
	p := windows.NewPartition(windows.PartitionConfig{
		Hasher: hasher, Limits: queriestest.Plenty, History: true, Memory: 1 << 30,
		Judge: &windowstest.Judge{Generation: 1 << 40, MaxLateness: -1}, Look: func(int64) int64 { return 0 },
	})
	event := func(offset int64, item string, info *windows.Info) windows.Event {
		at := streamStart.UnixMilli() + offset
		return windows.Event{
			Offset: offset, Stamp: at, Time: at, Item: []byte(item), ItemHash: hasher.Item([]byte(item)), Type: []byte("view"), Info: info,
		}
	}
	events := []windows.Event{
		event(0, "a", &windows.Info{Title: []byte("old"), URL: []byte("https://example.com/a")}),
		event(1, "a", &windows.Info{Title: []byte("A title, \"quoted\"")}),
		event(2, "b", nil),
	}
	if err := p.Add(events, func(windows.Pair) error { return nil }); err != nil {
		t.Fatal(err)
	}
	to, _ := p.End(3)
	if err := store.Apply(p.Cut(to)); err != nil {
		t.Fatal(err)
	}
	e := queries.New(queries.Config{Snapshot: store.Snapshot, Hasher: hasher, ViewTypes: []string{"view"}})

	want := queries.Texts{Title: "A title, \"quoted\"", URL: "https://example.com/a"}
	if got := ask[queries.Answers](t, e, "viewers", url.Values{"item": {"a", "b"}}); got[0].Texts != want || got[1].Texts != (queries.Texts{}) {
		t.Errorf("viewers: %+v", got)
	}
	if got := ask[*queries.TopAnswer](t, e, "top", nil); got.Items[0].Texts != want || got.Items[1].Texts != (queries.Texts{}) {
		t.Errorf("top: %+v", got)
	}
	got := ask[*queries.ItemsAnswer](t, e, "items", nil)
	if diff := cmp.Diff([]queries.KnownItem{{Item: "a", Texts: want}, {Item: "b"}}, got.Items); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"a", want.Title, want.URL, ""}, {"b", "", "", ""}}, got.Table().Rows); diff != "" {
		t.Error(diff)
	}
}
