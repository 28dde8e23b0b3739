package ingest

import (
	"context"
	"sync/atomic"

	"tidemark/windows"
	"tidemark/windows/journal"
)

// Sizes of the buffers of an import. Small chunks stay in a core's own cache from
// the read to the last use by a partition; much smaller ones pay more for handing
// over than for counting. All of them together are what waits for partitions.
const (
	chunkBytes  = 128 << 10
	chunkEvents = 1024
	chunks      = 12
)

// chunk is a piece of a file, or of a journal, and the events read from it. The events point into
// the piece, so it is used again only when the last batch of them is released.
type chunk struct {
	buf   []byte        // the piece, and room for slack bytes behind it
	pos   int           // of the next record
	end   int           // of the bytes read
	arena []byte        // unescaped strings
	batch journal.Batch // in the place of a piece of a file

	events  [][]windows.Event // by partition
	records int
	dims    [][]byte       // back Event.Dims
	infos   []windows.Info // back Event.Info

	refs    atomic.Int32 // batches not yet released, and one for the reader
	release func()       // gives up one of refs
}

// add returns a new event of a partition, to be filled in completely.
func (c *chunk) add(partition int) *windows.Event {
	c.records++
	events := c.events[partition]
	if n := len(events); n < cap(events) {
		c.events[partition] = events[:n+1]
		return &c.events[partition][n]
	}
	events = append(events, windows.Event{})
	c.events[partition] = events
	return &events[len(events)-1]
}

// grow makes room for a longer record.
func (c *chunk) grow() {
	buf := make([]byte, 2*(len(c.buf)-slack)+slack)
	copy(buf, c.buf[:c.end])
	c.buf = buf
}

// keepDims copies the values of dimensions for an event.
func (c *chunk) keepDims(dims [][]byte) [][]byte {
	n := len(c.dims)
	c.dims = append(c.dims, dims...)
	return c.dims[n:len(c.dims):len(c.dims)]
}

// keepInfo copies what an event says of its item.
func (c *chunk) keepInfo(info windows.Info) *windows.Info {
	c.infos = append(c.infos, info)
	return &c.infos[len(c.infos)-1]
}

// pool hands out a bounded number of chunks.
type pool struct {
	free       chan *chunk
	made       int
	partitions int
	bytes      int // of a new chunk
	events     int // that fill a chunk
}

func newPool(partitions int) *pool {
	return &pool{free: make(chan *chunk, chunks), partitions: partitions, bytes: chunkBytes, events: chunkEvents}
}

// get returns an empty chunk. If all are in use it waits for one.
func (p *pool) get(ctx context.Context) (*chunk, error) {
	select {
	case c := <-p.free:
		c.reset()
		return c, nil
	default:
	}
	if p.made < cap(p.free) {
		p.made++
		return p.make(), nil
	}
	select {
	case c := <-p.free:
		c.reset()
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pool) make() *chunk {
	c := &chunk{buf: make([]byte, p.bytes+slack), events: make([][]windows.Event, p.partitions)}
	c.refs.Store(1)
	c.release = func() {
		if c.refs.Add(-1) == 0 {
			p.free <- c // never blocks: there is room for all
		}
	}
	return c
}

func (c *chunk) reset() {
	c.pos, c.end, c.records = 0, 0, 0
	c.arena, c.dims, c.infos = c.arena[:0], c.dims[:0], c.infos[:0]
	for i := range c.events {
		c.events[i] = c.events[i][:0]
	}
	c.refs.Store(1)
}

// Submit takes a batch of a partition. Batches of a partition are submitted one
// after the other, in the order of their offsets.
type Submit func(ctx context.Context, partition int, b windows.Batch) error

// handOut submits the events, and gives up the reader's hold on the chunk.
func (c *chunk) handOut(ctx context.Context, submit Submit) error {
	defer c.release()
	for p, events := range c.events {
		if len(events) == 0 {
			continue
		}
		c.refs.Add(1)
		if err := submit(ctx, p, windows.Batch{Events: events, Release: c.release}); err != nil {
			return err
		}
	}
	return nil
}
