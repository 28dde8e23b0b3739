package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"tidemark/windows/windowstest"
)

const (
	gibibyte = 1 << 30
	// manyStart is the minute of the streams below, Unix ms.
	manyStart = 1_767_225_600_000
)

// peakOf runs the program and returns its largest resident memory, in bytes, as
// the kernel has it while it runs. (What wait tells includes the test itself.)
func peakOf(t *testing.T, c call) (r result, peak int64) {
	t.Helper()
	cmd := c.command(t)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		if m := highWater(cmd.Process.Pid); m > peak {
			peak = m
		}
		select {
		case <-done:
			return result{exitStatus(cmd.ProcessState), out.String(), errs.String()}, peak
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// highWater returns a process's VmHWM in bytes, 0 when it is gone.
func highWater(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}

// writeMany writes a CSV file, compressed, line by line.
func writeMany(t *testing.T, lines int, line func(buf []byte, i int) []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "many.csv.zst")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(z, 1<<20)
	fmt.Fprintln(w, "ts_ms,user,item")
	var buf []byte
	for i := range lines {
		buf = line(buf[:0], i)
		if _, err := w.Write(buf); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// 10 million events with 3 million different items in one minute: the memory is
// bounded, counts of the site are exact, and the items that found no slot are
// answered by count-min, the highest of them in the ranking by name.
func TestMillionsOfItemsInAMinuteFitInMemory(t *testing.T) {
	const (
		events = 10_000_000
		cold   = 3_000_000 // items, three times each …
		each   = 3
		hot    = 500 // … and then the hot ones, when every slot is taken
		often  = (events - cold*each) / hot
		users  = 1_000_000
	)
	file := writeMany(t, events, func(b []byte, i int) []byte {
		b = strconv.AppendInt(b, manyStart+int64(i)%60_000, 10)
		b = append(b, ",u"...)
		b = strconv.AppendInt(b, int64(i)%users, 10)
		if i < cold*each {
			b = append(b, ",cold-"...)
			b = strconv.AppendInt(b, int64(i)%cold, 10)
		} else {
			b = append(b, ",hot-"...)
			b = strconv.AppendInt(b, int64(i)%hot, 10)
		}
		return append(b, '\n')
	})
	data := newFolder(t)
	r, peak := peakOf(t, call{args: data.args("replay", "--json", file)})
	if r.status != 0 {
		t.Fatalf("replay: exit status %d\n%s", r.status, r.stderr)
	}
	t.Logf("resident at most %d MiB", peak>>20)
	if peak >= gibibyte {
		t.Errorf("resident memory rose to %d MiB", peak>>20)
	}
	out := parseOutcomes(t, r.stdout)
	out.checkSum(t, events)
	if out.counted() != events {
		t.Errorf("%v", out.Outcomes)
	}

	server := data.serve(t)
	var site answer
	server.ask(t, "/v1/viewers", url.Values{}, &site)
	if got := site.Counts["view"]; got != (number{events, events, events, "exact"}) {
		t.Errorf("the site is counted %+v", got)
	}
	if v := site.Viewers.Value; v < users*965/1000 || v > users*1035/1000 || site.Viewers.Method != "hll" {
		t.Errorf("viewers of the site are %+v, the truth is %d", *site.Viewers, users)
	}
	byMethod := make(map[string]int)
	for i := range 200 {
		name := fmt.Sprintf("cold-%d", i*(cold/200))
		var a answer
		server.ask(t, "/v1/viewers", url.Values{"item": {name}}, &a)
		checkInside(t, name, a, each, each)
		byMethod[a.Counts["view"].Method]++
	}
	t.Logf("of 200 items: %v", byMethod)
	// Where an item has a slot in its user's partition, it has none in the others.
	if byMethod["count-min"] != 200 {
		t.Errorf("every window was over its budget, but: %v", byMethod)
	}

	var top ranking
	server.ask(t, "/v1/top", url.Values{"by": {"views"}, "limit": {strconv.Itoa(hot)}}, &top)
	found := 0
	for _, i := range top.Items {
		if strings.HasPrefix(i.Item, "hot-") && i.Views.Low <= often && often <= i.Views.High {
			found++
			if i.Views.Method != "count-min" {
				t.Errorf("%q has no slot, and its views are %+v", i.Item, i.Views)
			}
		}
	}
	if found < hot*99/100 {
		t.Errorf("%d of the %d hot items are in the ranking inside their bounds", found, hot)
	}
}

// checkInside checks that the truth lies inside the bounds of an answer.
func checkInside(t *testing.T, what string, a answer, views, viewers uint64) {
	t.Helper()
	c, v := a.Counts["view"], *a.Viewers
	if c.Low > views || views > c.High || c.Low > c.Value || c.Value > c.High {
		t.Errorf("%s: %d views, the answer is %+v", what, views, c)
	}
	if v.Low > viewers || viewers > v.High || v.Low > v.Value || v.Value > v.High {
		t.Errorf("%s: %d viewers, the answer is %+v", what, viewers, v)
	}
	if (c.Method == "count-min") != (v.Method == "count-min") {
		t.Errorf("%s: views by %s and viewers by %s", what, c.Method, v.Method)
	}
}

// 10,000 late minutes, every one open until the end, fit as well, and are exact.
func TestTenThousandOpenMinutesFitInMemory(t *testing.T) {
	const (
		minutes = 10_000
		lines   = 60 * minutes
	)
	event := func(i int) windowstest.Event {
		return windowstest.Event{
			Time: manyStart - int64(i*7919%minutes)*60_000, // 7919 is prime: a walk through all minutes
			User: fmt.Sprintf("u%d", i%5003), Item: fmt.Sprintf("item-%d", i%41), Type: "view",
		}
	}
	events := make([]windowstest.Event, lines)
	for i := range events {
		events[i] = event(i)
	}
	o := windowstest.NewOracle(events)
	file := writeMany(t, lines, func(b []byte, i int) []byte {
		return fmt.Appendf(b, "%d,%s,%s\n", events[i].Time, events[i].User, events[i].Item)
	})
	// A budget that holds them all, and one that does not.
	for _, memory := range []string{"700MiB", "64MiB"} {
		t.Run(memory, func(t *testing.T) {
			data := newFolder(t)
			r, peak := peakOf(t, call{args: data.args("replay", "--json", "--window-memory", memory, file)})
			if r.status != 0 {
				t.Fatalf("replay: exit status %d\n%s", r.status, r.stderr)
			}
			t.Logf("resident at most %d MiB", peak>>20)
			if peak >= gibibyte {
				t.Errorf("resident memory rose to %d MiB", peak>>20)
			}
			parseOutcomes(t, r.stdout).checkSum(t, lines)
			e := newExaminer(data.serve(t), o, 1)
			e.types = []string{"view"}
			e.examine(t, 4)
			e.verdict(t)
		})
	}
}

// With 1,000 slots the top 100 of a busy hour keeps a recall of at least 0.99
// inside its bounds.
func TestAThousandSlotsKeepTheTopHundred(t *testing.T) {
	shape := windowstest.Shape{
		Seed: 4, Events: 600_000, Items: 60_000, Users: 50_000, Zipf: 1.05,
		Start: time.UnixMilli(manyStart), Span: time.Hour,
	}
	events := shape.Stream()
	o := windowstest.NewOracle(events)
	data := newFolder(t)
	data.replay(t, "--max-items-per-window=1000", writeEvents(t, "busy.csv", events))
	from, to := o.Span()
	q := windowstest.Question{From: from, To: to}
	truth := make(map[string]windowstest.Tally)
	for _, r := range o.Items(q) {
		truth[r.Item] = r.Tally
	}
	var top ranking
	data.ask(t, "/v1/top", url.Values{"by": {"views"}, "limit": {"100"}}, &top)
	answered := make(map[string]bool)
	methods := make(map[string]int)
	for _, i := range top.Items {
		n := truth[i.Item]
		methods[i.Views.Method]++
		if i.Views.Low > n.Events || n.Events > i.Views.High {
			t.Errorf("%q: %d views, the answer is %+v", i.Item, n.Events, i.Views)
			continue
		}
		answered[i.Item] = true
	}
	hits := 0
	for _, r := range o.Top(q, windowstest.Views, 100) {
		if answered[r.Item] {
			hits++
		}
	}
	t.Logf("recall %d of 100, certified %t, methods %v", hits, top.Certified, methods)
	if hits < 99 {
		t.Errorf("%d of the top 100 are in the answer inside their bounds", hits)
	}
	if methods["count-min"] == 0 {
		t.Error("nothing was over the budget: this shows nothing")
	}
}
