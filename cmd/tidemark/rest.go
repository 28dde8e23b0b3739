package main

import (
	"math"
	"time"

	"tidemark/queries"
	"tidemark/windows"
	"tidemark/windows/store"
)

// atRest is a journal that no server reads, and all of which is in the store, as
// questions see it. Where a server goes on with it, events may come for as long after
// their time as its settings allow: until then nothing is final.
func atRest(logs []store.Log) (live []queries.Live, settled time.Duration) {
	for _, l := range logs {
		versions, err := parseVersions(l.Settings)
		if !l.Done || len(l.Contents) > 0 || err != nil {
			continue
		}
		s := versions.newest()
		watermark := func() int64 {
			if l.Records == 0 {
				return math.MaxInt64 // there was never anything to wait for
			}
			return time.Now().Add(-s.Lateness).UnixMilli()
		}
		live = append(live, queries.Live{Windows: nothing{l.ID, len(l.E)}, Watermark: watermark})
		settled = max(settled, settling(s.MaxLateness, s.MaxSkew))
	}
	return live, settled
}

// nothing is the windows of a log that has none open.
type nothing struct {
	log        windows.LogID
	partitions int
}

// Log implements queries.Windows.
func (n nothing) Log() windows.LogID { return n.log }

// Partitions implements queries.Windows.
func (n nothing) Partitions() int { return n.partitions }

// Read implements queries.Windows.
func (nothing) Read(int, windows.Pair, func(*windows.Content)) bool { return true }

// State implements queries.Windows.
func (nothing) State(int) windows.State { return windows.State{} }
