package ingest

import (
	"context"
	"fmt"

	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/journal"
)

// JournalReader is a journal.Reader: it waits until there is a record.
type JournalReader interface {
	Next(ctx context.Context, b *journal.Batch) error
}

// PumpConfig is what a Pump needs to know.
type PumpConfig struct {
	Reader     JournalReader
	From       []int64 // of each partition, the offset that Reader begins at
	Hasher     sketches.Hasher
	Dimensions []string // declared, in the order of Event.Dims
	Submit     Submit
}

// Pump brings the records of a journal to those who count them. It is used by one
// goroutine.
type Pump struct {
	PumpConfig
	next       []int64 // of each partition, the offset to come
	pool       *pool
	dimensions map[string]int
	dims       [][]byte
	reasons    map[string]string
	record     stored
}

// NewPump returns a pump.
func NewPump(cfg PumpConfig) *Pump {
	p := &Pump{
		PumpConfig: cfg,
		next:       append([]int64{}, cfg.From...),
		pool:       newPool(len(cfg.From)),
		dimensions: make(map[string]int),
		dims:       make([][]byte, len(cfg.Dimensions)),
		reasons:    make(map[string]string),
	}
	p.pool.bytes = 0 // the records lie in what the journal has read
	for i, name := range cfg.Dimensions {
		p.dimensions[name] = i
	}
	return p
}

// Run submits records until ctx ends, which is an error, or until it has submitted
// those before the offset that until has for each partition; nil: without an end.
func (p *Pump) Run(ctx context.Context, until []int64) error {
	for !p.reached(until) {
		c, err := p.pool.get(ctx)
		if err != nil {
			return err
		}
		if err := p.fill(ctx, c); err != nil {
			c.release()
			return err
		}
		if err := c.handOut(ctx, p.Submit); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pump) reached(until []int64) bool {
	for i, end := range until {
		if p.next[i] < end {
			return false
		}
	}
	return until != nil
}

// fill reads what is at hand.
func (p *Pump) fill(ctx context.Context, c *chunk) error {
	if err := p.Reader.Next(ctx, &c.batch); err != nil {
		return err
	}
	for i := range c.batch.Records {
		r := &c.batch.Records[i]
		ev := c.add(r.Partition)
		if err := p.event(ev, c, r); err != nil {
			return fmt.Errorf("journal: partition %d, offset %d: %w", r.Partition, r.Offset, err)
		}
		p.next[r.Partition] = r.Offset + 1
	}
	return nil
}

// ErrVersion says that a later build has written the journal, and would count it otherwise.
var ErrVersion = fmt.Errorf("%s: use the build that wrote it, or a later one", reasonVersion)

// event makes an event of a record.
func (p *Pump) event(ev *windows.Event, c *chunk, r *journal.Record) error {
	s := &p.record
	reason := s.parse(r.Payload)
	switch {
	case reason == reasonVersion:
		return ErrVersion
	case reason != "":
	case len(s.reason) > 0:
		reason = p.reason(s.reason)
	case (s.hasUser || s.hasID || s.hasOwner) && s.kid != p.Hasher.KeyID():
		reason = reasonKey
	}
	if reason != "" {
		*ev = windows.Event{Offset: r.Offset, Stamp: r.Stamp, Hash: r.Hash(), Reason: reason, Outcome: windows.Malformed}
		return nil
	}
	*ev = windows.Event{
		Offset: r.Offset, Stamp: r.Stamp, Time: r.Stamp, Hash: r.Hash(),
		Item: s.item, Type: s.typ,
		ItemHash: p.Hasher.Item(s.item),
		User:     s.user, HasUser: s.hasUser,
		ID: s.id, HasID: s.hasID,
		History: s.history,
	}
	if s.hasTime {
		ev.Time = s.time
	}
	if s.info.Title != nil || s.info.URL != nil || s.info.Image != nil {
		ev.Info = c.keepInfo(s.info)
	}
	any := false
	for _, d := range s.dims {
		if i, declared := p.dimensions[string(d.name)]; declared {
			p.dims[i], any = d.value, true
		}
	}
	if any {
		ev.Dims = c.keepDims(p.dims)
		clear(p.dims)
	}
	return nil
}

// maxReasons bounds those that are kept: there are a few, and some a dimension.
const maxReasons = 4096

// reason returns the text, which is the same few again and again.
func (p *Pump) reason(text []byte) string {
	if known, ok := p.reasons[string(text)]; ok {
		return known
	}
	reason := string(text)
	if len(p.reasons) < maxReasons {
		p.reasons[reason] = reason
	}
	return reason
}
