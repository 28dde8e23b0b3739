package main

// How the parts are put together. The arrows are the way of the data.
//
//	replay                                             serve, viewers, counts, top
//
//	files ─> ingest ──────────> windows.Engine         HTTP, or a question to the folder
//	         decodes, numbers   judges, counts, cuts              │        ^
//	            ^                    │ seals                      v        │
//	            │                    v                        web, then queries.Engine
//	         journal            store.Store <─────── by pull ─────┼────────┘
//	            ^                                                 │
//	            └───────────── ingest.Accepter <──────────────────┘ events
//
//	store.Store <─── by pull ─── sinks.Deliverer ───> clickhouse.Sink
//
// What hands on is made after what it hands to, and ended before it.

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"tidemark/queries"
	"tidemark/sketches"
	"tidemark/windows/store"
)

// storeDir is where the store is in the data folder.
func storeDir(c *Config) string { return filepath.Join(c.Data, "store") }

// noStore says what to do about a folder without a store.
func noStore(c *Config) error {
	return fmt.Errorf("there is no store in %s: import events with `tidemark replay --data %s FILE...`, or name another folder with --data", c.Data, c.Data)
}

// opened is the store of a data folder, and the hasher that it was made with.
type opened struct {
	*store.Store
	hasher sketches.Hasher
}

// openForWriting opens the store of the data folder, or makes it. Settings that are
// kept with the data are taken from there, unless this call gives them. patient: it waits
// for a disk that is full.
func openForWriting(c *Config, patient bool, logger *slog.Logger) (opened, error) {
	key, err := hashKey(c, true)
	if err != nil {
		return opened{}, err
	}
	o := store.Options{Keep: c.keep(), Patient: patient}
	if c.Given("partitions") {
		o.Partitions = c.Partitions
	}
	if c.Given("view-types") {
		o.ViewTypes = c.ViewTypes
	}
	if c.Given("dimensions") {
		o.Dimensions = c.Dimensions
	}
	s, err := open(c, o, key, logger)
	if errors.Is(err, store.ErrNoStore) {
		s, err = open(c, store.Options{Create: true, Keep: c.keep(), Patient: patient, Partitions: c.Partitions, ViewTypes: c.ViewTypes, Dimensions: c.Dimensions}, key, logger)
	}
	if err != nil {
		return s, err
	}
	if err := subscribe(c, s.Store, logger); err != nil {
		return opened{}, errors.Join(err, s.Close())
	}
	return s, nil
}

// openForReading opens the store of the data folder, which must be there.
func openForReading(c *Config, logger *slog.Logger) (opened, error) {
	key, err := hashKey(c, false)
	if err != nil {
		return opened{}, err
	}
	s, err := open(c, store.Options{ReadOnly: true}, key, logger)
	if errors.Is(err, store.ErrNoStore) {
		return opened{}, noStore(c)
	}
	return s, err
}

func open(c *Config, o store.Options, key sketches.Key, logger *slog.Logger) (opened, error) {
	o.Dir, o.KeyID, o.Logger = storeDir(c), key.ID(), logger
	s, err := store.Open(o)
	if errors.Is(err, store.ErrHeld) {
		err = held(c, err)
	}
	if err != nil {
		return opened{}, err
	}
	hold(c, logger)
	return opened{s, sketches.NewHasher(key)}, nil
}

// newAnswers returns what answers questions from a store, and where it is not nil from
// what a journal has that is not in the store yet.
func newAnswers(s opened, l *live, d *delivery) *queries.Engine {
	meta := s.Meta()
	c := queries.Config{
		Snapshot: func() (queries.Snapshot, error) {
			n, err := s.Snapshot()
			if err != nil {
				return nil, err
			}
			return snapshot{n}, nil
		},
		Hasher:     s.hasher,
		ViewTypes:  meta.ViewTypes,
		Dimensions: meta.Dimensions,
		Version:    version(),
		Sinks:      d.status,
	}
	if l != nil {
		c.Live = []queries.Live{{Windows: l.engine, Watermark: l.watermark, Ends: l.journal.Ends}}
		c.Settling = settling(l.cfg.MaxLateness, l.cfg.MaxSkew)
	} else {
		c.Live, c.Settling = atRest(s.Logs())
	}
	return queries.New(c)
}

// snapshot is the store's, with its logs as queries knows them.
type snapshot struct{ *store.Snapshot }

// Logs returns the logs, oldest first.
func (s snapshot) Logs() []queries.Log {
	logs := s.Snapshot.Logs()
	out := make([]queries.Log, len(logs))
	for i, l := range logs {
		out[i] = queries.Log{ID: l.ID, Names: l.Names, Done: l.Done, Files: len(l.Contents) > 0, Started: l.Started, Settings: l.Settings}
	}
	return out
}
