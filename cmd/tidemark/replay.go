package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/windows"
	"tidemark/windows/ingest"
	"tidemark/windows/store"
)

// newReplay returns the command that imports history.
func newReplay(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay FILE...",
		Short: "Import history from files of events",
		Long: `Import history from files of events: CSV with a header, or JSON (one event a line, or an
array), each plain, gzip or zstd. - is standard input.

Event time alone counts. An import that was ended in between goes on by the same call,
nothing doubled, nothing lost. Files that were imported already are refused, by content.

With --server the events go into a running server. There the server's rules, dimensions
and view types hold, and its event IDs tell duplicates.`,
		Args: withArgs(1, -1, "the name of a FILE"),
	}
	addSettings(cmd, "data", "hash-key-file", "view-types", "dimensions", "partitions", "rules", "lateness",
		"max-skew", "dedup-events", "max-items-per-window", "window-memory", "retention.minute", "retention.quarter", "retention.hour", "retention.day", "server", "key", "batch")
	addSettings(cmd, clickHouseSettings...)
	asJSON := cmd.Flags().Bool("json", false, "print what became of the events as JSON")
	again := cmd.Flags().Bool("again", false, "count the files once more although they were imported already")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		if c.ClickHouse.Migrate == printMigrations {
			return printClickHouse(&c, env.stdout)
		}
		if c.Server != "" {
			if *again {
				return wrongUsage(cmd, errors.New("again: a server takes a file once; import it into a folder that no server holds"))
			}
			report, err := replayTo(cmd.Context(), env, &c, args)
			if err != nil {
				return err
			}
			return printImported(env.stdout, report, *asJSON)
		}
		r, err := openReplay(cmd.Context(), env, &c, args, *again)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.close()) }()
		report, err := r.run(cmd.Context())
		if err != nil {
			return err
		}
		return printImported(env.stdout, report, *asJSON)
	}
	return cmd
}

// printImported prints a report as JSON, or for a person.
func printImported(w io.Writer, report interface{ print(io.Writer) error }, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(report)
	}
	return report.print(w)
}

// replay is one import, or what is left of it.
type replay struct {
	cfg    *Config
	stderr io.Writer
	logger *slog.Logger
	store  opened
	files  *ingest.Files
	log    store.Log

	delivery *delivery
}

// openReplay opens files and store, and finds out which log the files are.
func openReplay(ctx context.Context, env environment, c *Config, paths []string, again bool) (*replay, error) {
	// Before a data folder is made for nothing.
	for _, path := range paths {
		if path == "-" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
	}
	r := &replay{cfg: c, stderr: env.stderr, logger: env.logger(slog.LevelWarn)}
	var err error
	if r.store, err = openForWriting(c, false, r.logger); err != nil {
		return nil, err
	}
	if r.delivery, err = openDelivery(ctx, c, r.store.Store, nil, r.logger); err != nil {
		return nil, errors.Join(err, r.store.Close())
	}
	meta := r.store.Meta()
	r.files, err = ingest.OpenFiles(ctx, ingest.FilesConfig{
		Paths:      paths,
		Stdin:      env.stdin,
		SpoolDir:   c.Data,
		Partitions: meta.Partitions,
		Hasher:     r.store.hasher,
		Type:       meta.ViewTypes[0],
		Dimensions: meta.Dimensions,
		Again:      again,
	})
	if err != nil {
		return nil, errors.Join(err, r.delivery.close(), r.store.Close())
	}
	if err := r.begin(again); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// begin finds the log of the files in the store, or makes it known there. What was
// imported to its end is refused, or again made another log; unless it was ended while
// it was rolled up.
func (r *replay) begin(again bool) error {
	known := make(map[windows.LogID]store.Log)
	for _, l := range r.store.Logs() {
		known[l.ID] = l
	}
	times := uint64(0)
	for known[r.files.Log(times)].Done && (again || !r.store.Pending()) {
		times++
		if !again {
			return errors.New("these files were imported already: leave them out, or count them once more with --again")
		}
	}
	l := store.Log{ID: r.files.Log(times), Started: time.Now().UnixMilli(), Settings: r.settings()}
	for _, s := range r.files.Sources() {
		l.Names, l.Contents = append(l.Names, s.Name), append(l.Contents, hex.EncodeToString(s.Content[:]))
	}
	if _, ok := known[l.ID]; !ok {
		if err := unknownTo(known, l, again); err != nil {
			return err
		}
	}
	for range r.store.Meta().Partitions {
		l.E = append(l.E, newIncarnation())
	}
	var err error
	if r.log, err = r.store.Begin(l); err != nil {
		return err
	}
	if r.log.Settings != l.Settings {
		return fmt.Errorf("this import was begun with other settings, and goes on with those only:\nbegun with %s\nnow        %s", r.log.Settings, l.Settings)
	}
	return nil
}

// unknownTo refuses an import of which another one had a file: its events would count
// twice.
func unknownTo(known map[windows.LogID]store.Log, l store.Log, again bool) error {
	for _, other := range known {
		for i, content := range l.Contents {
			switch {
			case !slices.Contains(other.Contents, content):
			case !other.Done:
				return fmt.Errorf("%s is part of an import that has not ended: first go on with it, by the same call for %s", l.Names[i], strings.Join(other.Names, " "))
			case !again:
				return fmt.Errorf("%s was imported already: leave it out, or count it once more with --again", l.Names[i])
			}
		}
	}
	return nil
}

// settings returns, as they would be typed, those that decide what becomes of a
// record: an import has one set of them, however often it is ended in between.
func (r *replay) settings() string {
	meta := r.store.Meta()
	return fmt.Sprintf("--view-types=%s --dimensions=%s --rules=%s --lateness=%s --max-skew=%s --dedup-events=%d --max-items-per-window=%d",
		meta.ViewTypes[0], strings.Join(meta.Dimensions, ","), r.cfg.Rules, r.cfg.Lateness, r.cfg.MaxSkew, r.cfg.DedupEvents, r.cfg.MaxItemsPerWindow)
}

// newIncarnation returns a random number that is not 0: the E of a windows.Position.
func newIncarnation() uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // which never fails: it ends the program instead
		if e := binary.LittleEndian.Uint64(b[:]); e != 0 {
			return e
		}
	}
}

// maxValues is how many values of a dimension are told apart, of a type in a minute.
const maxValues = 1000

// run imports what is not in the store yet, and rolls up.
func (r *replay) run(ctx context.Context) (*report, error) {
	begun := time.Now()
	records, read := r.log.Records, int64(0)
	if r.log.Done {
		fmt.Fprintln(r.stderr, "everything is imported; rolling up the rest")
	} else {
		var err error
		if records, read, err = r.count(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.store.Maintain(ctx, windows.MaxMinute); err != nil {
		if ctx.Err() != nil {
			return nil, errors.New("interrupted while rolling up; everything is imported, and the same call, another import or a server rolls up the rest")
		}
		return nil, err
	}
	if err := r.delivery.finish(ctx); err != nil {
		return nil, err
	}
	return newReport(r.log.Names, r.store.Outcomes(r.log.ID), records, read, time.Since(begun)), nil
}

// count brings the files into the store from where they are in it on. It returns how
// many records they have, and how many of them it has read.
func (r *replay) count(ctx context.Context) (records, read int64, err error) {
	positions := r.store.Positions(r.log.ID)
	from := positions[0].R
	for _, p := range positions {
		from = min(from, p.R)
	}
	generation := ingest.Generation(r.cfg.DedupEvents, len(positions))
	engine := windows.NewEngine(windows.EngineConfig{
		Log:        r.log.ID,
		Positions:  positions,
		Hasher:     r.store.hasher,
		Limits:     windows.Limits{Items: r.cfg.MaxItemsPerWindow, Values: maxValues},
		Dimensions: r.store.Meta().Dimensions,
		Judge: func(int) windows.Judge {
			return ingest.NewJudge(ingest.JudgeConfig{
				Generation:  generation,
				Lateness:    r.cfg.Lateness,
				MaxLateness: forever,
				MaxSkew:     r.cfg.MaxSkew,
			})
		},
		Look:    func(offset int64) int64 { return ingest.Look(generation, offset) },
		Memory:  r.cfg.WindowMemory,
		History: true,
		Store:   r.store,
		Logger:  r.logger,
	})
	if from > 0 {
		fmt.Fprintf(r.stderr, "going on after record %s\n", count(from))
	}
	bar := newProgress(r.stderr)
	records, err = r.files.Run(ctx, ingest.RunConfig{From: from, Stamp: r.log.Started, Submit: engine.Submit, Progress: bar.at})
	bar.end()
	if err != nil {
		engine.Close()
		if ctx.Err() != nil {
			return 0, 0, errors.New("interrupted; the same call goes on from here")
		}
		return 0, 0, err
	}
	if err := engine.Finish(records); err != nil {
		return 0, 0, err
	}
	return records, records - from, r.store.Finish(r.log.ID)
}

func (r *replay) close() error {
	return errors.Join(r.files.Close(), r.delivery.close(), r.store.Close())
}

// report is what became of the records of an import. Its JSON is part of the API.
type report struct {
	Files           []string          `json:"files"`
	Records         int64             `json:"records"`           // of the whole import, whichever call read them
	Outcomes        map[string]uint64 `json:"outcomes"`          // sum to Records
	Reasons         map[string]uint64 `json:"reasons"`           // of the malformed
	Seconds         float64           `json:"seconds"`           // of this call
	EventsPerSecond int64             `json:"events_per_second"` // of this call

	outcomes []windows.OutcomeCount
}

func newReport(files []string, outcomes []windows.OutcomeCount, records, read int64, took time.Duration) *report {
	r := &report{
		Files: files, Records: records, Outcomes: make(map[string]uint64), Reasons: make(map[string]uint64),
		Seconds: took.Seconds(), EventsPerSecond: perSecond(read, took), outcomes: outcomes,
	}
	for _, o := range outcomes {
		r.Outcomes[o.Outcome.String()] += o.Records
		if o.Reason != "" {
			r.Reasons[o.Reason] += o.Records
		}
	}
	return r
}

// print prints the report as a table.
func (r *report) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "outcome\treason\trecords")
	for _, o := range r.outcomes {
		fmt.Fprintf(table, "%s\t%s\t%s\n", o.Outcome, o.Reason, count(o.Records))
	}
	fmt.Fprintf(table, "all\t\t%s\n", count(r.Records))
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%.1f s, %s events a second\n", r.Seconds, count(r.EventsPerSecond))
	return err
}
