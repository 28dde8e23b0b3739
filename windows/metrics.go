package windows

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark/sketches"
)

// Metrics are the engine's. A nil *Metrics measures nothing.
type Metrics struct {
	logger  *slog.Logger
	checks  prometheus.Counter
	under   prometheus.Counter
	over    prometheus.Histogram
	seals   prometheus.Counter
	records *prometheus.CounterVec
	sealing prometheus.Histogram
}

// NewMetrics registers the engine's metrics.
func NewMetrics(reg prometheus.Registerer, logger *slog.Logger) *Metrics {
	m := &Metrics{
		logger: logger,
		checks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidemark_sketch_checks_total",
			Help: "Items whose Count-Min estimate was compared with their exact count when their window was sealed.",
		}),
		under: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidemark_sketch_under_total",
			Help: "Items whose Count-Min estimate was below their exact count. Must stay 0: else the table is damaged (memory?); it is not used then, and counts of items without a slot get wider bounds.",
		}),
		over: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tidemark_sketch_over_ratio",
			Help:    "By how much Count-Min estimates exceed exact counts, as a share of the table's error bound. Above 1 for more than 2 % of the items: the hash is not uniform.",
			Buckets: []float64{0, 0.01, 0.1, 0.5, 1, 2, 10},
		}),
		seals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tidemark_seals_total",
			Help: "Seals that were stored.",
		}),
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_records_total",
			Help: "Sealed records by outcome. All but counted and late are not in the counts.",
		}, []string{"outcome"}),
		sealing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tidemark_seal_seconds",
			Help:    "Time from the cut of a seal until it was stored. Grows with the disk's fsync time.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
	}
	reg.MustRegister(m.checks, m.under, m.over, m.seals, m.records, m.sealing)
	return m
}

func (m *Metrics) sealed(s *Seal, took time.Duration) {
	if m == nil {
		return
	}
	m.seals.Inc()
	m.sealing.Observe(took.Seconds())
	for _, p := range s.Partials {
		for o, n := range p.outcomes {
			if n > 0 {
				m.records.WithLabelValues(Outcome(o).String()).Add(float64(n))
			}
		}
	}
}

// checkedPerTable is how many items of a table are compared with their exact
// counts when it is sealed.
const checkedPerTable = 256

// check compares the Count-Min tables of a content's types with the exact counts
// beside them. One that is below an exact count is damaged, and taken out: then only
// Overflow bounds its items.
func (m *Metrics) check(c *Content, tables map[*seriesState]*sketches.CountMin) {
	for st, table := range tables {
		under, checked := 0, 0
		bound := max(1, float64(table.Error()))
		for i := 0; i < len(c.slots) && checked < checkedPerTable; i++ {
			s := &c.slots[i]
			if s.hash == 0 || c.series[c.entries[c.refs[i]].series] != st {
				continue
			}
			checked++
			estimate := table.Estimate(s.hash ^ st.typ)
			if estimate < s.count {
				under++
			} else if m != nil {
				m.over.Observe(float64(estimate-s.count) / bound)
			}
		}
		if m != nil {
			m.checks.Add(float64(checked))
			m.under.Add(float64(under))
		}
		if under > 0 {
			delete(tables, st)
			if m != nil {
				m.logger.Error("a Count-Min table is below exact counts and was dropped: check the machine's memory",
					"minute", c.minute.Time(), "type", st.Type, "items_checked", checked, "items_below", under)
			}
		}
	}
}
