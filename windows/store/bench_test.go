package store

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"tidemark/sketches"
	"tidemark/windows"
)

// benchStream is a Zipf stream over items, with as many users, whose order of
// popularity has nothing to do with that of the names.
type benchStream struct {
	rand    *rand.Rand
	zipf    *rand.Zipf
	names   [][]byte
	hashes  []sketches.Hash128
	feeder  *feeder
	offset  int64
	minute  windows.Minute
	records []windows.Event
}

func newBenchStream(items int) *benchStream {
	r := rand.New(rand.NewPCG(1, 2))
	s := &benchStream{rand: r, zipf: rand.NewZipf(r, 1.1, 1, uint64(items-1)), feeder: newFeeder(0, feederConfig{}), minute: 29_000_160}
	for _, p := range r.Perm(items) {
		name := fmt.Appendf(nil, "item-%06d", p)
		s.names, s.hashes = append(s.names, name), append(s.hashes, testHasher.Item(name))
	}
	return s
}

// seals makes the seals of the next minutes.
func (s *benchStream) seals(b *testing.B, minutes, events, perSeal int) (seals []*windows.Seal, rows int) {
	s.feeder.seals = nil
	for m := range minutes {
		for range events {
			item := s.zipf.Uint64()
			s.records = append(s.records, windows.Event{
				Offset: s.offset, Stamp: 1 << 41, Time: s.minute.UnixMilli() + s.offset%60_000,
				Item: s.names[item], ItemHash: s.hashes[item], Type: []byte("view"),
				HasUser: true, User: s.rand.Uint64N(uint64(len(s.names))) * 0x9e3779b97f4a7c15,
			})
			s.offset++
			if len(s.records) == 4096 {
				s.feeder.add(b, s.records)
				s.records = s.records[:0]
			}
		}
		s.minute++
		if (m+1)%perSeal == 0 || m == minutes-1 {
			s.feeder.add(b, s.records)
			s.records = s.records[:0]
			s.feeder.end(b, s.offset)
		}
	}
	for _, seal := range s.feeder.seals {
		for _, p := range seal.Partials {
			rows += p.Items()
		}
	}
	return s.feeder.seals, rows
}

// benchSeals makes seals of minutes of a new stream.
func benchSeals(b *testing.B, minutes, events, items, perSeal int) (seals []*windows.Seal, rows int) {
	return newBenchStream(items).seals(b, minutes, events, perSeal)
}

// cpu is the time that the process has computed so far: the machine may be shared.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkApply writes seals into a new store, and reports what a row (an item in
// a minute) costs, in CPU time and in bytes, flushes and compactions included. In
// "new" every name is new to the store when it comes first; in "known" another log
// had the same names before.
func BenchmarkApply(b *testing.B) {
	for _, c := range []struct {
		name                            string
		minutes, events, items, perSeal int
	}{
		{"1M-event-minutes", 8, 1_000_000, 1_000_000, 1},
		{"10k-event-minutes", 360, 10_000, 1_000_000, 1},
		{"10k-event-minutes-60-a-seal", 360, 10_000, 1_000_000, 60},
		{"10-event-minutes", 20_000, 10, 10_000, 1000},
		{"flat-1-event-minutes", 100_000, 1, 10_000, 10_000},
	} {
		seals, rows := benchSeals(b, c.minutes, c.events, c.items, c.perSeal)
		for _, known := range []bool{false, true} {
			name := c.name + "/new"
			if known {
				name = c.name + "/known"
			}
			b.Run(name, func(b *testing.B) {
				for range b.N {
					benchApply(b, seals, rows, known)
				}
			})
		}
	}
}

func benchApply(b *testing.B, seals []*windows.Seal, rows int, known bool) {
	b.StopTimer()
	s, err := Open(testOptions(b.TempDir(), 1))
	if err != nil {
		b.Fatal(err)
	}
	begin(b, s)
	other := windows.LogID{1}
	if _, err := s.Begin(Log{ID: other, E: []uint64{100}}); err != nil {
		b.Fatal(err)
	}
	if known {
		for _, seal := range seals {
			copied := *seal
			copied.Log = other
			if err := s.Apply(&copied); err != nil {
				b.Fatal(err)
			}
		}
		s.db.Flush()
	}
	before, keptBefore, writtenBefore := cpu(), kept(s), written(s)
	b.StartTimer()
	for _, seal := range seals {
		if err := s.Apply(seal); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	s.db.Flush()
	n := float64(rows)
	b.ReportMetric(float64(cpu()-before)/n, "cpu-ns/row")
	b.ReportMetric(float64(kept(s)-keptBefore)/n, "kept-B/row")
	b.ReportMetric(float64(written(s)-writtenBefore)/n, "written-B/row")
	s.Close()
}

func kept(s *Store) uint64 {
	n, err := s.db.EstimateDiskUsage([]byte{0}, []byte{1})
	if err != nil {
		panic(err)
	}
	return n
}

func written(s *Store) uint64 {
	m := s.db.Metrics()
	n := m.WAL.BytesWritten
	for _, l := range m.Levels {
		n += l.TableBytesFlushed + l.TableBytesCompacted
	}
	return n
}

// BenchmarkRows reads one item, another each time, over so many minutes of 10,000
// events; and the highest items of them.
func BenchmarkRows(b *testing.B) {
	s, err := Open(testOptions(b.TempDir(), 1))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	begin(b, s)
	const minutes = 1440
	seals, _ := benchSeals(b, minutes, 10_000, 100_000, 60)
	for _, seal := range seals {
		if err := s.Apply(seal); err != nil {
			b.Fatal(err)
		}
	}
	n, err := s.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	view := windows.Series{Type: "view"}
	var ids []uint32
	for i := range 5000 {
		id, ok, err := n.ID(fmt.Sprintf("item-%06d", i*7))
		if err != nil {
			b.Fatal(err)
		}
		if ok {
			ids = append(ids, id)
		}
	}
	for _, count := range []int{60, minutes} {
		at := windows.Stretch{Range: windows.Range{From: 29_000_160, To: windows.Minute(29_000_160 + count)}}
		b.Run(fmt.Sprintf("item-%d-minutes", count), func(b *testing.B) {
			rows, before := 0, cpu()
			for i := range b.N {
				if err := n.Rows(at, view, windows.Item, ids[i%len(ids)], func(windows.Part, windows.Row) error {
					rows++
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N)/1e3, "cpu-µs/op")
			b.ReportMetric(float64(rows)/float64(b.N), "rows/op")
		})
		b.Run(fmt.Sprintf("lists-%d-minutes", count), func(b *testing.B) {
			before := cpu()
			for range b.N {
				if err := n.Lists(at, view, func(windows.Part, windows.TopList) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N)/1e3, "cpu-µs/op")
		})
	}
}

// BenchmarkEncode makes the blocks of a seal, names known, and writes nothing.
func BenchmarkEncode(b *testing.B) {
	for _, events := range []int{1_000_000, 10_000, 10} {
		b.Run(fmt.Sprintf("%d-events", events), func(b *testing.B) {
			s, err := Open(testOptions(b.TempDir(), 1))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			seals, rows := benchSeals(b, max(1, 10_000/events), events, 1_000_000, 1000)
			for range b.N + 1 {
				batch := s.db.NewBatch()
				if _, err := s.encode(seals[0].Partials, 1, batch); err != nil {
					b.Fatal(err)
				}
				batch.Close()
			}
			b.StopTimer()
			before := cpu()
			for range b.N {
				batch := s.db.NewBatch()
				if _, err := s.encode(seals[0].Partials, 1, batch); err != nil {
					b.Fatal(err)
				}
				batch.Close()
			}
			b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N)/float64(rows), "cpu-ns/row")
		})
	}
}

// BenchmarkLevels seals minutes and rolls them up to all levels, and reports what a
// row of a minute costs over all levels, and what is kept of it at each.
func BenchmarkLevels(b *testing.B) {
	for _, c := range []struct {
		name                            string
		minutes, events, items, perSeal int
	}{
		{"1M-event-minutes", 60, 1_000_000, 1_000_000, 1},
		{"10k-event-minutes", 1440, 10_000, 100_000, 1},
		{"10-event-minutes", 14_400, 10, 10_000, 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				benchLevels(b, c.minutes, c.events, c.items, c.perSeal)
			}
		})
	}
}

func benchLevels(b *testing.B, minutes, events, items, perSeal int) {
	b.StopTimer()
	s, err := Open(testOptions(b.TempDir(), 1))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	begin(b, s)
	rows := 0
	var sealing, rolling time.Duration
	bench := newBenchStream(items)
	const chunk = 15 // minutes in memory
	for m := 0; m < minutes; m += chunk * perSeal {
		seals, n := bench.seals(b, min(minutes-m, chunk*perSeal), events, perSeal)
		rows += n
		before := cpu()
		for _, seal := range seals {
			if err := s.Apply(seal); err != nil {
				b.Fatal(err)
			}
		}
		sealing += cpu() - before
	}
	before := cpu()
	s.db.Flush()
	sealing += cpu() - before
	b.StartTimer()
	before = cpu()
	// So that a day ends, whatever there is of it.
	if err := s.rollUp(b.Context(), windows.MaxMinute); err != nil {
		b.Fatal(err)
	}
	rolling = cpu() - before
	b.StopTimer()
	// What there is after a month of a billion events a day, as the program keeps it
	// unless told otherwise: two days of minutes, of the others all; at most, since a
	// whole day has fewer items an event than these minutes.
	daysKept := [levelCount]float64{2, 30, 30, 30, 1}
	month := 0.0
	n := float64(rows)
	b.ReportMetric(float64(sealing)/n, "seal-cpu-ns/row")
	b.ReportMetric(float64(rolling)/n, "roll-cpu-ns/row")
	b.ReportMetric(float64(written(s))/n, "written-B/row")
	for l := range windows.Level(levelCount) {
		size, err := s.db.EstimateDiskUsage([]byte{byte(l)}, []byte{byte(l) + 1})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(size)/n, policy[l].name+"-B/row")
		month += float64(size) / float64(minutes*events) * 1e9 * daysKept[l]
	}
	b.ReportMetric(month/1e9, "GB-after-a-month-of-1e9-a-day")
	b.ReportMetric(0, "ns/op")
}
