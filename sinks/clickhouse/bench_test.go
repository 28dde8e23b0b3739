package clickhouse

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidemark/sinks"
	"tidemark/sketches"
	"tidemark/windows"
)

// site is traffic of a site: items of which few have most of the views, viewers who
// come back.
type site struct {
	seals       []*sinks.Seal // one a minute and partition
	events      []event       // the same
	itemMinutes int
}

type event struct {
	at           time.Time
	item, viewer string
}

func newSite(minutes, partitions, items, views int) *site {
	s, r := &site{}, rand.New(rand.NewPCG(1, 2))
	hasher := sketches.NewHasher(sketches.Key{1})
	view := windows.Series{Type: "view"}
	base := minuteAt(2026, 3, 1, 0, 0)
	for m := range minutes {
		minute := base + windows.Minute(m)
		rows := make([]map[string][]uint64, partitions)
		for p := range rows {
			rows[p] = make(map[string][]uint64)
		}
		distinct := make(map[string]bool)
		for range views {
			item := fmt.Sprintf("video-%d", uint32(float64(items)*math.Pow(r.Float64(), 2))*2654435761%1_000_000)
			viewer := r.IntN(100_000)
			name := fmt.Sprintf("user-%d", viewer)
			s.events = append(s.events, event{minute.Time().Add(time.Duration(r.IntN(60)) * time.Second), item, name})
			row := rows[viewer%partitions] // a viewer's views are in one partition
			row[item] = append(row[item], hasher.User([]byte(name)))
			distinct[item] = true
		}
		s.itemMinutes += len(distinct)
		for p := range rows {
			part := &partial{minute: minute}
			var all []uint64
			for item, users := range rows[p] {
				row := windows.Row{Item: []byte(item), Events: uint64(len(users)), Reached: uint64(len(users))}
				viewersOf(&row, users)
				part.add(view, row)
				all = append(all, users...)
			}
			row := windows.Row{Kind: windows.Site, Events: uint64(len(all)), Reached: uint64(len(all))}
			viewersOf(&row, all)
			part.add(view, row)
			s.seals = append(s.seals, &sinks.Seal{
				Identity: windows.Identity{Partition: p, E: uint64(p + 1), To: windows.Pair{F: minute + 1, S: int64(m+1)*int64(views) + int64(r.IntN(100))}},
				Partials: []sinks.Partial{plain{part}},
			})
		}
	}
	return s
}

// plain is a partial without what makes it harsh to a sink.
type plain struct{ *partial }

func (p plain) Each(yield func(series int, r windows.Row) bool) {
	for _, r := range p.rows {
		if !yield(r.series, r.Row) {
			return
		}
	}
}

// BenchmarkDeliver compares an hour of a site delivered in seals with the same events
// inserted one by one into ClickHouse, where a materialized view counts them by minute
// and item, with viewers. It says how much of the seals is on disk after merges.
func BenchmarkDeliver(b *testing.B) {
	site := newSite(60, 4, 5_000, 50_000)
	perSecond := func(b *testing.B) {
		b.ReportMetric(float64(b.N)*float64(len(site.events))/b.Elapsed().Seconds(), "events/s")
	}
	b.Run("seals", func(b *testing.B) {
		w := newWorld(b)
		s := w.sink(b)
		for b.Loop() {
			if err := s.Deliver(b.Context(), site.seals); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b)
		for _, t := range tables {
			w.exec(b, "OPTIMIZE TABLE {{.}}."+t.name+" FINAL")
		}
		disk := one[uint64](b, w, "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = '"+w.Database+"'")
		b.ReportMetric(float64(disk)/float64(site.itemMinutes), "disk-bytes/item-minute")
	})
	b.Run("events", func(b *testing.B) {
		w := newWorld(b)
		w.exec(b, "CREATE DATABASE {{.}}",
			"CREATE TABLE {{.}}.events (time DateTime('UTC'), type LowCardinality(String), item String, user String) ENGINE = MergeTree PARTITION BY toYYYYMM(time) ORDER BY (type, item, time)",
			"CREATE MATERIALIZED VIEW {{.}}.minutes (minute DateTime('UTC'), type LowCardinality(String), item String, events SimpleAggregateFunction(sum, UInt64), viewers AggregateFunction(uniq, String)) "+
				"ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(minute) ORDER BY (type, item, minute) "+
				"AS SELECT toStartOfMinute(time) AS minute, type, item, count() AS events, uniqState(user) AS viewers FROM {{.}}.events GROUP BY minute, type, item")
		for b.Loop() {
			for some := range slices.Chunk(site.events, 100_000) {
				if err := insertEvents(b.Context(), w, some); err != nil {
					b.Fatal(err)
				}
			}
		}
		perSecond(b)
	})
}

// insertEvents inserts events in the driver's fastest way.
func insertEvents(ctx context.Context, w *world, events []event) error {
	batch, err := w.conn.PrepareBatch(ctx, w.sql("INSERT INTO {{.}}.events (time, type, item, user)"))
	if err != nil {
		return err
	}
	defer batch.Close()
	at, types, items, users := make([]time.Time, len(events)), make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	for i, e := range events {
		at[i], types[i], items[i], users[i] = e.at, "view", e.item, e.viewer
	}
	for i, column := range []any{at, types, items, users} {
		if err := batch.Column(i).Append(column); err != nil {
			return err
		}
	}
	return batch.Send()
}

// BenchmarkViewers30Days asks for the viewers of one of 1,000 items over 30 days, as
// an analyst would.
func BenchmarkViewers30Days(b *testing.B) {
	w := newWorld(b)
	s := w.sink(b)
	r := rand.New(rand.NewPCG(3, 4))
	view := windows.Series{Type: "view"}
	base := minuteAt(2026, 3, 1, 0, 0)
	const items, days = 1000, 31
	for day := range days {
		seal := &sinks.Seal{Identity: windows.Identity{E: 1, To: windows.Pair{F: base + windows.Minute(day+1)*1440, S: int64(day + 1)}}}
		for hour := range 24 {
			p := &partial{minute: base + windows.Minute(day*1440+hour*60+r.IntN(60))}
			for i := range items {
				users := make([]uint64, int(60*math.Pow(r.Float64(), 4))+1000/(i+1))
				for j := range users {
					users[j] = r.Uint64()
				}
				row := windows.Row{Item: fmt.Appendf(nil, "item-%04d", i), Events: uint64(len(users)), Reached: uint64(len(users))}
				viewersOf(&row, users)
				p.add(view, row)
			}
			seal.Partials = append(seal.Partials, plain{p})
		}
		if err := s.Deliver(b.Context(), []*sinks.Seal{seal}); err != nil {
			b.Fatal(err)
		}
	}
	var took []time.Duration
	for b.Loop() {
		k := viewerKey{view, windows.Item, fmt.Sprintf("item-%04d", r.IntN(items))}
		start := time.Now()
		w.viewers(b, k, base+1440, base+31*1440)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*9/10].Microseconds())/1000, "p90-ms")
}
