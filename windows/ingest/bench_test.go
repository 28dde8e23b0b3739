package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"tidemark/sketches"
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

// perEvent reports the time of one event.
func perEvent(b *testing.B, events int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/event")
	b.ReportMetric(float64(b.N*events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

func decodeAll(d *decoder, c *chunk, f format) int {
	for {
		p := f.split(c.buf[:c.end], c.pos, true)
		if p.found == more {
			return c.records
		}
		if p.found == aRecord {
			d.arena = c.arena
			f.decode(d, c.buf, p)
			c.arena = d.arena
			d.emit(c, int64(c.records))
		}
		c.pos = p.next
	}
}

func benchmarkDecode(b *testing.B, data []byte, f format, want int) {
	b.Helper()
	d := testDecoder()
	c := newPool(4).make()
	c.buf = append(data, make([]byte, slack)...)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		c.reset()
		c.end = len(data)
		if n := decodeAll(d, c, f); n != want {
			b.Fatalf("%d records, want %d", n, want)
		}
	}
	perEvent(b, want)
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
		for b.Loop() {
			for _, line := range lines {
				var e struct{ ID, Type, Item, User, Time, Country, Device string }
				if err := json.Unmarshal(line, &e); err != nil {
					b.Fatal(err)
				}
			}
		}
		perEvent(b, len(lines))
	})
}
