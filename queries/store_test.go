package queries_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/queries"
	"tidemark/queries/queriestest"
	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/store"
	"tidemark/windows/windowstest"
)

// onDisk is the store on disk as a Backing.
type onDisk struct {
	*store.Store
	maintainEach int // seals; 0: at the end alone
	seals        int
}

// newOnDisk returns what makes one. Every so many seals it is maintained, as if
// the log had come far enough for all of it to be rolled up: so whatever comes
// afterwards is late at every level.
func newOnDisk(tb testing.TB, keep store.Retention, maintainEach int) func(queriestest.Setup, sketches.Hasher) queriestest.Backing {
	tb.Helper()
	return openOnDisk(tb, tb.TempDir()+"/store", keep, maintainEach)
}

func openOnDisk(tb testing.TB, dir string, keep store.Retention, maintainEach int) func(queriestest.Setup, sketches.Hasher) queriestest.Backing {
	tb.Helper()
	return func(s queriestest.Setup, h sketches.Hasher) queriestest.Backing {
		st, err := store.Open(store.Options{
			Dir: dir, Create: true, KeyID: h.KeyID(), Partitions: s.Partitions, Keep: keep,
			ViewTypes: s.ViewTypes, Dimensions: s.Dimensions, Logger: slog.New(slog.DiscardHandler), CacheBytes: 1 << 30,
		})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := st.Close(); err != nil {
				tb.Error(err)
			}
		})
		return &onDisk{Store: st, maintainEach: maintainEach}
	}
}

func (d *onDisk) Begin(id windows.LogID, name string, e []uint64) error {
	_, err := d.Store.Begin(store.Log{ID: id, Names: []string{name}, Started: now.UnixMilli(), E: e})
	return err
}

func (d *onDisk) Apply(s *windows.Seal) error {
	if err := d.Store.Apply(s); err != nil {
		return err
	}
	if d.seals++; d.maintainEach > 0 && d.seals%d.maintainEach == 0 {
		return d.Maintain(context.Background(), windows.MaxMinute)
	}
	return nil
}

func (d *onDisk) Finish(id windows.LogID) error {
	return errors.Join(d.Store.Finish(id), d.Maintain(context.Background(), windows.MaxMinute))
}

func (d *onDisk) Snapshot() (queries.Snapshot, error) {
	n, err := d.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	return onDiskSnapshot{n}, nil
}

type onDiskSnapshot struct{ *store.Snapshot }

func (s onDiskSnapshot) Logs() (logs []queries.Log) {
	for _, l := range s.Snapshot.Logs() {
		logs = append(logs, queries.Log{ID: l.ID, Names: l.Names, Done: l.Done, Files: true})
	}
	return logs
}

// TestLevelsChangeNothing asks the same of plain minutes in memory and of a store
// that has rolled them up, before, while and after late events came (Q3).
func TestLevelsChangeNothing(t *testing.T) {
	shape := hard
	shape.Span, shape.LateBy = 60*24*time.Hour, 40*24*time.Hour // over months, and a change of clocks
	events := shape.Stream()
	questions := append([]string{
		"viewers?step=day&tz=Europe/Berlin", "viewers?step=hour&from=2026-03-28&to=2026-03-31&tz=Asia/Kolkata&type=*", "viewers?step=month&item=a",
		"viewers?from=2026-03-28T22:07:00Z&to=2026-05-01T03:11:00Z&item=a", "viewers?last=30d&at=2026-05-20T12:34:00Z&item=A&type=*",
		"top?from=2026-03-28T22:07:00Z&to=2026-05-01T03:11:00Z&limit=50", "top?by=viewers&last=30d&at=2026-05-20T12:34:00Z", "outcomes?item=a&to=2100-01-01",
	}, manyQuestions...)
	plain := queriestest.Setup{Dimensions: hardDimensions}
	want := answersTo(t, plain.Engine(t, events), questions)
	for name, s := range map[string]queriestest.Setup{
		"at the end":             {Store: newOnDisk(t, store.Retention{}, 0)},
		"after every seal":       {Store: newOnDisk(t, store.Retention{}, 1), Partitions: 2, Memory: 4 << 20},
		"now and then, and open": {Store: newOnDisk(t, store.Retention{}, 3), Partitions: 3, Memory: 8 << 20, Live: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.Dimensions = hardDimensions
			if diff := cmp.Diff(want, answersTo(t, s.Engine(t, events), questions)); diff != "" {
				t.Errorf("other answers than from minutes:\n%s", diff)
			}
		})
	}
}

// TestRetentionNeverGivesAWrongNumber asks for ranges all over a store that keeps
// little: the answer is right, or clipped to what is kept and right for that, or a
// refusal that says what is kept.
func TestRetentionNeverGivesAWrongNumber(t *testing.T) {
	shape := hard
	shape.Span, shape.LateBy, shape.Events = 60*24*time.Hour, 10*24*time.Hour, 10_000
	events := windowstest.WithoutDuplicates(shape.Stream())
	oracle := windowstest.NewOracle(events)
	first, end := oracle.Span()
	keep := store.Retention{Minute: 48 * time.Hour, Quarter: 5 * 24 * time.Hour, Hour: 10 * 24 * time.Hour, Day: 30 * 24 * time.Hour}
	s := queriestest.Setup{Store: newOnDisk(t, keep, 0), Partitions: 2}
	e := s.Engine(t, events)
	const minute, hour, day = int64(60_000), int64(3_600_000), int64(86_400_000)
	kinds := map[string]int{}
	for _, size := range []int64{minute, 15 * minute, hour, day} {
		for age := int64(1); age < 70; age++ {
			from := (end - age*day) / size * size
			to := from + 20*size
			values := url.Values{"from": {strconv.FormatInt(from, 10)}, "to": {strconv.FormatInt(to, 10)}}
			for _, path := range []string{"viewers", "top"} {
				reply, err := e.Ask(t.Context(), path, values, now)
				if fault, ok := errors.AsType[*queries.Fault](err); ok {
					kinds["refused"]++
					if !fault.Refused || fault.Parameter != "from" || !strings.Contains(fault.Detail, "kept") {
						t.Errorf("%s, %s: %v", path, values.Encode(), err)
					}
					if size == day && age < 10 {
						t.Errorf("%s, %s: days are kept, and it says %v", path, values.Encode(), err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s, %s: %v", path, values.Encode(), err)
				}
				switch a := reply.(type) {
				case queries.Answers:
					kinds["answered"]++
					if a[0].Clipped {
						kinds["clipped"]++
					}
					want := oracle.Site(windowstest.Question{From: a[0].From.UnixMilli(), To: a[0].To.UnixMilli(), Types: []string{"view"}})
					if a[0].Counts["view"] != sketches.ExactNumber(want.Events) || !within(*a[0].Viewers, want.Viewers) {
						t.Errorf("%s: %+v, the truth is %+v", values.Encode(), a[0], want)
					}
					if !a[0].Clipped && (a[0].From.UnixMilli() != from || a[0].To.UnixMilli() != to) {
						t.Errorf("%s: answered for %v to %v, and not clipped", values.Encode(), a[0].From, a[0].To)
					}
				case *queries.TopAnswer:
					want := oracle.Top(windowstest.Question{From: a.From.UnixMilli(), To: a.To.UnixMilli(), Types: []string{"view"}}, windowstest.Views, 10)
					for i, w := range want {
						if got := a.Items[i]; got.Item != w.Item || got.Views.Value != w.Events {
							t.Errorf("%s: place %d is %+v, the truth %+v", values.Encode(), i+1, got, w)
						}
					}
				}
			}
		}
	}
	if kinds["refused"] == 0 || kinds["answered"] == 0 || kinds["clipped"] == 0 {
		t.Errorf("not everything came up: %v", kinds)
	}
	// A series has the steps that are kept, and says so.
	hours := ask[queries.Answers](t, e, "counts", url.Values{"step": {"hour"}})[0]
	if want := time.UnixMilli(end).Add(-11 * 24 * time.Hour); !hours.Clipped || hours.From.Before(want) || !hours.From.Equal(hours.Series[0].Start) {
		t.Errorf("hours from %v, clipped: %v, want them from about %v", hours.From, hours.Clipped, want)
	}
	_, err := e.Ask(t.Context(), "counts", url.Values{"step": {"hour"}, "from": {"2026-05-01"}, "to": {"2026-05-03"}}, now)
	if fault := new(queries.Fault); !errors.As(err, &fault) || fault.Parameter != "step" || !fault.Refused {
		t.Errorf("hours of what is kept by day: %v", err)
	}
	// Lifetime totals do not fall, whatever is taken.
	all := ask[queries.Answers](t, e, "viewers", url.Values{"last": {"all"}})[0]
	want := oracle.Site(windowstest.Question{From: first, To: end, Types: []string{"view"}})
	if all.Counts["view"] != sketches.ExactNumber(want.Events) || !within(*all.Viewers, want.Viewers) || all.Clipped {
		t.Errorf("of all time: %+v, the truth is %+v", all, want)
	}
}
