package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/cmd/traffic"
	"tidemark/windows/windowstest"
)

// sentReport is what load --json prints, as far as the tests ask.
type sentReport struct {
	Sent, Accepted, Rejected, Requests, Retried int64
	Seconds                                     float64
	EventsPerSecond                             int64 `json:"events_per_second"`
	Latency                                     struct {
		P50 float64 `json:"p50_ms"`
		P99 float64 `json:"p99_ms"`
	}
}

// expect returns what a stream of load holds: its lines, different events and views,
// and the views of its most viewed item.
func expect(t *testing.T, c traffic.Config) (lines int64, different, views, top uint64) {
	t.Helper()
	c.Start, c.Items, c.Viral = time.Now(), 10_000, 15*time.Second
	s, err := traffic.NewStream(c)
	if err != nil {
		t.Fatal(err)
	}
	ids, items := make(map[string]bool), make(map[string]uint64)
	for {
		b, _, ok, err := s.Next(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return lines, different, views, top
		}
		lines++
		var e struct{ ID, Item, Type string }
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatal(err)
		}
		if ids[e.ID] {
			continue
		}
		ids[e.ID] = true
		different++
		if e.Type == "" {
			views++
			items[e.Item]++
			top = max(top, items[e.Item])
		}
	}
}

// The server is killed and started again under a load: every event is taken, and
// counts once.
func TestLoadOutlivesAKilledServer(t *testing.T) {
	data := newFolder(t)
	p := data.start(t)
	cmd := call{args: []string{"load", "--server", p.url, "--rate=4000", "--duration=3s", "--seed=5", "--batch=100", "--json"}}.command(t)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		var o struct{ Counts map[string]number }
		for o.Counts["*"].Value < uint64(3000*(n+1)) {
			p.ask(t, "/v1/counts", url.Values{"type": {"*"}, "last": {"all"}}, &o)
		}
		p.end(t, syscall.SIGKILL)
		p = data.start(t, "--listen="+strings.TrimPrefix(p.url, "http://"))
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var r sentReport
	decode(t, out.String(), &r)
	lines, different, views, top := expect(t, traffic.Config{Seed: 5, Rate: 4000, Duration: 3 * time.Second})
	if r.Sent != lines || r.Accepted != lines || r.Rejected != 0 || r.Requests < lines/100 || r.Latency.P50 <= 0 || r.EventsPerSecond <= 0 {
		t.Errorf("%d events were to be sent: %s", lines, out.String())
	}
	settled(t, p.server, int(different))
	var a answer
	p.ask(t, "/v1/counts", url.Values{"last": {"all"}}, &a)
	if got := a.Counts["view"].Value; got != views {
		t.Errorf("%d views are counted, the stream has %d", got, views)
	}
	var ranked ranking
	p.ask(t, "/v1/top", url.Values{"last": {"all"}}, &ranked)
	if len(ranked.Items) == 0 || ranked.Items[0].Item != "video-0" || ranked.Items[0].Views.Value != top {
		t.Errorf("the most viewed item is %+v, in the stream it has %d views", ranked.Items, top)
	}
	// Another run of the same stream is other events.
	again := tidemark(t, "load", "--server", p.url, "--rate=4000", "--duration=1s", "--seed=5")
	lines, more, _, _ := expect(t, traffic.Config{Seed: 5, Rate: 4000, Duration: time.Second})
	if want := fmt.Sprintf("sent       %d,%03d events\n", lines/1000, lines%1000); !strings.HasPrefix(again, want) {
		t.Errorf("load printed\n%s, it must begin with %s", again, want)
	}
	settled(t, p.server, int(different+more))
}

// A load without a server to send to says so at once, and one that nothing is taken of
// says what is wrong.
func TestLoadWithoutAServer(t *testing.T) {
	r := call{args: []string{"load", "--server=http://127.0.0.1:1"}}.run(t)
	if r.status != 1 || !strings.Contains(r.stderr, "tidemark serve") {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
	r = call{args: []string{"load", "--rate=0", "--duration=soon", "--batch=0"}}.run(t)
	for _, name := range []string{"rate", "duration", "batch"} {
		if r.status != 2 || !strings.Contains(r.stderr, name+": ") {
			t.Errorf("exit status %d, and %s is not named\n%s", r.status, name, r.stderr)
		}
	}
}

// A file is sent as if it happened now, faster: with its items, people and dimensions,
// in the time that it takes then, and once more as other events.
func TestLoadOfAFile(t *testing.T) {
	data := newFolder(t)
	p := data.start(t, "--dimensions=country")
	shape := windowstest.Shape{
		Seed: 4, Events: 500, Items: 50, Users: 100, Start: time.Now().Add(-48 * time.Hour), Span: 10 * time.Minute,
		IDs: true, Duplicates: 0.1, Dims: [][]string{{"DE", "FR"}},
	}
	events := shape.Stream()
	path := writeEvents(t, "events.csv", events, "country")
	for run := 1; run <= 2; run++ {
		r := call{args: []string{"load", "--server", p.url, "--file", path, "--speed=600", "--json"}}.run(t)
		var sent sentReport
		decode(t, r.stdout, &sent)
		if r.status != 0 || sent.Sent != 500 || sent.Accepted != 500 {
			t.Fatalf("exit status %d\n%s%s", r.status, r.stdout, r.stderr)
		}
		if sent.Seconds < 0.9 {
			t.Errorf("ten minutes were sent at a speed of 600 in %v s", sent.Seconds)
		}
		o := windowstest.NewOracle(windowstest.WithoutDuplicates(events), "country")
		settled(t, p.server, run*o.Events())
		var a answer
		p.ask(t, "/v1/viewers", url.Values{"last": {"2m"}}, &a)
		if a.Counts["view"].Value != uint64(run*o.Events()) || a.Viewers.Low > uint64(o.Users()) || a.Viewers.High < uint64(o.Users()) {
			t.Errorf("run %d: %+v, the file has %d events of %d people", run, a, o.Events(), o.Users())
		}
		german := o.Site(windowstest.Question{From: 0, To: 1 << 50, Dimension: "country", Value: "DE"})
		p.ask(t, "/v1/counts", url.Values{"last": {"2m"}, "dimension": {"country"}, "value": {"DE"}}, &a)
		if a.Counts["view"].Value != uint64(run)*german.Events {
			t.Errorf("run %d: %+v, the file has %d of Germany", run, a, german.Events)
		}
	}
}
