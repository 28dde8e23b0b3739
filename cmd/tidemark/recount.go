package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/cmd/recount"
	"tidemark/queries"
	"tidemark/windows/journal"
)

// newRecount returns the command that counts the journal again.
func newRecount(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recount",
		Short: "Count the journal again, and show each difference to what is answered",
		Long: `Count the journal again, record by record and with nothing but maps, and compare every
count of every item in every minute, and what became of all records, with what is answered:
by the folder where no server holds it, or by a running server (--server), whose journal is
read beside it in --data.

Each difference is named, and the exit status is then 1. Minutes that the journal no longer
reaches back to, or that are kept no longer, are left out, and it says so. Where events come in
meanwhile, an answer must lie between what was counted before it and after it.

Memory stays bounded: a journal with more counts than fit is read several times.`,
		Args: withArgs(0, 0, "recount takes no arguments"),
	}
	addSettings(cmd, "data", "hash-key-file", "server", "key")
	asJSON := cmd.Flags().Bool("json", !isTerminal(env.stdout), "as JSON, which is the default where the output is no terminal")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		report, err := recountAll(cmd.Context(), &c, env.logger(slog.LevelWarn), env.stderr)
		if err != nil {
			return err
		}
		if *asJSON {
			err = json.NewEncoder(env.stdout).Encode(report)
		} else {
			err = report.print(env.stdout)
		}
		if err == nil && report.Differ > 0 {
			err = fmt.Errorf("%s counts differ from what is answered", count(report.Differ))
		}
		return err
	}
	return cmd
}

// recountCells is how many counts are held in memory at a time: some 100 MB.
const recountCells = 1 << 19

// recountAll counts the journal of the data folder again, and compares.
func recountAll(ctx context.Context, c *Config, logger *slog.Logger, stderr io.Writer) (report *recountReport, err error) {
	s := served{ask: func(path string, values url.Values) ([]byte, error) { return askServer(ctx, c, logger, path, values) }}
	cfg := recount.Config{Cells: recountCells}
	if c.Server == "" {
		folder, err := openForReading(c, logger)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, folder.Close()) }()
		answers := newAnswers(folder, nil, &delivery{store: folder.Store})
		s.ask = func(path string, values url.Values) ([]byte, error) {
			reply, err := answers.Ask(ctx, path, values, time.Now())
			if err != nil {
				return nil, err
			}
			return json.Marshal(reply)
		}
		cfg.Held = heldIn(folder)
	}
	key, err := hashKey(c, false)
	if err != nil {
		return nil, err
	}
	cfg.Key = uint64(key.ID())
	cfg.Journal, err = journal.Open(journal.Options{Dir: filepath.Join(c.Data, "journal"), ReadOnly: true, Logger: logger})
	if errors.Is(err, journal.ErrNoJournal) {
		return nil, fmt.Errorf("there is no journal in %s: a server makes one; name its folder with --data", c.Data)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cfg.Journal.Close()) }()
	from, err := s.begin(&cfg)
	if err != nil {
		return nil, err
	}
	bar := newProgress(stderr)
	defer bar.end()
	cfg.Progress = func(done, all int64) {
		bar.show(done, all, "records", func() string { return fmt.Sprintf("%s of %s records", count(done), count(all)) })
	}
	if c.Server != "" {
		if err := s.await(ctx, cfg.Journal.Ends()); err != nil {
			return nil, err
		}
	}
	for from < recount.End {
		counted, err := recount.Pass(ctx, &cfg, from)
		if err != nil {
			return nil, err
		}
		if err := s.compare(counted); err != nil {
			return nil, err
		}
		from = counted.To
	}
	if c.Server != "" {
		if err := s.allow(ctx, c, cfg.Journal.Ends(), logger); err != nil {
			return nil, err
		}
	}
	return s.finish(), nil
}

// heldIn tells which records the store of a folder holds: what it does not hold yet is
// read from the journal by the next server.
func heldIn(folder opened) func(partition int, offset, minute int64, usable bool) bool {
	for _, l := range folder.Logs() {
		if len(l.Contents) > 0 {
			continue
		}
		positions := folder.Positions(l.ID)
		return func(partition int, offset, minute int64, usable bool) bool {
			to := positions[partition].To
			return offset < to.S && (!usable || minute < int64(to.F))
		}
	}
	return func(int, int64, int64, bool) bool { return false }
}

// begin asks how things stand: under which settings records were counted, and from
// which minute on everything is kept and of the journal alone.
func (s *served) begin(cfg *recount.Config) (from int64, err error) {
	var status queries.StatusAnswer
	if err := s.get("status", nil, &status); err != nil {
		return 0, err
	}
	for _, r := range status.Retention {
		if r.Period == "minute" && r.From != nil {
			from = max(from, r.From.Unix()/60)
		}
	}
	var versions settingsVersions
	for _, l := range status.Logs {
		if v, err := parseVersions(l.Settings); err == nil {
			versions = v
		}
	}
	if versions == nil {
		return 0, errors.New("nothing of a journal was ever counted there")
	}
	for _, v := range versions {
		cfg.Settings = append(cfg.Settings, recount.Settings{
			From: v.From, Lateness: v.Lateness, MaxLateness: v.MaxLateness, MaxSkew: v.MaxSkew, DedupEvents: v.DedupEvents,
		})
	}
	for _, l := range status.Logs {
		if _, err := parseVersions(l.Settings); err != nil { // an import: of what was before it began
			skew := cfg.Settings[len(cfg.Settings)-1].MaxSkew
			from = max(from, l.Started.Add(skew).Unix()/60+1)
		}
	}
	s.report.From = minuteTime(from)
	return from, nil
}

// recountReport is what a recount has found.
type recountReport struct {
	From        time.Time    `json:"from"`    // nothing before it was compared
	Records     int64        `json:"records"` // that were counted again
	Counts      int64        `json:"counts"`  // that were compared: of an item, a type and a minute
	Minutes     int64        `json:"minutes"`
	LeftOut     int64        `json:"minutes_left_out"` // the journal no longer has all that they depend on, or they are no longer kept
	Moving      int64        `json:"minutes_moving"`   // that events came for meanwhile
	Differ      int64        `json:"differ"`
	Differences []difference `json:"differences"` // at most maxDifferences
}

// difference is a count that is not what is answered.
type difference struct {
	Minute    time.Time `json:"minute"`
	Type      string    `json:"type,omitempty"`
	Item      string    `json:"item,omitempty"` // absent: of the whole site, or of outcomes
	Outcome   string    `json:"outcome,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Recounted uint64    `json:"recounted"`
	Served    uint64    `json:"served"`
	high      uint64
}

// maxDifferences is how many differences are named.
const maxDifferences = 10_000

func (r *recountReport) print(w io.Writer) error {
	if len(r.Differences) > 0 {
		table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "minute\ttype\titem\toutcome\trecounted\tserved")
		for _, d := range r.Differences {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\n", d.Minute.Format(time.RFC3339), d.Type, oneLine(d.Item), join(d.Outcome, d.Reason), d.Recounted, d.Served)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s differences: %s records counted again, %s counts of %s minutes compared\n", count(r.Differ), count(r.Records), count(r.Counts), count(r.Minutes))
	if r.LeftOut > 0 {
		fmt.Fprintf(w, "(%s minutes are left out: the journal no longer has all that they depend on, or they are no longer kept)\n", count(r.LeftOut))
	}
	if r.From.Unix() > 0 {
		fmt.Fprintf(w, "(nothing before %s is compared: it is not kept by the minute any more, or was imported)\n", r.From.Format(time.RFC3339))
	}
	if r.Moving > 0 {
		fmt.Fprintf(w, "(events came for %s minutes meanwhile: there the answer lies between before and after)\n", count(r.Moving))
	}
	return err
}

func join(outcome, reason string) string {
	if reason == "" {
		return outcome
	}
	return outcome + ": " + reason
}
