package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/windows/windowstest"
)

// liveLimits let all clients of a test come from one address.
var liveLimits = []string{"--live-clients", "20000", "--limit-requests", "0", "--limit-events", "0"}

// dial opens a socket that watches a question.
func (s *server) dial(question, after string) (*websocket.Conn, error) {
	d := websocket.Dialer{Subprotocols: []string{"tidemark.v1"}, ReadBufferSize: 512, WriteBufferSize: 512}
	c, _, err := d.Dial("ws"+strings.TrimPrefix(s.url, "http")+"/v1/live", nil)
	if err != nil {
		return nil, err
	}
	return c, c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"watch":"s","url":%q,"after":%q}`, question, after))
}

// dialAll opens so many, some at once.
func (s *server) dialAll(tb testing.TB, n int, question string) []*websocket.Conn {
	tb.Helper()
	all := make([]*websocket.Conn, n)
	var next atomic.Int64
	var dialling sync.WaitGroup
	for range 16 {
		dialling.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				c, err := s.dial(question, "")
				if err != nil {
					tb.Error(err)
					return
				}
				all[i] = c
			}
		})
	}
	dialling.Wait()
	tb.Cleanup(func() {
		for _, c := range all {
			if c != nil {
				_ = c.Close()
			}
		}
	})
	if tb.Failed() {
		tb.FailNow()
	}
	return all
}

// resident returns the memory that a process has, bytes: without what the kernel keeps
// for its sockets.
func (p *process) resident(tb testing.TB) float64 {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
	kib, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
	if err != nil {
		tb.Fatal(err)
	}
	return kib * 1024
}

// BenchmarkLiveClients has many sockets watch one question whose answer changes every
// second: the time from the instant that an answer is of until a client has it.
func BenchmarkLiveClients(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("BENCH_CLIENTS"))
	if err != nil {
		n = 15_000
	}
	p := newFolder(b).start(b, liveLimits...)
	before := p.resident(b)
	clients := p.dialAll(b, n, "/v1/counts?last=5m")
	memory := (p.resident(b) - before) / float64(n)

	var mu sync.Mutex
	var took []time.Duration
	var listening sync.WaitGroup
	stop := make(chan struct{})
	for _, c := range clients {
		listening.Go(func() {
			for {
				_, text, err := c.ReadMessage()
				now := time.Now()
				if err != nil {
					return
				}
				_, rest, ok := bytes.Cut(text, []byte(`"to":"`))
				if !ok {
					continue // a ping
				}
				of, err := time.Parse(time.RFC3339Nano, string(rest[:bytes.IndexByte(rest, '"')]))
				if err != nil {
					continue
				}
				mu.Lock()
				took = append(took, now.Sub(of))
				mu.Unlock()
			}
		})
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
				_, _, _ = send(p.url, []windowstest.Event{{Item: "a", User: strconv.Itoa(i), Type: "view"}})
			}
		}
	})
	time.Sleep(3 * time.Second) // the first answers
	mu.Lock()
	took = took[:0]
	mu.Unlock()
	cpu := p.cpu(b)
	const seconds = 10
	for b.Loop() {
		time.Sleep(seconds * time.Second)
	}
	cpu = p.cpu(b) - cpu
	close(stop)
	sending.Wait()
	for _, c := range clients {
		_ = c.Close()
	}
	listening.Wait()
	slices.Sort(took)
	if len(took) == 0 {
		b.Fatal("nothing was heard")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "ms-p99")
	b.ReportMetric(memory, "server-B/client")
	b.ReportMetric(cpu.Seconds()/float64(b.N*seconds), "server-cores")
	b.ReportMetric(float64(len(took))/float64(n*b.N*seconds), "answers/client/s")
}

// metric returns the value of a metric without labels; 0 if there is none.
func (s *server) metric(tb testing.TB, name string) (value float64) {
	tb.Helper()
	resp, err := http.Get(s.url + "/metrics")
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			if value, err = strconv.ParseFloat(text, 64); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return value
}

// BenchmarkLiveQuestions has 1,000 different questions watched, of the viewers of an
// item each, after 300,000 events of up to a million items: the server's CPU.
func BenchmarkLiveQuestions(b *testing.B) {
	p, s := startSending(b, benchItemsKnown)
	q, c := s.request(1000), s.connect(b)
	for range 300 {
		s.renew(q)
		if err := c.send(q); err != nil {
			b.Fatal(err)
		}
	}
	for counted(b, p.server, "") < s.number.Load() {
		time.Sleep(5 * time.Millisecond)
	}
	idle := p.cpu(b)
	time.Sleep(5 * time.Second)
	idle = (p.cpu(b) - idle) / 5
	const questions, sockets = 1000, 40
	for i := range sockets {
		d := websocket.Dialer{}
		conn, _, err := d.Dial("ws://"+s.address+"/v1/live", nil)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		for j := range questions / sockets {
			if err := conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"watch":"%d","url":"/v1/viewers?item=video-%d&last=%dm"}`, j, i*sockets+j, 5+55*(j%2))); err != nil {
				b.Fatal(err)
			}
		}
		go func() {
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
			}
		}()
	}
	for p.metric(b, "tidemark_live_questions") < questions {
		time.Sleep(100 * time.Millisecond)
	}
	const seconds = 10
	cpu := p.cpu(b)
	for b.Loop() {
		time.Sleep(seconds * time.Second)
	}
	cpu = p.cpu(b) - cpu
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(cpu.Seconds()/float64(b.N*seconds)-idle.Seconds(), "server-cores")
}

const benchItemsKnown = 1_000_000
