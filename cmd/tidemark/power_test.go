package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"tidemark/windows"
	"tidemark/windows/ingest"
	"tidemark/windows/journal"
)

// The power fails while events are taken, counted and sealed, and the journal ends at its
// last sync: the store has sealed nothing beyond that, and it is still the store's journal.
// Else what comes next would get an offset that counts as held, and be lost.
func TestNothingIsSealedThatAPowerCutTakesAway(t *testing.T) {
	c, err := loadConfig(&cobra.Command{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Data, c.Lateness, c.MaxSkew = t.TempDir(), 0, 24*time.Hour
	logger := slog.New(slog.DiscardHandler)
	l := &live{cfg: &c, logger: logger, stop: func() {}}
	if l.store, err = openForWriting(&c, false, logger); err != nil {
		t.Fatal(err)
	}
	defer l.store.Close()
	disk := vfs.NewCrashableMem()
	options := journal.Options{Dir: "journal", Partitions: c.Partitions, Logger: logger, FS: disk}
	if l.journal, err = journal.Open(options); err != nil {
		t.Fatal(err)
	}
	defer l.journal.Close()
	l.begun = l.journal.Ends()
	versions, err := l.begin(l.settings())
	if err != nil {
		t.Fatal(err)
	}
	engine := windows.NewEngine(l.engineConfig(versions[0], nil))
	defer engine.Close()
	pump, reader, err := l.pump(versions[0], engine)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	pumped := make(chan struct{})
	ctx := t.Context()
	go func() {
		defer close(pumped)
		_ = pump.Run(ctx, nil) // until the journal is closed
	}()
	defer func() { <-pumped }()
	defer l.journal.Close()
	accepter := ingest.NewAccepter(ingest.AccepterConfig{
		Journal: l.journal, Partitions: c.Partitions, Hasher: l.store.hasher, Type: "view",
	})
	sealed := int64(0)
	at := time.Now().UnixMilli()
	for cut := range 100 {
		var lines strings.Builder
		for i := range 60 { // each batch closes a minute
			fmt.Fprintf(&lines, "{\"item\":\"a\",\"user\":\"%d\",\"time\":%d}\n", i, at+int64(cut)*windows.MillisPerMinute/2)
		}
		if _, err := accepter.Accept(t.Context(), ingest.Body{Reader: strings.NewReader(lines.String()), Size: int64(lines.Len()), Form: ingest.NDJSON}); err != nil {
			t.Fatal(err)
		}
		positions := l.store.Positions(l.log)
		options.FS = disk.CrashClone(vfs.CrashCloneCfg{})
		after, err := journal.Open(options)
		if err != nil {
			t.Fatal(err)
		}
		for p, end := range after.Ends() {
			sealed += positions[p].To.S
			if s := positions[p].To.S; s > end {
				t.Errorf("power cut %d: partition %d is sealed up to %d, and the journal ends at %d", cut, p, s, end)
			}
			if s := positions[p]; s.To.S > 0 {
				if hash, err := after.Hash(t.Context(), p, s.H.Offset); err != nil || hash != s.H.Hash {
					t.Errorf("power cut %d: partition %d has another record at %d: %v", cut, p, s.H.Offset, err)
				}
			}
		}
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if sealed == 0 {
		t.Error("nothing was sealed meanwhile")
	}
}
