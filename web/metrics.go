package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of the requests. A nil *Metrics measures nothing.
type Metrics struct{ seconds *prometheus.HistogramVec }

// NewMetrics registers the metrics of the requests.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tidemark_http_request_seconds",
		Help:    "Time that requests took, by path (empty: no such path) and status. A 503 means too many questions at once, or one that takes too long; a 500 has its reason in the log.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
	}, []string{"path", "status"})}
	reg.MustRegister(m.seconds)
	return m
}

func (m *Metrics) measure(path string, w *response, begin time.Time) {
	if m != nil {
		m.seconds.WithLabelValues(path, strconv.Itoa(w.status)).Observe(time.Since(begin).Seconds())
	}
}

// response remembers the status that was sent.
type response struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
