package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The benchmarks of this file send events from this process to the program's own, on
// the same machine, with a client that costs little. Beside the clock's figures stands
// the server's CPU time, which says more on a machine with other work.

// sending is events in the form of requests, each time with other IDs.
type sending struct {
	address string
	number  atomic.Uint64 // of the last event
	items   int
	seed    atomic.Uint64
}

// request is a POST of several events, whose IDs can be replaced.
type request struct {
	text []byte
	ids  []int // where each ID stands
}

const (
	idDigits  = 16
	benchUser = 1_000_000
)

// request makes a request of so many events: views of Zipf items by a million users.
func (s *sending) request(events int) *request {
	r := rand.New(rand.NewPCG(s.seed.Add(1), 2))
	var body bytes.Buffer
	q := &request{}
	items := rand.NewZipf(r, 1.1, 1, uint64(max(s.items, 2)-1))
	for range events {
		item := uint64(0)
		if s.items > 1 {
			item = items.Uint64()
		}
		body.WriteString(`{"id":"`)
		q.ids = append(q.ids, body.Len())
		fmt.Fprintf(&body, `%0*d","type":"view","item":"video-%d","user":"user-%d","country":"DE","device":"phone"}`+"\n", idDigits, 0, item, r.IntN(benchUser))
	}
	head := fmt.Sprintf("POST /v1/events HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n", s.address, body.Len())
	for i := range q.ids {
		q.ids[i] += len(head)
	}
	q.text = append([]byte(head), body.Bytes()...)
	return q
}

// renew gives the events other IDs.
func (s *sending) renew(q *request) {
	last := s.number.Add(uint64(len(q.ids)))
	for i, at := range q.ids {
		n := last - uint64(i)
		for d := idDigits - 1; d >= 0; d-- {
			q.text[at+d] = byte('0' + n%10)
			n /= 10
		}
	}
}

// connection is one to the server.
type connection struct {
	net.Conn
	answers *bufio.Reader
}

func (s *sending) connect(b *testing.B) *connection {
	b.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		b.Fatal(err)
	}
	return &connection{c, bufio.NewReader(c)}
}

// send sends a request, and returns once it is answered well.
func (c *connection) send(q *request) error {
	if _, err := c.Write(q.text); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return err
}

// startSending starts a server to send to.
func startSending(b *testing.B, items int) (*process, *sending) {
	b.Helper()
	p := newFolder(b).start(b)
	return p, &sending{address: strings.TrimPrefix(p.url, "http://"), items: items}
}

// cpu returns the CPU time that a process has taken.
func (p *process) cpu(b *testing.B) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	// The name, in parentheses, may hold blanks; behind it user and system time are the
	// 12th and 13th field, in hundredths of a second.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// drive sends b.N requests of so many events over so many connections, and waits until
// they are counted. It returns how long each took.
func drive(b *testing.B, p *process, s *sending, connections, events int) (took []time.Duration) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	var mu sync.Mutex
	var running sync.WaitGroup
	before := s.number.Load()
	cpu := p.cpu(b)
	b.ResetTimer()
	for range connections {
		c, q := s.connect(b), s.request(events)
		running.Go(func() {
			defer c.Close()
			var mine []time.Duration
			for left.Add(-1) >= 0 {
				s.renew(q)
				began := time.Now()
				if err := c.send(q); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			took = append(took, mine...)
			mu.Unlock()
		})
	}
	running.Wait()
	for counted(b, p.server, "") < s.number.Load() {
		time.Sleep(5 * time.Millisecond)
	}
	b.StopTimer()
	n := float64(s.number.Load() - before)
	b.ReportMetric(n/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(p.cpu(b)-cpu)/n, "server-cpu-ns/event")
	b.ReportMetric(0, "ns/op")
	slices.Sort(took)
	return took
}

func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Seconds() * 1000
}

// counted returns how many events are counted: of all, or of an item.
func counted(b *testing.B, s *server, query string) uint64 {
	b.Helper()
	resp, err := http.Get(s.url + "/v1/counts?last=1h" + query)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	var a answer
	decode(b, string(text), &a)
	return a.Counts["view"].Value
}

// BenchmarkServe measures a server that takes events, until they are durable and counted.
func BenchmarkServe(b *testing.B) {
	for _, how := range []struct {
		name                       string
		connections, events, items int
	}{
		{"batches-of-1000", 4, 1000, 10_000},
		{"batches-of-1000-of-one-item", 4, 1000, 1},
		{"single-events-64-connections", 64, 1, 10_000},
	} {
		b.Run(how.name, func(b *testing.B) {
			p, s := startSending(b, how.items)
			b.ReportMetric(quantile(drive(b, p, s, how.connections, how.events), 0.99), "p99-ms")
		})
	}
	b.Run("event-to-answer-at-250000-a-second", benchmarkEventToAnswer)
}

// benchmarkEventToAnswer measures how long it takes from before an event is sent until
// an answer has it, while others are sent at half of what a server is to take.
func benchmarkEventToAnswer(b *testing.B) {
	p, s := startSending(b, 10_000)
	stop := make(chan struct{})
	var feeding sync.WaitGroup
	for range 2 {
		c, q := s.connect(b), s.request(1000)
		feeding.Go(func() {
			defer c.Close()
			tick := time.NewTicker(8 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				s.renew(q)
				if err := c.send(q); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	time.Sleep(time.Second)
	began, before := time.Now(), s.number.Load()
	var took []time.Duration
	b.ResetTimer()
	for i := range b.N {
		item := fmt.Sprintf("probe-%d", i)
		sent := time.Now()
		resp, err := http.Post(p.url+"/v1/events", "application/json", strings.NewReader(`{"item":"`+item+`","user":"u"}`))
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		for counted(b, p.server, "&item="+item) == 0 {
			time.Sleep(time.Millisecond)
		}
		took = append(took, time.Since(sent))
		time.Sleep(2 * time.Millisecond)
	}
	b.StopTimer()
	b.ReportMetric(float64(s.number.Load()-before)/time.Since(began).Seconds(), "events/s")
	close(stop)
	feeding.Wait()
	slices.Sort(took)
	b.ReportMetric(quantile(took, 0.5), "p50-ms")
	b.ReportMetric(quantile(took, 0.99), "p99-ms")
	b.ReportMetric(0, "ns/op")
}
