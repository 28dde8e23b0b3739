package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// patience is how long a batch is sent again without being taken.
	patience = 2 * time.Minute
	// requestTimeout is how long a request may take.
	requestTimeout = time.Minute
	maxAnswer      = 1 << 20
)

// Client sends batches of events to one server. It is safe for concurrent use.
type Client struct {
	url, key string
	http     http.Client

	requests, retried atomic.Int64
	latencies         latencies
}

// NewClient returns a client of the POST /v1/events at a URL, with a key unless that is
// "", over at most so many connections. Close it.
func NewClient(url, key string, connections int) *Client {
	return &Client{
		url: url, key: key,
		http: http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				MaxIdleConnsPerHost: connections,
				IdleConnTimeout:     time.Minute,
				DisableCompression:  true,
			},
			Timeout: requestTimeout,
		},
	}
}

// Close gives up connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Receipt is what a server answers about a batch.
type Receipt struct {
	Accepted int64 `json:"accepted"`
	Rejected int64 `json:"rejected"`
	Errors   []struct {
		Line   int64  `json:"line"`
		Reason string `json:"reason"`
	} `json:"errors"`
}

// Refusal is why a server takes a batch neither now nor later.
type Refusal struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Taken  int64  `json:"taken"` // of a batch that is not the next one of its import: how far that is
}

// Error returns the reason.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%d %s: %s", r.Status, http.StatusText(r.Status), r.Detail)
}

// Deliver sends a batch, as NDJSON, with a query string, until it is taken (L2). A
// server that refuses it for good is a *Refusal.
func (c *Client) Deliver(ctx context.Context, query string, body []byte) (Receipt, error) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, 2*time.Second
	receipt, err := backoff.Retry(ctx, func() (Receipt, error) { return c.post(ctx, query, body) },
		backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(patience),
		backoff.WithNotify(func(error, time.Duration) { c.retried.Add(1) }))
	if err != nil {
		return receipt, fmt.Errorf("events were not taken: %w", err)
	}
	return receipt, nil
}

// post sends a batch once. An error says whether it is worth trying again, and when.
func (c *Client) post(ctx context.Context, query string, body []byte) (receipt Receipt, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+query, bytes.NewReader(body))
	if err != nil {
		return receipt, backoff.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	began := time.Now()
	c.requests.Add(1)
	resp, err := c.http.Do(req)
	if err != nil {
		return receipt, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return receipt, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusUnprocessableEntity {
		if err := json.Unmarshal(text, &receipt); err != nil {
			return receipt, backoff.Permanent(fmt.Errorf("%s, and no receipt of events: %w", resp.Status, err))
		}
		c.latencies.add(time.Since(began))
		return receipt, nil
	}
	refusal := &Refusal{Detail: "without a reason"}
	_ = json.Unmarshal(text, refusal) // a proxy's refusal need not be a problem document
	refusal.Status = resp.StatusCode
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || seconds < 0 {
			seconds = 1
		}
		return receipt, fmt.Errorf("%w, %w", refusal, backoff.RetryAfter(seconds))
	case resp.StatusCode >= http.StatusInternalServerError:
		return receipt, refusal
	default:
		return receipt, backoff.Permanent(refusal)
	}
}
