package windows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/sketches"
)

// Batch is a number of events of one partition, in the order of their offsets.
// Release, if there is one, is called once the events are not needed any more.
type Batch struct {
	Events  []Event
	Release func()
}

// Applier keeps seals: one atomic, synced batch a seal. It is called by many
// partitions at once, and by one with one seal after the other. It must do nothing
// if it has the seal already.
type Applier interface {
	Apply(*Seal) error
}

// EngineConfig is what the engine of one log needs to know.
type EngineConfig struct {
	Log        LogID
	Positions  []Position // of each partition, to go on from
	From       []int64    // of each partition: see PartitionConfig; nil: 0
	Hasher     sketches.Hasher
	Limits     Limits // of a whole minute: each partition's window gets its share
	Dimensions []string
	Judge      func(partition int) Judge
	Look       func(offset int64) int64
	Memory     int // of all partitions together, bytes: see PartitionConfig
	History    bool
	Lateness   time.Duration
	MaxSkew    time.Duration
	Idle       time.Duration
	// End returns the end of a partition of a live log, as just told by it, and
	// false where the log did not answer within the last second.
	End     func(partition int) (offset int64, ok bool)
	Store   Applier
	Logger  *slog.Logger
	Metrics *Metrics
}

// Engine runs the partitions of one log: a goroutine each, which judges, counts,
// cuts, and stores what it has cut.
type Engine struct {
	cfg        EngineConfig
	partitions []*Partition
	queues     []chan Batch
	end        int64 // of the log: set before the queues are closed
	stop       chan struct{}
	stopOnce   sync.Once
	running    sync.WaitGroup

	// leading is the most advanced watermark of the log, Unix ms.
	leading atomic.Int64

	mu  sync.Mutex
	err error // the first failure of a partition; it ends them all
}

// queueSize is how many batches wait for a partition before Submit blocks.
const queueSize = 4

// NewEngine starts the engine of a log. Close or Finish it.
func NewEngine(cfg EngineConfig) *Engine {
	e := &Engine{cfg: cfg, stop: make(chan struct{})}
	n := len(cfg.Positions)
	for i, pos := range cfg.Positions {
		from := int64(0)
		if cfg.From != nil {
			from = cfg.From[i]
		}
		p := NewPartition(PartitionConfig{
			Log:        cfg.Log,
			Number:     i,
			Position:   pos,
			From:       from,
			Hasher:     cfg.Hasher,
			Limits:     Limits{Items: max(1, cfg.Limits.Items/n), Values: cfg.Limits.Values},
			Dimensions: cfg.Dimensions,
			Judge:      cfg.Judge(i),
			Look:       cfg.Look,
			Memory:     cfg.Memory / n,
			History:    cfg.History,
			Lateness:   cfg.Lateness,
			MaxSkew:    cfg.MaxSkew,
			Idle:       cfg.Idle,
			Metrics:    cfg.Metrics,
		})
		q := make(chan Batch, queueSize)
		e.partitions, e.queues = append(e.partitions, p), append(e.queues, q)
		e.running.Add(1)
		go e.run(p, q)
	}
	return e
}

// Submit hands a batch to its partition. It blocks while the partition's queue is
// full, until ctx ends. After a partition has failed it returns the failure.
// Batches of one partition must come from one goroutine, in order.
func (e *Engine) Submit(ctx context.Context, partition int, b Batch) error {
	select {
	case e.queues[partition] <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.stop:
		return e.failure()
	}
}

// Finish closes everything at the end of the log, which is at offset end, or 0 for
// after the last record of each partition, waits until it is stored, and ends the engine. Nothing may be submitted any more.
func (e *Engine) Finish(end int64) error {
	e.end = end
	for _, q := range e.queues {
		close(q)
	}
	e.running.Wait()
	e.halt()
	return e.failed()
}

// Close ends the engine and leaves open windows unsealed: the log has them.
func (e *Engine) Close() {
	e.halt()
	e.running.Wait()
}

// Partitions returns how many partitions there are.
func (e *Engine) Partitions() int { return len(e.partitions) }

// Log returns the log that is counted.
func (e *Engine) Log() LogID { return e.cfg.Log }

// Read is Partition.Read of one partition.
func (e *Engine) Read(partition int, stored Pair, yield func(*Content)) bool {
	return e.partitions[partition].Read(stored, yield)
}

// State is Partition.State of one partition.
func (e *Engine) State(partition int) State { return e.partitions[partition].State() }

func (e *Engine) run(p *Partition, queue <-chan Batch) {
	defer e.running.Done()
	if err := e.consume(p, queue); err != nil {
		e.fail(fmt.Errorf("partition %d: %w", p.Number, err))
	}
}

// consume handles batches until the engine is closed or the log ends.
func (e *Engine) consume(p *Partition, queue <-chan Batch) error {
	cut := func(to Pair) error { return e.cut(p, to) }
	var tick <-chan time.Time
	if !e.cfg.History {
		ticker := time.NewTicker(tickEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-e.stop:
			return nil
		case <-tick:
			if err := e.tick(p, cut); err != nil {
				return err
			}
		case b, ok := <-queue:
			if !ok {
				for to, any := p.End(e.end); any; to, any = p.End(e.end) {
					if err := cut(to); err != nil {
						return err
					}
				}
				return nil
			}
			err := p.Add(b.Events, cut)
			if b.Release != nil {
				b.Release()
			}
			if err != nil {
				return err
			}
		}
	}
}

// tickEvery is how often a live partition looks whether time alone lets it seal.
const tickEvery = 100 * time.Millisecond

func (e *Engine) tick(p *Partition, cut func(Pair) error) error {
	end, ok := e.cfg.End(p.Number)
	if !ok {
		end = math.MaxInt64 // not known: not idle
	}
	watermark, err := p.Tick(time.Now(), end, e.leading.Load(), cut)
	for {
		leading := e.leading.Load()
		if watermark <= leading || e.leading.CompareAndSwap(leading, watermark) {
			return err
		}
	}
}

// Watermark returns the least watermark of the partitions of a live log, Unix ms.
func (e *Engine) Watermark() int64 {
	least := int64(math.MaxInt64)
	for _, p := range e.partitions {
		least = min(least, p.State().Watermark)
	}
	return least
}

// cut seals and stores. While the store works, readers find the seal waiting.
func (e *Engine) cut(p *Partition, to Pair) error {
	begin := time.Now()
	s := p.Cut(to)
	if err := e.cfg.Store.Apply(s); err != nil {
		return fmt.Errorf("store the seal at offset %d: %w", to.S, err)
	}
	p.Stored()
	e.cfg.Metrics.sealed(s, time.Since(begin))
	return nil
}

func (e *Engine) halt() { e.stopOnce.Do(func() { close(e.stop) }) }

func (e *Engine) fail(err error) {
	e.mu.Lock()
	if e.err == nil {
		e.err = err
	}
	e.mu.Unlock()
	e.halt()
}

func (e *Engine) failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// errClosed is what Submit returns on an engine that was closed.
var errClosed = errors.New("the engine is closed")

func (e *Engine) failure() error {
	if err := e.failed(); err != nil {
		return err
	}
	return errClosed
}
