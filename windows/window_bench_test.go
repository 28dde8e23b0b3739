package windows

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/axiomhq/hyperloglog"

	"tidemark/sketches"
)

// stream is a minute of events: Zipf items (s = 1.1 of a million), users drawn
// evenly from five million, which is the worst case for viewers. Names lie in one
// buffer, as they do in a chunk of a file.
type stream struct {
	names []byte // nameSize bytes an event for the item, as many for the user
	start int64
}

const nameSize = 11

func newStream(n, items int) stream {
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 1, uint64(items-1))
	s := stream{
		names: make([]byte, 0, 2*nameSize*n),
		start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(),
	}
	for range n {
		s.names = fmt.Appendf(s.names, "%011d%011d", z.Uint64()*2654435761%1e11, r.IntN(5_000_000))
	}
	return s
}

var viewType = []byte("view")

func (s stream) len() int { return len(s.names) / (2 * nameSize) }

// batch fills events with those from number from on, as a decoder would, as if they
// came in a later minute.
func (s stream) batch(h sketches.Hasher, minute int, events []Event, from int) {
	for k := range events {
		at := (from + k) * 2 * nameSize
		item, user := s.names[at:at+nameSize:at+nameSize], s.names[at+nameSize:at+2*nameSize]
		ev := &events[k]
		ev.Offset, ev.Time = int64(minute*s.len()+from+k), s.start+int64(minute)*MillisPerMinute+int64(from+k)*MillisPerMinute/int64(s.len())
		ev.Item, ev.Type, ev.ItemHash = item, viewType, h.Item(item)
		ev.User, ev.HasUser = h.User(user), true
	}
}

// cpuTime is what the process has used, of all cores: other processes on the
// machine make the clock useless for a benchmark, and this only worse.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type keepAll struct{}

func (keepAll) Judge([]Event) {}

// BenchmarkWindow measures one core from decoded events to an open window: exact
// counts, viewers, Count-Min, ranking. Decoded events carry the hashes of their names:
// what it takes to fill them, a fifth of the whole, is measured apart, as filling. The
// plain implementation does the same with a Go map of library sketches.
func BenchmarkWindow(b *testing.B) {
	const n = 1_000_000
	s := newStream(n, 1_000_000)
	h := sketches.NewHasher(sketches.Key{1, 2, 3})

	b.Run("tidemark", func(b *testing.B) {
		b.ReportAllocs()
		events := make([]Event, 1000)
		p := NewPartition(PartitionConfig{
			Hasher: h, Limits: Limits{Items: 1_000_000, Values: 1000}, Judge: keepAll{},
			Look: func(o int64) int64 { return o }, Memory: 1 << 40, History: true,
		})
		begin := cpuTime()
		var filling time.Duration
		for minute := 0; b.Loop(); minute++ {
			for i := 0; i < n; i += len(events) {
				before := cpuTime()
				s.batch(h, minute, events, i)
				filling += cpuTime() - before
				if err := p.Add(events, func(Pair) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			// The minute before is sealed, as lateness would have it: its Count-Min
			// table is made here.
			p.Cut(Pair{F: MinuteOf(s.start) + Minute(minute), S: int64(minute * n)})
			p.Stored()
		}
		b.ReportMetric(float64((cpuTime()-begin-filling).Nanoseconds())/float64(b.N)/n, "cpu-ns/event")
		b.ReportMetric(float64(filling.Nanoseconds())/float64(b.N)/n, "filling-cpu-ns/event")
	})

	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		begin := cpuTime()
		for b.Loop() {
			type summary struct {
				count   uint64
				viewers *hyperloglog.Sketch
			}
			items := map[string]*summary{}
			site := summary{viewers: hyperloglog.New14()}
			table := sketches.NewCountMin(h.KeyID())
			heap := sketches.NewTopK(h.KeyID(), topK)
			for i := range n {
				at := i * 2 * nameSize
				item, user := s.names[at:at+nameSize], s.names[at+nameSize:at+2*nameSize]
				site.count++
				site.viewers.Insert(user)
				x := items[string(item)]
				if x == nil {
					x = &summary{viewers: hyperloglog.New14()}
					items[string(item)] = x
				}
				x.count++
				x.viewers.Insert(user)
				hash := h.Item(item)
				if e := table.Add(hash.Lo, 1); e > heap.Min() {
					heap.Offer(hash, e, item)
				}
			}
		}
		b.ReportMetric(float64((cpuTime()-begin).Nanoseconds())/float64(b.N)/n, "cpu-ns/event")
	})
}
