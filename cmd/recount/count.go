package recount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"tidemark/windows/journal"
)

// Cell is what events are counted by.
type Cell struct {
	Minute     int64 // since 1970
	Type, Item string
}

// Outcome is what records are counted by.
type Outcome struct {
	Minute       int64
	Name, Reason string
}

// Config is what a recount needs to know.
type Config struct {
	Journal  *journal.Journal // opened read-only: it ends where it did then
	Key      uint64           // id of the key that the records' hashes are under
	Settings []Settings       // in the order in which they came to hold
	// Held says that a minute of the partition is held up to that offset: what is not
	// is left out. nil: all is counted.
	Held func(partition int, offset, minute int64, usable bool) bool
	// Cells is how many counts a pass keeps at most; one minute may have more.
	Cells    int
	Progress func(records, all int64) // of a pass; called now and then
}

// Count is what a pass has counted: minutes in [From, To).
type Count struct {
	From, To int64
	Events   map[Cell]uint64
	Outcomes map[Outcome]uint64
	// Unsure are minutes that it can't say anything about: the journal no longer has
	// all that what became of some of their records depends on.
	Unsure  map[int64]bool
	Records int64 // of these minutes
}

// End is a minute that no event can be in.
const End = int64(1) << 40

// Records calls yield for all records of a journal from these offsets on, or all that
// it has where from is nil.
func Records(ctx context.Context, j *journal.Journal, from []int64, yield func(*journal.Record) error) error {
	if from == nil {
		from = j.First()
	}
	reader, err := j.NewReader(from)
	if err != nil {
		return err
	}
	defer reader.Close() //nolint:errcheck // it was only read
	for batch := (journal.Batch{}); ; {
		err := reader.Next(ctx, &batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range batch.Records {
			if err := yield(&batch.Records[i]); err != nil {
				return err
			}
		}
	}
}

// Pass counts minutes from one on, as many as there is memory for: to the end, or to
// where the next pass begins.
func Pass(ctx context.Context, cfg *Config, from int64) (*Count, error) {
	p := &pass{Config: cfg, first: cfg.Journal.First(), limit: cfg.Cells, Count: &Count{
		From: from, To: End, Events: make(map[Cell]uint64), Outcomes: make(map[Outcome]uint64), Unsure: make(map[int64]bool),
	}}
	for range cfg.Journal.Partitions() {
		var judges []*judge
		for i := range cfg.Settings {
			judges = append(judges, newJudge(&cfg.Settings[i]))
		}
		p.judges = append(p.judges, judges)
	}
	for i, end := range cfg.Journal.Ends() {
		p.all += end - p.first[i]
	}
	if err := Records(ctx, cfg.Journal, nil, p.add); err != nil {
		return nil, err
	}
	p.cutTo(p.To)
	for o, n := range p.Outcomes {
		if !p.Unsure[o.Minute] {
			p.Records += int64(n)
		}
	}
	return p.Count, nil
}

type pass struct {
	*Config
	*Count
	first     []int64
	judges    [][]*judge // of each partition, one for each settings
	limit     int        // of Events
	read, all int64
}

// progressEvery is how many records are counted between two calls of Progress.
const progressEvery = 1 << 14

func (p *pass) add(rec *journal.Record) error {
	if p.read%progressEvery == 0 && p.Progress != nil {
		p.Progress(p.read, p.all)
	}
	if p.read == 0 && slices.Max(p.first) > 0 { // what was before it arrived before it
		p.From = max(p.From, minuteOf(rec.Stamp+p.skew())+1)
	}
	p.read++
	r, err := decode(rec.Payload, p.Key)
	if err != nil {
		return fmt.Errorf("partition %d, offset %d: %w", rec.Partition, rec.Offset, err)
	}
	if !r.hasTime {
		r.time = rec.Stamp
	}
	outcome, sure := p.judge(rec, &r)
	usable := outcome != "malformed" && outcome != "future" && outcome != "too_old"
	minute := minuteOf(rec.Stamp)
	if usable {
		minute = minuteOf(r.time)
	}
	if minute < p.From || minute >= p.To || p.Held != nil && !p.Held(rec.Partition, rec.Offset, minute, usable) {
		return nil
	}
	if !sure {
		p.Unsure[minute] = true
	}
	p.Outcomes[Outcome{minute, outcome, r.reason}]++
	if outcome == "counted" || outcome == "late" {
		p.Events[Cell{minute, r.kind, r.item}]++
		if len(p.Events) > p.limit {
			p.cutTo(p.half())
			p.limit = max(p.Cells, 2*len(p.Events)) // more where one minute needs it
		}
	}
	return nil
}

// skew is how much later than its arrival an event may have been, at most, in ms.
func (p *pass) skew() (ms int64) {
	for _, s := range p.Settings {
		ms = max(ms, s.MaxSkew.Milliseconds())
	}
	return ms
}

// judge returns what becomes of a record under the settings that hold for it, and
// whether the journal has all that this depends on. All judges see all records.
func (p *pass) judge(rec *journal.Record, r *record) (outcome string, sure bool) {
	for _, j := range p.judges[rec.Partition] {
		of := j.outcome(rec.Offset, rec.Stamp, r)
		if j.From == nil || rec.Offset >= j.From[rec.Partition] {
			first := p.first[rec.Partition]
			outcome, sure = of, first == 0 || j.look(rec.Offset) >= first
		}
	}
	return outcome, sure
}

// half returns a minute before which there are about half of the counts, but at least
// one minute.
func (p *pass) half() int64 {
	sizes := make(map[int64]int)
	for c := range p.Events {
		sizes[c.Minute]++
	}
	sum := 0
	minutes := slices.Sorted(maps.Keys(sizes))
	for i, m := range minutes {
		sum += sizes[m]
		if i > 0 && sum > len(p.Events)/2 {
			return m
		}
	}
	return minutes[len(minutes)-1] + 1
}

// cutTo gives up all minutes from one on.
func (p *pass) cutTo(to int64) {
	p.To = to
	maps.DeleteFunc(p.Events, func(c Cell, _ uint64) bool { return c.Minute >= to })
	maps.DeleteFunc(p.Outcomes, func(o Outcome, _ uint64) bool { return o.Minute >= to })
	maps.DeleteFunc(p.Unsure, func(m int64, _ bool) bool { return m >= to })
}

// Touched returns the minutes that a record may be booked under: of its own time, and
// of its arrival.
func Touched(rec *journal.Record) (minutes []int64, err error) {
	r, err := decode(rec.Payload, 0)
	if err != nil || !r.hasTime || minuteOf(r.time) == minuteOf(rec.Stamp) {
		return []int64{minuteOf(rec.Stamp)}, err
	}
	return []int64{minuteOf(rec.Stamp), minuteOf(r.time)}, nil
}

func minuteOf(ms int64) int64 { return ms / 60_000 }
