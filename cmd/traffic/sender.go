package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
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

const (
	// patience is how long a batch is sent again without being taken.
	patience = 2 * time.Minute
	// grace is how long requests under way may take when no more are to be made.
	grace = 5 * time.Second
	// requestTimeout is how long a request may take.
	requestTimeout = time.Minute
	maxAnswer      = 1 << 20
)

// Sender brings events to a server. It is used once; Report is safe for concurrent use.
type Sender struct {
	cfg    SenderConfig
	client http.Client
	begun  atomic.Int64 // Unix ns
	ended  atomic.Int64

	sent, accepted, rejected, retried, requests atomic.Int64
	latencies                                   latencies

	mu      sync.Mutex // guards what follows
	reasons []string
}

// NewSender returns a sender.
func NewSender(cfg SenderConfig) *Sender {
	return &Sender{
		cfg: cfg,
		client: http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				MaxIdleConnsPerHost: cfg.Connections,
				IdleConnTimeout:     time.Minute,
				DisableCompression:  true,
			},
			Timeout: requestTimeout,
		},
	}
}

// Run sends all that the source has, and returns once it is taken. The first thing that
// can't be mended by sending again ends it. If ctx ends, what is under way is waited for
// a little, nothing more is sent, and that is no error.
func (s *Sender) Run(ctx context.Context, source Source) error {
	s.begun.Store(time.Now().UnixNano())
	defer func() { s.ended.Store(time.Now().UnixNano()) }()
	defer s.client.CloseIdleConnections()

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

// deliver sends a batch until it is taken (L2).
func (s *Sender) deliver(ctx context.Context, b *batch) error {
	s.sent.Add(int64(b.events))
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, 2*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, s.post(ctx, b.body) },
		backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(patience),
		backoff.WithNotify(func(error, time.Duration) { s.retried.Add(1) }))
	if err != nil {
		return fmt.Errorf("events were not taken: %w", err)
	}
	return nil
}

// receipt is what a server answers.
type receipt struct {
	Accepted int64 `json:"accepted"`
	Rejected int64 `json:"rejected"`
	Errors   []struct {
		Line   int64  `json:"line"`
		Reason string `json:"reason"`
	} `json:"errors"`
	Detail string `json:"detail"` // of a problem document
}

// post sends a batch once. An error says whether it is worth trying again, and when.
func (s *Sender) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if s.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.cfg.Key)
	}
	began := time.Now()
	s.requests.Add(1)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	var r receipt
	err = json.Unmarshal(text, &r)
	switch code := resp.StatusCode; {
	case code == http.StatusOK, code == http.StatusUnprocessableEntity:
		if err != nil {
			return backoff.Permanent(fmt.Errorf("%s, and no receipt of events: %w", resp.Status, err))
		}
		s.latencies.add(time.Since(began))
		s.taken(&r)
		return nil
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || seconds < 0 {
			seconds = 1
		}
		return fmt.Errorf("%s: %s: %w", resp.Status, r.Detail, backoff.RetryAfter(seconds))
	case code >= http.StatusInternalServerError:
		return fmt.Errorf("%s: %s", resp.Status, r.Detail)
	default:
		return backoff.Permanent(fmt.Errorf("%s: %s", resp.Status, r.Detail))
	}
}

// maxReasons is how many reasons of rejections are kept, each once.
const maxReasons = 10

func (s *Sender) taken(r *receipt) {
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
		Requests: s.requests.Load(), Retried: s.retried.Load(), Seconds: took.Seconds(), Latency: s.latencies.summary(),
	}
	r.EventsPerSecond = int64(float64(r.Accepted) / max(took.Seconds(), 1e-6))
	return r
}
