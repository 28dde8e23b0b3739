package clickhouse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidemark/sinks"
	"tidemark/windows"
)

// traffic makes the seals of a site: items of which few have most of the views,
// viewers who come back, one seal a minute and partition.
func traffic(minutes, partitions, items, views int) (seals []*sinks.Seal, itemMinutes, events int) {
	r := rand.New(rand.NewPCG(1, 2))
	view := windows.Series{Type: "view"}
	names := make([][]byte, items)
	for i := range names {
		names[i] = fmt.Appendf(nil, "video-%d", uint32(i)*2654435761%1_000_000)
	}
	base := minuteAt(2026, 3, 1, 0, 0)
	distinct := make(map[[2]int]struct{})
	for m := range minutes {
		clear(distinct)
		rows := make([]map[int][]uint64, partitions)
		for p := range rows {
			rows[p] = make(map[int][]uint64)
		}
		for range views {
			item := int(float64(items) * math.Pow(r.Float64(), 3))
			viewer := uint64(r.IntN(50_000))
			p := int(viewer) % partitions // a viewer's views are in one partition
			rows[p][item] = append(rows[p][item], viewer*0x9e3779b97f4a7c15+1)
			distinct[[2]int{m, item}] = struct{}{}
			events++
		}
		itemMinutes += len(distinct)
		for p := range rows {
			part := &partial{minute: base + windows.Minute(m)}
			var all []uint64
			for item, users := range rows[p] {
				row := windows.Row{Item: names[item], Events: uint64(len(users)), Reached: uint64(len(users))}
				viewersOf(&row, users)
				part.add(view, row)
				all = append(all, users...)
			}
			site := windows.Row{Kind: windows.Site, Events: uint64(len(all)), Reached: uint64(len(all))}
			viewersOf(&site, all)
			part.add(view, site)
			to := windows.Pair{F: base + windows.Minute(m) + 1, S: int64(m+1)*int64(views) + int64(r.IntN(100))}
			seals = append(seals, &sinks.Seal{
				Identity: windows.Identity{Partition: p, E: uint64(p + 1), To: to},
				Partials: []sinks.Partial{plain{part}},
			})
		}
	}
	return seals, itemMinutes, events
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

// BenchmarkDeliver delivers an hour of a site at once, and says how much of it is
// on the server's disk.
func BenchmarkDeliver(b *testing.B) {
	w := newWorld(b)
	s := w.sink(b)
	seals, itemMinutes, events := traffic(60, 4, 20_000, 10_000)
	rows := 0
	for b.Loop() {
		if err := s.Deliver(b.Context(), seals); err != nil {
			b.Fatal(err)
		}
		rows += itemMinutes
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "item-minutes/s")
	b.ReportMetric(float64(events)*float64(rows)/float64(itemMinutes)/b.Elapsed().Seconds(), "events/s")
	for _, t := range tables {
		w.exec(b, "OPTIMIZE TABLE {{.}}."+t.name+" FINAL")
	}
	disk := one[uint64](b, w, "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = '"+w.Database+"'")
	b.ReportMetric(float64(disk)/float64(itemMinutes), "disk-bytes/item-minute")
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
