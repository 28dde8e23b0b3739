package web

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// Metrics are those of the requests. A nil *Metrics measures nothing.
type Metrics struct {
	seconds            *prometheus.HistogramVec
	live, liveTopics   prometheus.Gauge
	liveTold, liveLost prometheus.Counter
	refused            *prometheus.CounterVec
	open               prometheus.Gauge
	cut                prometheus.Counter
}

// NewMetrics registers the metrics of the requests.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		open:       gauge("tidemark_http_connections", "Connections that are open, but for websockets. At --max-connections those that wait longest are closed."),
		cut:        counter("tidemark_http_connections_cut_total", "Connections that were closed to make room for new ones. If it grows, raise --max-connections, or look who holds so many."),
		live:       gauge("tidemark_live_clients", "Connections that watch questions, by websocket or server-sent events."),
		liveTopics: gauge("tidemark_live_questions", "Different questions that are watched: each is answered once a second."),
		liveTold:   counter("tidemark_live_messages_total", "Answers that were put into a client's mailbox."),
		liveLost:   counter("tidemark_live_too_slow_total", "Clients whose connection was closed because they did not read, or did not answer pings."),
	}
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tidemark_http_request_seconds",
		Help:    "Time that requests took, by path (empty: no such path) and status. A 503 means too many questions at once, or one that takes too long; a 500 has its reason in the log.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
	}, []string{"path", "status"})
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidemark_http_refused_total",
		Help: "Requests that their sender may not make, by reason. key: none, or one that is wrong or revoked; scope, binding: a key that may do other things; origin: a page that --allow-origins does not name; limit_requests, limit_events: more than --limit-requests or --limit-events let one client. The log has samples.",
	}, []string{"reason"})
	reg.MustRegister(m.seconds, m.refused, m.open, m.cut, m.live, m.liveTopics, m.liveTold, m.liveLost)
	return m
}

func (m *Metrics) measure(path string, w *response, begin time.Time) {
	if m != nil && !w.unmeasured {
		m.seconds.WithLabelValues(path, strconv.Itoa(w.status)).Observe(time.Since(begin).Seconds())
	}
}

// connected notes how many connections are open.
func (m *Metrics) connected(n int) {
	if m != nil {
		m.open.Set(float64(n))
	}
}

// madeRoom notes that a connection was closed for another one.
func (m *Metrics) madeRoom() {
	if m != nil {
		m.cut.Inc()
	}
}

// clients notes how many clients watch.
func (m *Metrics) clients(n int) {
	if m != nil {
		m.live.Set(float64(n))
	}
}

// watched notes how many questions are.
func (m *Metrics) watched(n int) {
	if m != nil {
		m.liveTopics.Set(float64(n))
	}
}

// told notes that so many mailboxes got a message.
func (m *Metrics) told(n int) {
	if m != nil {
		m.liveTold.Add(float64(n))
	}
}

// tooSlow notes that a client was left behind.
func (m *Metrics) tooSlow() {
	if m != nil {
		m.liveLost.Inc()
	}
}

// response remembers the status that was sent.
type response struct {
	http.ResponseWriter
	status     int
	unmeasured bool
}

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// refusals takes note of requests that their senders may not make.
type refusals struct {
	metrics *Metrics
	logger  *slog.Logger
	logged  rate.Sometimes // one a second: who is refused may come a thousand times
}

func (f *refusals) count(r *http.Request, p *problem) {
	if f.metrics != nil {
		f.metrics.refused.WithLabelValues(p.refused).Inc()
	}
	f.logged.Do(func() {
		args := []any{"reason", p.refused, "method", r.Method, "path", r.URL.Path, "detail", p.Detail}
		if v := visitorOf(r); v != nil {
			args = append(args, "client", v.address.String(), "key", v.keyID())
		}
		f.logger.InfoContext(r.Context(), "request refused", args...)
	})
}
