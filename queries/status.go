package queries

import (
	"context"
	"math"
	"slices"
	"time"

	"tidemark/windows"
)

// StatusAnswer says what there is to answer from.
type StatusAnswer struct {
	Version    string       `json:"version"`
	ViewTypes  []string     `json:"view_types"`
	Dimensions []string     `json:"dimensions"`
	Types      []string     `json:"types"` // that were ever counted, at most MaxTypes
	Kept       *Kept        `json:"kept"`  // nil: nothing yet
	Retention  []Retention  `json:"retention"`
	Logs       []LogStatus  `json:"logs"`  // oldest first, at most MaxLogs
	Sinks      []SinkStatus `json:"sinks"` // to which what is sealed is delivered
}

// SinkStatus is how far a sink is.
type SinkStatus struct {
	Name         string     `json:"name"`
	State        string     `json:"state"`         // working, retrying, stopped or off
	Reason       string     `json:"reason"`        // unless it is working
	Since        *time.Time `json:"since"`         // of the state; nil where it is off
	Delivered    uint64     `json:"delivered"`     // seals, since the start of this process
	Waiting      int        `json:"waiting"`       // seals that it does not have
	WaitingBytes int64      `json:"waiting_bytes"` // of those, on the disk
	Oldest       *time.Time `json:"oldest"`        // the oldest of them closed minutes before; nil: none waits
}

// Kept is from when on, and until when, there are answers.
type Kept struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Retention is what is kept of periods of one length.
type Retention struct {
	Period string     `json:"period"` // minute, quarter hour, hour, day, ever
	For    string     `json:"for"`    // a duration, or forever
	From   *time.Time `json:"from"`   // nothing before it is kept any more; nil: nothing was removed
}

// LogStatus is how far a log has been read.
type LogStatus struct {
	Names      []string          `json:"names"`    // of an import, its files
	Done       bool              `json:"done"`     // read to its end
	Reading    bool              `json:"reading"`  // by this process, now
	Started    time.Time         `json:"started"`  // when it was begun
	Settings   string            `json:"settings"` // that decide what becomes of its records, as text
	Partitions []PartitionStatus `json:"partitions,omitempty"`
}

// PartitionStatus is how far a partition has been read.
type PartitionStatus struct {
	Partition   int        `json:"partition"`
	Position    int64      `json:"position"` // the offset after the last record read
	Lag         int64      `json:"lag"`      // records that are in the log and were not read yet
	Sealed      int64      `json:"sealed"`   // the offset that seals have got to
	Watermark   *time.Time `json:"watermark"`
	OpenWindows int        `json:"open_windows"`
}

// MaxLogs is how many logs a status lists: the newest.
const MaxLogs = 100

// Status answers how things stand.
func (e *Engine) Status(ctx context.Context) (answer *StatusAnswer, err error) {
	running := make(map[windows.LogID][]PartitionStatus)
	for _, l := range e.cfg.Live {
		running[l.Windows.Log()] = partitionsOf(l)
	}
	v, err := e.open(ctx, wanted{series: func(windows.Series) bool { return false }})
	if err != nil {
		return nil, err
	}
	defer v.close(&err)
	answer = &StatusAnswer{
		Version:    e.cfg.Version,
		ViewTypes:  e.cfg.ViewTypes,
		Dimensions: append([]string{}, e.cfg.Dimensions...),
		Types:      []string{},
		Logs:       []LogStatus{},
		Sinks:      []SinkStatus{},
	}
	if e.cfg.Sinks != nil {
		answer.Sinks = e.cfg.Sinks()
	}
	if !v.kept.Empty() {
		answer.Kept = &Kept{v.kept.From.Time(), v.kept.To.Time()}
	}
	for _, k := range v.snap.Kept() {
		r := Retention{Period: periodNames[k.Size], For: "forever"}
		if k.For > 0 {
			r.For = k.For.String()
		}
		if k.From > 0 {
			from := k.From.Time()
			r.From = &from
		}
		answer.Retention = append(answer.Retention, r)
	}
	for _, g := range groupsOf(v.series(), []string{AllTypes}, slice{}) {
		if g.series.Other == 0 && len(answer.Types) < MaxTypes {
			answer.Types = append(answer.Types, g.name)
		}
	}
	logs := v.snap.Logs()
	for _, l := range logs[max(0, len(logs)-MaxLogs):] {
		partitions, reading := running[l.ID]
		answer.Logs = append(answer.Logs, LogStatus{
			Names: append([]string{}, l.Names...), Done: l.Done, Reading: reading, Partitions: partitions,
			Started: time.UnixMilli(l.Started).UTC(), Settings: l.Settings,
		})
	}
	return answer, nil
}

func partitionsOf(l Live) []PartitionStatus {
	w := l.Windows
	partitions := make([]PartitionStatus, w.Partitions())
	var ends []int64
	if l.Ends != nil {
		ends = l.Ends()
	}
	for p := range partitions {
		s := w.State(p)
		partitions[p] = PartitionStatus{Partition: p, Position: s.Next, Sealed: s.To.S, OpenWindows: s.Open}
		if p < len(ends) {
			partitions[p].Lag = max(0, ends[p]-s.Next) // it may have read on since
		}
		if s.Watermark > 0 {
			t := time.UnixMilli(s.Watermark).UTC()
			partitions[p].Watermark = &t
		}
	}
	return slices.Clip(partitions)
}

// Watermark returns how far the logs have been read that are being read, the least
// of them; nil before the first event, and where there are none.
func (e *Engine) Watermark() *time.Time {
	least := int64(math.MaxInt64)
	for _, l := range e.cfg.Live {
		if l.Watermark != nil {
			least = min(least, l.Watermark())
		}
	}
	if least <= 0 || least == math.MaxInt64 {
		return nil
	}
	t := time.UnixMilli(least).UTC()
	return &t
}
