package sketches

import (
	"slices"
	"testing"
	"time"

	"github.com/axiomhq/hyperloglog"
)

// beside times ours and a peer's in turn, so that whatever else the machine does
// hits both, and reports the medians per operation, of which one call does ops.
func beside(b *testing.B, ops int, ours, peer func()) {
	b.Helper()
	ours()
	peer()
	var a, z []time.Duration
	for b.Loop() {
		t0 := time.Now()
		ours()
		t1 := time.Now()
		peer()
		a, z = append(a, t1.Sub(t0)), append(z, time.Since(t1))
	}
	slices.Sort(a)
	slices.Sort(z)
	x, y := float64(a[len(a)/2].Nanoseconds()), float64(z[len(z)/2].Nanoseconds())
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(x/float64(ops), "ours-ns/op")
	b.ReportMetric(y/float64(ops), "peer-ns/op")
	b.ReportMetric(y/x, "ratio")
}

func BenchmarkAddHash(b *testing.B) {
	for _, c := range []struct {
		name  string
		users int
	}{{"tokens", 1000}, {"dense", 100_000}} {
		b.Run(c.name, func(b *testing.B) {
			hashes := randomHashes(c.users, 1)
			v := NewViewers(1)
			beside(b, len(hashes), func() {
				v.Reset()
				for _, h := range hashes {
					v.AddHash(h)
				}
			}, func() {
				s := hyperloglog.New14()
				for _, h := range hashes {
					s.InsertHash(h)
				}
			})
		})
	}
}

func benchSketches(users, parts int) ([]*Viewers, []*hyperloglog.Sketch) {
	var ours []*Viewers
	var theirs []*hyperloglog.Sketch
	for i := range parts {
		v, s := NewViewers(1), hyperloglog.New14()
		for _, h := range randomHashes(users, uint64(i)) {
			v.AddHash(h)
			s.InsertHash(h)
		}
		s.Estimate()
		ours, theirs = append(ours, v), append(theirs, s)
	}
	return ours, theirs
}

func BenchmarkEstimateDense(b *testing.B) {
	v, s := benchSketches(100_000, 1)
	beside(b, 1, func() { v[0].Number() }, func() { s[0].Estimate() })
}

func BenchmarkMerge(b *testing.B) {
	for _, c := range []struct {
		name         string
		parts, users int
	}{{"60x50", 60, 50}, {"1440x5", 1440, 5}, {"1440x50", 1440, 50}, {"60x1000", 60, 1000}, {"60x20000", 60, 20_000}} {
		b.Run(c.name, func(b *testing.B) {
			ours, theirs := benchSketches(c.users, c.parts)
			lists := make([][]uint32, len(ours))
			for i, v := range ours {
				lists[i] = v.Tokens()
			}
			sum := NewViewers(1)
			beside(b, 1, func() {
				sum.Reset()
				for i, v := range ours {
					if v.Dense() {
						sum.AddRegisters(v.Registers())
					} else {
						sum.AddTokens(lists[i])
					}
				}
				sum.Number()
			}, func() {
				s := hyperloglog.New14()
				for _, o := range theirs {
					if err := s.Merge(o); err != nil {
						b.Fatal(err)
					}
				}
				s.Estimate()
			})
		})
	}
}

func BenchmarkUnion(b *testing.B) {
	v, _ := benchSketches(20_000, 2)
	x, y := v[0].Registers(), v[1].Registers()
	b.Run("chosen", func(b *testing.B) {
		for b.Loop() {
			x.Merge(y)
		}
	})
	b.Run("words", func(b *testing.B) {
		for b.Loop() {
			unionWords((*[RegisterCount]byte)(x), (*[RegisterCount]byte)(y))
		}
	})
}

func BenchmarkHash(b *testing.B) {
	name := []byte("item-123456")
	b.Run("user", func(b *testing.B) {
		for b.Loop() {
			testHasher.User(name)
		}
	})
	b.Run("item", func(b *testing.B) {
		for b.Loop() {
			testHasher.Item(name)
		}
	})
}

// BenchmarkCountMin counts a stream beside a Go map of exact counts.
func BenchmarkCountMin(b *testing.B) {
	const events = 1 << 20
	hashes, items := zipfStream(events, 1<<20, 1.1, 1)
	stream := make([]uint64, events)
	for i, item := range items {
		stream[i] = hashes[item].Lo
	}
	c, m := NewCountMin(testHasher.KeyID()), make(map[uint64]uint32)
	exact := func() {
		for _, h := range stream {
			m[h]++
		}
	}
	b.Run("add", func(b *testing.B) {
		beside(b, events, func() {
			for _, h := range stream {
				c.Add(h, 1)
			}
		}, exact)
	})
	b.Run("touchadd", func(b *testing.B) {
		var sink uint32
		beside(b, events, func() {
			for batch := range slices.Chunk(stream, 128) {
				for _, h := range batch {
					sink |= c.Touch(h)
				}
				for _, h := range batch {
					c.Add(h, 1)
				}
			}
		}, exact)
	})
	b.Run("merge", func(b *testing.B) {
		sum := NewCountMin(testHasher.KeyID())
		for b.Loop() {
			if err := sum.Merge(c); err != nil {
				b.Fatal(err)
			}
		}
	})
	blob := encode(b, c)
	b.Run("decode", func(b *testing.B) {
		b.ReportMetric(float64(len(blob)), "bytes")
		for b.Loop() {
			if _, err := DecodeCountMin(blob); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTopK offers what a Count-Min table says, as windows do.
func BenchmarkTopK(b *testing.B) {
	const events = 1 << 20
	hashes, items := zipfStream(events, 1<<20, 1.1, 1)
	names := make([][]byte, len(hashes))
	for i := range names {
		names[i] = itemName(uint64(i))
	}
	c, top := NewCountMin(testHasher.KeyID()), NewTopK(testHasher.KeyID(), 1000)
	for b.Loop() {
		c.Reset()
		top.Reset()
		for _, item := range items {
			if n := c.Add(hashes[item].Lo, 1); n > top.Min() {
				top.Offer(hashes[item], n, names[item])
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/event")
	b.ReportMetric(0, "ns/op")
}
