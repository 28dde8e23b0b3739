package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"tidemark/cmd/traffic"
	"tidemark/windows/ingest"
)

// sendFullBytes is of a batch to which nothing is added: half of what a server takes.
const sendFullBytes = ingest.MaxBody / 2

// remote is an import into a running server: each file is one import there, named by
// its content. Its events are sent in order, a batch at a time; the server knows how far
// it is, so the same call goes on where one was ended.
type remote struct {
	cfg    *Config
	client *traffic.Client
	files  *ingest.Files
	bar    *progress
	report remoteReport

	// Of the present file.
	source ingest.Source
	taken  int64 // the number of the last record that the server has
	body   []byte
	events []sentEvent // in body
}

// sentEvent is an event in a batch.
type sentEvent struct {
	number int64 // of its record
	end    int   // of its line in the body
}

// remoteReport is what became of the records of an import into a server. Its JSON is
// part of the API.
type remoteReport struct {
	Files           []string         `json:"files"`
	Records         int64            `json:"records"`  // of the files
	Before          int64            `json:"before"`   // of those, taken by earlier calls
	Accepted        int64            `json:"accepted"` // by this one
	Malformed       int64            `json:"malformed"`
	Reasons         map[string]int64 `json:"reasons"` // of the malformed
	Seconds         float64          `json:"seconds"`
	EventsPerSecond int64            `json:"events_per_second"`
}

// replayTo imports the files into the server that c names.
func replayTo(ctx context.Context, env environment, c *Config, paths []string) (report *remoteReport, err error) {
	if err := reachable(ctx, c); err != nil {
		return nil, err
	}
	dimensions, err := dimensionsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	files, err := ingest.OpenFiles(ctx, ingest.FilesConfig{
		Paths: paths, Stdin: env.stdin, SpoolDir: os.TempDir(), Partitions: 1, Type: "view", Dimensions: dimensions,
	})
	if err != nil {
		return nil, err
	}
	r := &remote{cfg: c, files: files, client: traffic.NewClient(c.Server+"/v1/events", c.Key, 1), bar: newProgress(env.stderr)}
	defer func() {
		r.client.Close()
		r.bar.end()
		err = errors.Join(err, files.Close())
	}()
	begun := time.Now()
	if err := r.send(ctx); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; the same call goes on from here")
		}
		return nil, err
	}
	r.report.Seconds = time.Since(begun).Seconds()
	r.report.EventsPerSecond = perSecond(r.report.Accepted, time.Since(begun))
	if r.report.Before > 0 && r.report.Accepted == 0 {
		return nil, errors.New("the server has imported these files already, by their content")
	}
	return &r.report, nil
}

// send sends all events of all files.
func (r *remote) send(ctx context.Context) error {
	sources := r.files.Sources()
	r.report.Reasons = make(map[string]int64)
	for _, s := range sources {
		r.report.Files = append(r.report.Files, s.Name)
	}
	at := -1
	for o, err := range r.files.Originals(ctx, r.bar.at) {
		if err != nil {
			return err
		}
		if o.File != at {
			if err := r.flush(ctx); err != nil {
				return err
			}
			at = o.File
			r.source, r.taken = sources[at], 0
		}
		if err := r.add(ctx, o); err != nil {
			return err
		}
	}
	return r.flush(ctx)
}

// add puts a record into the batch, unless the server has it.
func (r *remote) add(ctx context.Context, o *ingest.Original) error {
	r.report.Records++
	switch {
	case o.Reason != "":
		r.report.Malformed++
		r.report.Reasons[o.Reason]++
		return nil
	case o.Number <= r.taken:
		r.report.Before++
		return nil
	}
	id := o.ID
	if len(id) == 0 {
		id = strconv.AppendInt([]byte(r.name()+":"), o.Number, 10)
	}
	r.body = o.AppendJSON(r.body, id, o.Time, o.HasTime)
	r.events = append(r.events, sentEvent{o.Number, len(r.body)})
	if len(r.events) < r.cfg.Load.Batch && len(r.body) < sendFullBytes {
		return nil
	}
	return r.flush(ctx)
}

// name is what the server knows the import by.
func (r *remote) name() string { return hex.EncodeToString(r.source.Content[:]) }

// flush sends the batch. Where the server is further than its beginning, because of an
// earlier call, that much is left out.
func (r *remote) flush(ctx context.Context) error {
	for len(r.events) > 0 {
		last := r.events[len(r.events)-1].number
		receipt, err := r.client.Deliver(ctx, r.query(last), r.body)
		refusal, refused := errors.AsType[*traffic.Refusal](err)
		switch {
		case err == nil:
			r.report.Accepted += receipt.Accepted
			r.have(last)
		case refused && refusal.Status == http.StatusConflict && refusal.Taken > r.taken:
			n := int64(len(r.events))
			begun := r.taken > 0
			r.have(refusal.Taken)
			if n -= int64(len(r.events)); begun && refusal.Taken == last {
				r.report.Accepted += n // its answer was lost
			} else {
				r.report.Before += n
			}
		case refused && refusal.Status == http.StatusConflict:
			return fmt.Errorf("%s: the server has its records up to number %d only, and had had more: it is another server, or was brought back from a backup; the same call goes on from there", r.source.Name, refusal.Taken)
		default:
			return fmt.Errorf("%s: %w", r.source.Name, err)
		}
	}
	return nil
}

// have takes note that the server has the records up to a number.
func (r *remote) have(taken int64) {
	r.taken = taken
	n := 0
	for n < len(r.events) && r.events[n].number <= taken {
		n++
	}
	if n == 0 {
		return
	}
	cut := r.events[n-1].end
	r.body = r.body[:copy(r.body, r.body[cut:])]
	r.events = r.events[:copy(r.events, r.events[n:])]
	for i := range r.events {
		r.events[i].end -= cut
	}
}

// query says of the batch which one it is.
func (r *remote) query(last int64) string {
	return "?" + url.Values{
		"history": {"true"}, "import": {r.name()},
		"after": {strconv.FormatInt(r.taken, 10)}, "through": {strconv.FormatInt(last, 10)},
	}.Encode()
}

// print prints the report as a table.
func (r *remoteReport) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "outcome\treason\trecords")
	fmt.Fprintf(table, "accepted\t\t%s\n", count(r.Accepted))
	if r.Before > 0 {
		fmt.Fprintf(table, "accepted before\t\t%s\n", count(r.Before))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		fmt.Fprintf(table, "malformed\t%s\t%s\n", reason, count(r.Reasons[reason]))
	}
	fmt.Fprintf(table, "all\t\t%s\n", count(r.Records))
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%.1f s, %s events a second\n", r.Seconds, count(r.EventsPerSecond))
	return err
}
