package journal

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkAppend is the journal on this machine's disk. Beside it stands what one
// would write first: a lock, a bufio.Writer, and an fsync for every call.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ records, senders int }{{1, 1}, {1, 64}, {1000, 1}, {1000, 8}, {1000, 64}} {
		name := fmt.Sprintf("records=%d/senders=%d", c.records, c.senders)
		b.Run("journal/"+name, func(b *testing.B) {
			j, err := Open(Options{Dir: b.TempDir(), Partitions: 4, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			send(b, c.records, c.senders, func(r []Record) error { return j.Append(context.Background(), r) })
		})
		b.Run("plain/"+name, func(b *testing.B) {
			p := newPlain(b)
			send(b, c.records, c.senders, p.append)
		})
	}
}

// plain writes records with their lengths, and syncs every call.
type plain struct {
	mu sync.Mutex
	f  *os.File
	w  *bufio.Writer
}

func newPlain(b *testing.B) *plain {
	f, err := os.Create(filepath.Join(b.TempDir(), "plain"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return &plain{f: f, w: bufio.NewWriterSize(f, 1<<16)}
}

func (p *plain) append(records []Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range records {
		var head [8]byte
		binary.LittleEndian.PutUint32(head[:], uint32(records[i].Partition))
		binary.LittleEndian.PutUint32(head[4:], uint32(len(records[i].Payload)))
		p.w.Write(head[:])
		p.w.Write(records[i].Payload)
	}
	if err := p.w.Flush(); err != nil {
		return err
	}
	return p.f.Sync()
}

// send calls append b.N times from a number of goroutines, and reports records a second.
func send(b *testing.B, records, senders int, do func([]Record) error) {
	payload := make([]byte, 120)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.SetBytes(int64(records * len(payload)))
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			group := make([]Record, records)
			for i := range group {
				group[i] = Record{Partition: i & 3, Payload: payload}
			}
			for left.Add(-1) >= 0 {
				if err := do(group); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
