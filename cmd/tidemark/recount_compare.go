package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tidemark/cmd/recount"
	"tidemark/queries"
	"tidemark/windows"
	"tidemark/windows/journal"
)

// served is what a recount is compared with.
type served struct {
	ask    func(path string, values url.Values) ([]byte, error)
	report recountReport
}

func (s *served) get(path string, values url.Values, into any) error {
	body, err := s.ask(path, values)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer about %s: %w", path, err)
	}
	return nil
}

// countsAnswer is the answer about counts, as far as it is compared.
type countsAnswer struct {
	Item   string
	Counts map[string]bounds
	Series []struct {
		Start  time.Time
		Counts map[string]bounds
	}
	Items []countsAnswer
}

type bounds struct{ Value, Low, High uint64 }

func minuteTime(m int64) time.Time { return time.Unix(m*60, 0).UTC() }

func rangeOf(from, to int64) url.Values {
	return url.Values{
		"from": {strconv.FormatInt(from*windows.MillisPerMinute, 10)},
		"to":   {strconv.FormatInt(to*windows.MillisPerMinute, 10)},
	}
}

// compare holds the counts of a pass against the answers.
func (s *served) compare(c *recount.Count) error {
	s.report.Records += c.Records
	s.report.LeftOut += int64(len(c.Unsure))
	minutes := make(map[int64]bool)
	for o := range c.Outcomes {
		minutes[o.Minute] = true
	}
	maps.DeleteFunc(minutes, func(m int64, _ bool) bool { return c.Unsure[m] })
	s.report.Minutes += int64(len(minutes))
	if len(minutes) == 0 {
		return nil
	}
	for r := range sureRanges(c, slices.Max(slices.Collect(maps.Keys(minutes)))+1) {
		if err := s.sites(c, r.from, r.to); err != nil {
			return err
		}
		if err := s.outcomes(c, r.from, r.to); err != nil {
			return err
		}
	}
	return s.items(c)
}

type minuteRange struct{ from, to int64 }

// sureRanges yields what lies between the minutes that nothing can be said about.
func sureRanges(c *recount.Count, end int64) func(yield func(minuteRange) bool) {
	return func(yield func(minuteRange) bool) {
		from := c.From
		for _, m := range append(slices.Sorted(maps.Keys(c.Unsure)), end) {
			if from < m && !yield(minuteRange{from, m}) {
				return
			}
			from = m + 1
		}
	}
}

// sites compares how many events there were of each type in a range, and where they
// are not as many, halves it until the minute is known.
func (s *served) sites(c *recount.Count, from, to int64) error {
	want := make(map[string]uint64)
	for cell, n := range c.Events {
		if cell.Minute >= from && cell.Minute < to {
			want[cell.Type] += n
			want[queries.AllTypes] += n
		}
	}
	values := rangeOf(from, to)
	values.Set("type", queries.AllTypes)
	var got countsAnswer
	if gone, err := s.orGone(s.get("counts", values, &got)); gone || err != nil {
		return err
	}
	differ := false
	for _, typ := range comparedTypes(want, got.Counts) {
		if n, b := want[typ], got.Counts[typ]; n < b.Low || n > b.High {
			differ = true
			if to-from == 1 {
				s.differs(difference{Minute: minuteTime(from), Type: typ, Recounted: n}, b)
				if err := s.strangers(c, from, typ); err != nil {
					return err
				}
			}
		}
	}
	if !differ || to-from == 1 {
		return nil
	}
	middle := (from + to) / 2
	if err := s.sites(c, from, middle); err != nil {
		return err
	}
	return s.sites(c, middle, to)
}

// strangers names the items of a minute that are answered and not in the journal, as far
// as they are among the highest: the others are compared anyway.
func (s *served) strangers(c *recount.Count, minute int64, typ string) error {
	if typ == queries.AllTypes {
		return nil
	}
	values := rangeOf(minute, minute+1)
	values.Set("type", typ)
	values.Set("viewers", "false")
	values.Set("limit", "1000")
	var top struct {
		Items []struct {
			Item  string
			Views bounds
		}
	}
	if err := s.get("top", values, &top); err != nil {
		return err
	}
	for _, i := range top.Items {
		if c.Events[recount.Cell{Minute: minute, Type: typ, Item: i.Item}] == 0 && i.Views.Low > 0 {
			s.differs(difference{Minute: minuteTime(minute), Type: typ, Item: i.Item}, i.Views)
		}
	}
	return nil
}

// comparedTypes are those of either side; where there were so many that some have no
// counts of their own, all together alone.
func comparedTypes(want map[string]uint64, got map[string]bounds) []string {
	if len(want) > windows.MaxTypes {
		return []string{queries.AllTypes}
	}
	all := make(map[string]bool)
	for t := range want {
		all[t] = true
	}
	for t := range got {
		all[t] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// orGone tells a range that is no longer kept from other failures.
func (s *served) orGone(err error) (gone bool, _ error) {
	if err != nil && !isOurFault(err) {
		s.report.LeftOut++
		return true, nil
	}
	return false, err
}

// outcomes compares what became of the records of a range, in the same way.
func (s *served) outcomes(c *recount.Count, from, to int64) error {
	type name struct{ outcome, reason string }
	want, got := make(map[name]uint64), make(map[name]bounds)
	for o, n := range c.Outcomes {
		if o.Minute >= from && o.Minute < to {
			want[name{o.Name, o.Reason}] += n
		}
	}
	var answer queries.OutcomesAnswers
	if gone, err := s.orGone(s.get("outcomes", rangeOf(from, to), &answer)); gone || err != nil {
		return err
	}
	all := slices.Collect(maps.Keys(want))
	for _, o := range answer[0].Outcomes {
		of := name{o.Outcome, o.Reason}
		got[of] = bounds{o.Records.Value, o.Records.Low, o.Records.High}
		if _, known := want[of]; !known {
			all = append(all, of)
		}
	}
	slices.SortFunc(all, func(a, b name) int {
		return cmp.Or(cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.reason, b.reason))
	})
	differ := false
	for _, of := range all {
		if n, b := want[of], got[of]; n < b.Low || n > b.High {
			differ = true
			if to-from == 1 {
				s.differs(difference{Minute: minuteTime(from), Outcome: of.outcome, Reason: of.reason, Recounted: n}, b)
			}
		}
	}
	if !differ || to-from == 1 {
		return nil
	}
	middle := (from + to) / 2
	if err := s.outcomes(c, from, middle); err != nil {
		return err
	}
	return s.outcomes(c, middle, to)
}

// A question about items is about so many minutes, items, and bytes of their names.
const (
	askedMinutes = 60
	askedItems   = 100
	askedBytes   = 16 << 10
)

// items compares each item in each minute.
func (s *served) items(c *recount.Count) error {
	type at struct {
		span int64
		item string
	}
	counts := make(map[at]map[recount.Cell]uint64)
	for cell, n := range c.Events {
		if c.Unsure[cell.Minute] {
			continue
		}
		k := at{cell.Minute / askedMinutes, cell.Item}
		if counts[k] == nil {
			counts[k] = make(map[recount.Cell]uint64)
		}
		counts[k][cell] = n
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b at) int {
		return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(a.item, b.item))
	})
	for len(order) > 0 {
		n, bytes := 0, 0
		for n < min(len(order), askedItems) && order[n].span == order[0].span && (n == 0 || bytes+len(order[n].item) <= askedBytes) {
			bytes += len(order[n].item)
			n++
		}
		from := max(c.From, order[0].span*askedMinutes)
		values := rangeOf(from, min(c.To, (order[0].span+1)*askedMinutes))
		values.Set("step", "minute")
		types := make(map[string]bool)
		for _, k := range order[:n] {
			values.Add("item", k.item)
			for cell := range counts[k] {
				types[cell.Type] = true
			}
		}
		values["type"] = slices.Sorted(maps.Keys(types))
		if len(types) > queries.MaxTypes {
			return fmt.Errorf("there are more than %d types within the hour from %s: they can't be compared", queries.MaxTypes, minuteTime(from))
		}
		var got countsAnswer
		gone, err := s.orGone(s.get("counts", values, &got))
		if err != nil {
			return err
		}
		if !gone {
			if got.Items == nil {
				got.Items = []countsAnswer{got}
			}
			for i, k := range order[:n] {
				s.item(c, k.item, counts[k], &got.Items[i])
			}
		}
		order = order[n:]
	}
	return nil
}

// item compares an item in the minutes that were asked for.
func (s *served) item(c *recount.Count, item string, want map[recount.Cell]uint64, got *countsAnswer) {
	for _, bucket := range got.Series {
		minute := bucket.Start.Unix() / 60
		if c.Unsure[minute] {
			continue
		}
		types := make(map[string]uint64)
		for cell, n := range want {
			if cell.Minute == minute {
				types[cell.Type] = n
			}
		}
		for _, typ := range comparedTypes(types, bucket.Counts) {
			if typ == queries.AllTypes {
				continue // it follows from the others
			}
			n, b := types[typ], bucket.Counts[typ]
			if n > 0 || b.High > 0 {
				s.report.Counts++
			}
			if n < b.Low || n > b.High {
				s.differs(difference{Minute: minuteTime(minute), Type: typ, Item: item, Recounted: n}, b)
			}
		}
	}
}

// maxTentative is how many differences are kept until it is known which of them events
// explain that came meanwhile.
const maxTentative = 1 << 20

func (s *served) differs(d difference, got bounds) {
	s.report.Differ++
	d.Served, d.high = got.Low, got.High
	if len(s.report.Differences) < maxTentative {
		s.report.Differences = append(s.report.Differences, d)
	}
}

// countedWithin is how long a server may take for a step on its way to the end of what
// the journal has.
const countedWithin = 30 * time.Second

// await waits until the server has counted the journal up to these offsets.
func (s *served) await(ctx context.Context, ends []int64) error {
	sum := int64(-1)
	for deadline := time.Now().Add(countedWithin); ; {
		var status queries.StatusAnswer
		if err := s.get("status", nil, &status); err != nil {
			return err
		}
		there, at := true, int64(0)
		found := false
		for _, l := range status.Logs {
			if _, err := parseVersions(l.Settings); err != nil || !l.Reading {
				continue
			}
			found = true
			for _, p := range l.Partitions {
				at += p.Position
				there = there && (p.Partition >= len(ends) || p.Position >= ends[p.Partition])
			}
		}
		switch {
		case !found:
			return errors.New("the server reads no journal")
		case there:
			return nil
		case at > sum:
			sum, deadline = at, time.Now().Add(countedWithin)
		case time.Now().After(deadline):
			return errors.New("the server counts no further: see its log; is --data its folder?")
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// allow takes away the differences that events explain which came after the journal
// was read, and before the last answer.
func (s *served) allow(ctx context.Context, c *Config, from []int64, logger *slog.Logger) error {
	j, err := journal.Open(journal.Options{Dir: filepath.Join(c.Data, "journal"), ReadOnly: true, Logger: logger})
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // it was only read
	more := make(map[int64]uint64)
	err = recount.Records(ctx, j, from, func(rec *journal.Record) error {
		minutes, err := recount.Touched(rec)
		for _, m := range minutes {
			more[m]++
		}
		return err
	})
	if err != nil {
		return err
	}
	s.report.Moving = int64(len(more))
	before := len(s.report.Differences)
	s.report.Differences = slices.DeleteFunc(s.report.Differences, func(d difference) bool {
		return d.high >= d.Recounted && d.Served <= d.Recounted+more[d.Minute.Unix()/60]
	})
	s.report.Differ -= int64(before - len(s.report.Differences))
	return nil
}

// finish returns the report, by minute.
func (s *served) finish() *recountReport {
	slices.SortStableFunc(s.report.Differences, func(a, b difference) int { return a.Minute.Compare(b.Minute) })
	if s.report.Differences == nil {
		s.report.Differences = []difference{}
	}
	s.report.Differences = s.report.Differences[:min(len(s.report.Differences), maxDifferences)]
	return &s.report
}
