package traffic

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// SenderConfig says where events go, and how.
type SenderConfig struct {
	URL         string // of the server's POST /v1/events, parameters included
	Key         string // of the scope ingest; "" where none is asked
	Connections int    // that send at the same time; with 1 all arrives in the order of the source
	Batch       int    // events of a request, at most
}

// Limits of a SenderConfig: the second is the server's of a request.
const (
	MaxConnections = 1000
	MaxBatch       = 100_000
)

// grace is how long requests under way may take when no more are to be made.
const grace = 5 * time.Second

// Sender brings events to a server. It is used once; Report is safe for concurrent use.
type Sender struct {
	cfg    SenderConfig
	client *Client
	begun  atomic.Int64 // Unix ns
	ended  atomic.Int64

	sent, accepted, rejected atomic.Int64

	mu      sync.Mutex // guards what follows
	reasons []string
}

// NewSender returns a sender.
func NewSender(cfg SenderConfig) *Sender {
	return &Sender{cfg: cfg, client: NewClient(cfg.URL, cfg.Key, cfg.Connections)}
}

// Run sends all that the source has, and returns once it is taken. The first thing that
// can't be mended by sending again ends it. If ctx ends, what is under way is waited for
// a little, nothing more is sent, and that is no error.
func (s *Sender) Run(ctx context.Context, source Source) error {
	s.begun.Store(time.Now().UnixNano())
	defer func() { s.ended.Store(time.Now().UnixNano()) }()
	defer s.client.Close()

	produce, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	sending, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(produce, func() { time.AfterFunc(grace, giveUp) })()

	batches := make(chan *batch)
	free := make(chan *batch, s.cfg.Connections+1)
	for range cap(free) {
		free <- &batch{}
	}
	var workers sync.WaitGroup
	for range s.cfg.Connections {
		workers.Go(func() {
			for b := range batches {
				if err := s.deliver(sending, b); err != nil {
					stop(err)
					giveUp()
				}
				free <- b
			}
		})
	}
	p := pacer{source: source, events: s.cfg.Batch, out: batches, free: free}
	err := p.run(produce)
	close(batches)
	workers.Wait()
	if cause := context.Cause(produce); err == nil && ctx.Err() == nil {
		err = cause
	}
	return err
}

// deliver sends a batch until it is taken.
func (s *Sender) deliver(ctx context.Context, b *batch) error {
	s.sent.Add(int64(b.events))
	r, err := s.client.Deliver(ctx, "", b.body)
	if err == nil {
		s.taken(&r)
	}
	return err
}

// maxReasons is how many reasons of rejections are kept, each once.
const maxReasons = 10

func (s *Sender) taken(r *Receipt) {
	s.accepted.Add(r.Accepted)
	s.rejected.Add(r.Rejected)
	if len(r.Errors) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range r.Errors {
		if len(s.reasons) < maxReasons && !slices.Contains(s.reasons, e.Reason) {
			s.reasons = append(s.reasons, e.Reason)
		}
	}
}

// Report is what became of the events. Its JSON is part of the API.
type Report struct {
	Sent            int64    `json:"sent"` // events, each once
	Accepted        int64    `json:"accepted"`
	Rejected        int64    `json:"rejected"` // that are no events
	Reasons         []string `json:"reasons"`  // of those, the first different ones
	Requests        int64    `json:"requests"`
	Retried         int64    `json:"retried"` // requests that were sent again
	Seconds         float64  `json:"seconds"`
	EventsPerSecond int64    `json:"events_per_second"`
	Latency         Latency  `json:"latency"` // of the requests that were answered well
}

// Report returns how things stand.
func (s *Sender) Report() Report {
	took := time.Duration(0)
	if begun := s.begun.Load(); begun > 0 {
		end := s.ended.Load()
		if end == 0 {
			end = time.Now().UnixNano()
		}
		took = time.Duration(end - begun)
	}
	s.mu.Lock()
	reasons := append([]string{}, s.reasons...)
	s.mu.Unlock()
	r := Report{
		Sent: s.sent.Load(), Accepted: s.accepted.Load(), Rejected: s.rejected.Load(), Reasons: reasons,
		Requests: s.client.requests.Load(), Retried: s.client.retried.Load(), Seconds: took.Seconds(), Latency: s.client.latencies.summary(),
	}
	r.EventsPerSecond = int64(float64(r.Accepted) / max(took.Seconds(), 1e-6))
	return r
}
