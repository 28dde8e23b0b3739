package main

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/axiomhq/hyperloglog"
)

// BenchmarkReplay measures an import end to end, from the file to the synced store:
// of a dense stream (0.14 item-minutes an event), and of the sparse events of the
// repository (0.5–1). The plain implementation uses the standard library's decoders
// and a Go map of library sketches, and keeps nothing.
func BenchmarkReplay(b *testing.B) {
	dense := filepath.Join(b.TempDir(), "dense.ndjson")
	records := writeDense(b, dense)
	b.Run("dense/tidemark", func(b *testing.B) { benchmarkReplay(b, dense, records) })
	b.Run("dense/plain", func(b *testing.B) { benchmarkPlain(b, dense, records) })
	for _, set := range []string{"online-retail-2010-12_2011-06", "git-prometheus"} {
		name, _, _ := strings.Cut(set, "-2010")
		path := filepath.Join("testdata", set+".events.csv.gz")
		records := countPlain(b, path)
		b.Run(name+"/tidemark", func(b *testing.B) { benchmarkReplay(b, path, records) })
		b.Run(name+"/plain", func(b *testing.B) { benchmarkPlain(b, path, records) })
	}
}

// writeDense writes a million views a minute of a million items by a million users.
func writeDense(b *testing.B, path string) int {
	b.Helper()
	const n = 4_000_000
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	items := rand.NewZipf(r, 1.1, 1, 999_999)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for i := range int64(n) {
		fmt.Fprintf(w, `{"id":"%016x","type":"view","item":"video-%d","user":"user-%d","time":%d,"country":"DE","device":"phone"}`+"\n",
			i*0x9e3779b97f4a7, items.Uint64(), r.IntN(1_000_000), start+i*60/1000)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return n
}

func benchmarkReplay(b *testing.B, path string, records int) {
	b.Helper()
	defer perEvent(b, records)()
	for b.Loop() {
		var out, errs strings.Builder
		status := mainExit(environment{stdout: &out, stderr: &errs, args: []string{"replay", "--json", "--data", b.TempDir(), path}})
		var r report
		if err := json.Unmarshal([]byte(out.String()), &r); err != nil || status != exitDone || r.Records != int64(records) {
			b.Fatalf("exit status %d, %d records, want %d: %s", status, r.Records, records, errs.String())
		}
	}
}

func benchmarkPlain(b *testing.B, path string, records int) {
	b.Helper()
	defer perEvent(b, records)()
	for b.Loop() {
		if n := countPlain(b, path); n != records {
			b.Fatalf("%d records, want %d", n, records)
		}
	}
}

// plainKey is what the plain implementation counts by.
type plainKey struct {
	minute    int64
	item, typ string
}

type plainSummary struct {
	events  int
	viewers *hyperloglog.Sketch
}

// countPlain counts a file of events, and returns how many there were.
func countPlain(b *testing.B, path string) (records int) {
	b.Helper()
	counts := make(map[plainKey]*plainSummary)
	seen := make(map[string]struct{})
	add := func(ms int64, item, user, typ, id string) {
		records++
		if id != "" {
			if _, again := seen[id]; again {
				return
			}
			seen[id] = struct{}{}
		}
		key := plainKey{ms / 60_000, item, typ}
		s := counts[key]
		if s == nil {
			s = &plainSummary{viewers: hyperloglog.New14()}
			counts[key] = s
		}
		s.events++
		s.viewers.Insert([]byte(user))
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			b.Fatal(err)
		}
		plainCSV(b, z, add)
	} else {
		plainJSON(b, f, add)
	}
	return records
}

func plainCSV(b *testing.B, r io.Reader, add func(ms int64, item, user, typ, id string)) {
	b.Helper()
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	for n := 0; ; n++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			b.Fatal(err)
		}
		if n == 0 {
			continue // ts_ms,user,item,type,event_id,bot
		}
		ms, err := strconv.ParseInt(row[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		add(ms, strings.Clone(row[2]), row[1], strings.Clone(row[3]), strings.Clone(row[4]))
	}
}

func plainJSON(b *testing.B, r io.Reader, add func(ms int64, item, user, typ, id string)) {
	b.Helper()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var e struct {
			ID, Type, Item, User string
			Time                 int64
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			b.Fatal(err)
		}
		add(e.Time, e.Item, e.User, e.Type, e.ID)
	}
	if err := lines.Err(); err != nil {
		b.Fatal(err)
	}
}

// perEvent returns what to call at the end of a benchmark whose iterations have
// that many events. CPU time stands beside the clock's, which says little on a
// machine with other work.
func perEvent(b *testing.B, events int) func() {
	b.Helper()
	before := cpuTime(b)
	return func() {
		n := float64(b.N * events)
		b.ReportMetric(float64(cpuTime(b)-before)/n, "cpu-ns/event")
		b.ReportMetric((cpuTime(b)-before).Seconds()/n*1e9/(24*time.Hour).Seconds(), "cores-for-1e9-a-day")
		b.ReportMetric(n/b.Elapsed().Seconds()/1e6, "Mevents/s")
		b.ReportMetric(0, "ns/op")
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
