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
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkAppend is the journal on this machine's disk. Beside it stands what one
// would write first: a lock, a bufio.Writer, and an fsync for every call.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ records, senders int }{{1, 1}, {1, 64}, {1000, 1}, {1000, 8}, {1000, 64}} {
		name := fmt.Sprintf("records=%d/senders=%d", c.records, c.senders)
		b.Run("journal/"+name, func(b *testing.B) {
			j := openBench(b, nil)
			defer j.Close()
			send(b, c.records, c.senders, func(r []Record) error { return j.Append(context.Background(), r) })
		})
		b.Run("plain/"+name, func(b *testing.B) {
			p := newPlain(b)
			send(b, c.records, c.senders, p.append)
		})
	}
}

// BenchmarkAppendSteadyDisk has a disk whose sync takes a millisecond, whatever else
// this machine's disk has to do.
func BenchmarkAppendSteadyDisk(b *testing.B) {
	for _, c := range []struct{ records, senders int }{{1, 1}, {1, 64}, {1000, 8}, {1000, 64}} {
		b.Run(fmt.Sprintf("records=%d/senders=%d", c.records, c.senders), func(b *testing.B) {
			j := openBench(b, steadyDisk{vfs.Default})
			defer j.Close()
			send(b, c.records, c.senders, func(r []Record) error { return j.Append(context.Background(), r) })
		})
	}
}

type steadyDisk struct{ vfs.FS }

func (d steadyDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return steadyFile{f}, err
}

type steadyFile struct{ vfs.File }

func (steadyFile) SyncData() error {
	time.Sleep(time.Millisecond)
	return nil
}

func openBench(b *testing.B, fs vfs.FS) *Journal {
	j, err := Open(Options{Dir: b.TempDir(), Partitions: 4, Logger: slog.New(slog.DiscardHandler), FS: fs})
	if err != nil {
		b.Fatal(err)
	}
	return j
}

// BenchmarkRead reads a journal of one million records from its files, as a start
// does from R on.
func BenchmarkRead(b *testing.B) {
	const records = 1_000_000
	j := openBench(b, nil)
	defer j.Close()
	fill(b, j, records)
	b.SetBytes(j.end)
	for b.Loop() {
		if err := readNumber(j, records); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(records*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func fill(b *testing.B, j *Journal, records int) {
	group := make([]Record, 1000)
	for i := range group {
		group[i] = Record{Partition: i & 3, Payload: make([]byte, 120)}
	}
	for range records / len(group) {
		if err := j.Append(context.Background(), group); err != nil {
			b.Fatal(err)
		}
	}
}

func readNumber(j *Journal, records int) error {
	r, err := j.NewReader(j.First())
	if err != nil {
		return err
	}
	defer r.Close()
	var batch Batch
	for n := 0; n < records; n += len(batch.Records) {
		if err := r.Next(context.Background(), &batch); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkFollow has a reader that keeps up with eight senders.
func BenchmarkFollow(b *testing.B) {
	j := openBench(b, steadyDisk{vfs.Default})
	defer j.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := readNumber(j, b.N*1000); err != nil {
			b.Error(err)
		}
	})
	send(b, 1000, 8, func(r []Record) error { return j.Append(context.Background(), r) })
	wg.Wait()
}

// BenchmarkOpen opens a journal whose last segment is full, after a kill.
func BenchmarkOpen(b *testing.B) {
	j := openBench(b, nil)
	fill(b, j, 450_000)
	o := j.opts
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	o.ReadOnly = true
	for b.Loop() {
		j, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		j.Close()
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
