package journal

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are a journal's. A nil *Metrics measures nothing.
type Metrics struct {
	fsync       prometheus.Histogram
	groups      prometheus.Histogram
	bytes       prometheus.Counter
	appends     prometheus.Counter
	records     prometheus.Counter
	refused     *prometheus.CounterVec
	queue       prometheus.Gauge
	segments    prometheus.Gauge
	unavailable prometheus.Gauge
	ahead       prometheus.Gauge
}

// NewMetrics registers a journal's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		fsync: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tidemark_journal_fsync_seconds",
			Help:    "Time of one write and sync of the journal; every event waits for one before it is acknowledged. A median above 0.05 means that the disk is too slow or shared.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		groups: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tidemark_journal_groups_per_fsync",
			Help:    "Requests that shared one sync. Near 1 while many clients send: they wait for each other elsewhere.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidemark_journal_bytes_total",
			Help: "Bytes written to the journal and synced.",
		}),
		appends: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidemark_journal_appends_total",
			Help: "Requests that the journal acknowledged.",
		}),
		records: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidemark_journal_records_total",
			Help: "Records that the journal acknowledged.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_journal_refused_total",
			Help: "Requests that were not taken. full: more comes than the disk takes; unavailable: the disk fails, see the log.",
		}, []string{"reason"}),
		queue: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidemark_journal_queue_bytes",
			Help: "Bytes that wait to be written and synced. Near its limit requests are refused with 429.",
		}),
		segments: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidemark_journal_segments",
			Help: "Files of the journal. Grows without end if nothing is trimmed: see the retention of the journal.",
		}),
		unavailable: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidemark_journal_unavailable",
			Help: "1 while the disk does not take what is written and no event is acknowledged. Alarm on it: the disk is full, read-only or broken.",
		}),
		ahead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidemark_journal_stamp_ahead_seconds",
			Help: "How far the stamps of arriving events are ahead of the clock, since they never fall. Above 1: the clock was set back; events are judged by the stamp until it has caught up.",
		}),
	}
	reg.MustRegister(m.fsync, m.groups, m.bytes, m.appends, m.records, m.refused, m.queue, m.segments, m.unavailable, m.ahead)
	return m
}

func (m *Metrics) committed(batch []*request, bytes int, took time.Duration) {
	if m == nil {
		return
	}
	m.fsync.Observe(took.Seconds())
	m.groups.Observe(float64(len(batch)))
	m.bytes.Add(float64(bytes))
	m.appends.Add(float64(len(batch)))
	records := 0
	for _, r := range batch {
		records += int(r.count)
	}
	m.records.Add(float64(records))
}

// failed counts a request that was not taken.
func (m *Metrics) failed(err error) {
	switch {
	case m == nil:
	case errors.Is(err, ErrFull):
		m.refused.WithLabelValues("full").Inc()
	case errors.Is(err, ErrUnavailable):
		m.refused.WithLabelValues("unavailable").Inc()
	}
}

func (m *Metrics) queued(bytes int64) {
	if m != nil {
		m.queue.Set(float64(bytes))
	}
}

func (m *Metrics) kept(segments int) {
	if m != nil {
		m.segments.Set(float64(segments))
	}
}

func (m *Metrics) available(yes bool) {
	if m == nil {
		return
	}
	if yes {
		m.unavailable.Set(0)
	} else {
		m.unavailable.Set(1)
	}
}

func (m *Metrics) stampAhead(by time.Duration) {
	if m != nil {
		m.ahead.Set(by.Seconds())
	}
}
