package sinks

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of all deliverers. A nil *Metrics measures nothing.
type Metrics struct {
	seals    *prometheus.CounterVec
	failures *prometheus.CounterVec
	stopped  *prometheus.GaugeVec
	seconds  *prometheus.HistogramVec
}

// NewMetrics registers the metrics of the sinks.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	sink := []string{"sink"}
	m := &Metrics{
		seals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_sink_seals_total",
			Help: "Seals that are in the sink for good. Stands still while the sink is away; the outbox keeps what waits.",
		}, sink),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_sink_failures_total",
			Help: "Deliveries that failed and are tried again. Some are usual when the sink is restarted; the log says why each time the reason changes.",
		}, sink),
		stopped: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidemark_sink_stopped",
			Help: "1 while the sink cannot go on before somebody mends it: the log and /v1/status say what to do.",
		}, sink),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tidemark_sink_delivery_seconds",
			Help:    "Time of a delivery that succeeded. Above a second the sink cannot take more often than it does.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 8),
		}, sink),
	}
	reg.MustRegister(m.seals, m.failures, m.stopped, m.seconds)
	return m
}

func (m *Metrics) delivered(sink string, seals int) {
	if m != nil {
		m.seals.WithLabelValues(sink).Add(float64(seals))
	}
}

func (m *Metrics) observe(sink string, took time.Duration) {
	if m != nil {
		m.seconds.WithLabelValues(sink).Observe(took.Seconds())
	}
}

func (m *Metrics) failed(sink string) {
	if m != nil {
		m.failures.WithLabelValues(sink).Inc()
	}
}

func (m *Metrics) stop(sink string, stopped bool) {
	if m == nil {
		return
	}
	value := 0.0
	if stopped {
		value = 1
	}
	m.stopped.WithLabelValues(sink).Set(value)
}
