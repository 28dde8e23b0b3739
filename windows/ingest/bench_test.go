package ingest

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tidemark/sketches"
	"tidemark/windows"
)

// plainEvents are events of 131 bytes with seven fields, a line each.
func plainEvents() []byte {
	var b bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&b, `{"id":"e%d","type":"view","item":"video-%d","user":"u%d","time":"2026-01-01T00:%02d:%02dZ","country":"DE","device":"mobile"}`+"\n",
			i*7919, i*7919%5003, i*i%100003, i*60/1000, i%60)
	}
	return b.Bytes()
}

func testDecoder(dimensions ...string) *decoder {
	return newDecoder(&FilesConfig{
		Partitions: 4,
		Hasher:     sketches.NewHasher(sketches.Key{1}),
		Type:       "view",
		Dimensions: dimensions,
	})
}

// perEvent returns what to call at the end of a benchmark whose iterations have
// that many events. It reports CPU time, since the time of a clock says little on a
// machine with other work.
func perEvent(b *testing.B, events int) func() {
	b.Helper()
	begin := cpuTime(b)
	return func() {
		ns := float64(cpuTime(b)-begin) / float64(b.N*events)
		b.ReportMetric(ns, "cpu-ns/event")
		b.ReportMetric(1e3/ns, "Mevents/cpu-s")
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func decodeAll(d *decoder, c *chunk, f format) int {
	for {
		d.record.arena = c.arena
		p := f.next(d, c.buf, c.pos, c.end, true, true)
		c.arena = d.record.arena
		if p.found == more {
			return c.records
		}
		if p.found == aRecord {
			d.emit(c, int64(c.records))
		}
		c.pos = p.next
	}
}

func benchmarkDecode(b *testing.B, data []byte, f format, want int) {
	b.Helper()
	d := testDecoder()
	c := newPool(4).make()
	c.buf = append(bytes.Clone(data), make([]byte, slack)...)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	defer perEvent(b, want)()
	for b.Loop() {
		c.reset()
		c.end = len(data)
		if n := decodeAll(d, c, f); n != want {
			b.Fatalf("%d records, want %d", n, want)
		}
	}
}

func BenchmarkDecodeJSON(b *testing.B) {
	b.Run("tidemark", func(b *testing.B) { benchmarkDecode(b, plainEvents(), &lines{}, 1000) })
	b.Run("strict", func(b *testing.B) {
		data := bytes.ReplaceAll(plainEvents(), []byte(`"id":`), []byte(`"\u0069d":`))
		benchmarkDecode(b, data, &lines{}, 1000)
	})
	b.Run("encoding-json", func(b *testing.B) {
		data := plainEvents()
		lines := bytes.Split(bytes.TrimSpace(data), []byte{'\n'})
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		defer perEvent(b, len(lines))()
		for b.Loop() {
			for _, line := range lines {
				var e struct{ ID, Type, Item, User, Time, Country, Device string }
				if err := json.Unmarshal(line, &e); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkDecodeCSV(b *testing.B) {
	var data bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&data, "%d,u%d,video-%d,view,e%d,0\n", 1767225600000+i*60, i*i%100003, i*7919%5003, i*7919)
	}
	quoted := bytes.ReplaceAll(data.Bytes(), []byte(",view,"), []byte(`,"view",`))
	header := []byte("ts_ms,user,item,type,event_id,bot\n")
	t, _, _, err := newRows(header, true, fieldNames(nil))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("tidemark", func(b *testing.B) { benchmarkDecode(b, data.Bytes(), t, 1000) })
	b.Run("tidemark-quoted", func(b *testing.B) { benchmarkDecode(b, quoted, t, 1000) })
	b.Run("encoding-csv", func(b *testing.B) {
		b.SetBytes(int64(data.Len()))
		b.ReportAllocs()
		defer perEvent(b, 1000)()
		for b.Loop() {
			r := csv.NewReader(bytes.NewReader(data.Bytes()))
			r.ReuseRecord = true
			for {
				if _, err := r.Read(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	const batch = 256
	for _, kind := range []string{"ids", "duplicates", "no-ids"} {
		b.Run(kind, func(b *testing.B) {
			j := NewJudge(JudgeConfig{Generation: Generation(256<<10, 1), Lateness: 30 * time.Second, MaxLateness: forever, MaxSkew: time.Minute})
			events := make([]windows.Event, batch)
			r := rand.New(rand.NewPCG(1, 2))
			var offset int64
			b.ReportAllocs()
			defer perEvent(b, batch)()
			for b.Loop() {
				for i := range events {
					ev := &events[i]
					ev.Offset, ev.Stamp, ev.Time, ev.Outcome = offset, 1767225600000, 1767220000000+offset, windows.Counted
					ev.HasID, ev.ID = kind != "no-ids", r.Uint64()
					if kind == "duplicates" {
						ev.ID = uint64(i) << 56
					}
					offset++
				}
				j.Judge(events)
			}
		})
	}
}

// BenchmarkFiles reads whole files and gives their events away at once.
func BenchmarkFiles(b *testing.B) {
	data := bytes.Repeat(plainEvents(), 200)
	var zipped, zstandard bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(data)
	z.Close()
	zs, _ := zstd.NewWriter(&zstandard)
	zs.Write(data)
	zs.Close()
	for name, content := range map[string][]byte{"plain": data, "gzip": zipped.Bytes(), "zstd": zstandard.Bytes()} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "events.ndjson")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				b.Fatal(err)
			}
			f, err := OpenFiles(b.Context(), FilesConfig{Paths: []string{path}, Partitions: 4, Hasher: sketches.NewHasher(sketches.Key{1}), Type: "view"})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			defer perEvent(b, 200_000)()
			for b.Loop() {
				n, err := f.Run(b.Context(), RunConfig{Submit: func(_ context.Context, _ int, batch windows.Batch) error {
					batch.Release()
					return nil
				}})
				if err != nil || n != 200_000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
