package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tidemark/web"
	"tidemark/windows"
	"tidemark/windows/ingest"
	"tidemark/windows/journal"
	"tidemark/windows/store"
)

// live is the data folder of a server: a journal that events are taken into, a store,
// and an engine that brings what is in the one into the other.
//
// The journal is a log of the store. What the engine has not stored when it ends is
// read from the journal again. Settings that decide what becomes of a record hold from
// the journal's end on, where they change: see settle.
type live struct {
	cfg      *Config
	logger   *slog.Logger
	store    opened
	journal  *journal.Journal
	log      windows.LogID
	engine   *windows.Engine
	accepter *ingest.Accepter
	imports  *imports
	begun    []int64 // the journal's ends at the start

	trimming sync.Mutex // held while the journal is trimmed, or must not be
	copying  sync.Mutex // held while a backup is made, and from close on

	stop    context.CancelFunc
	running sync.WaitGroup
	failure atomic.Pointer[error] // why nothing is counted any more
	broken  func(error)           // called when the store has to be opened anew
}

// openLive opens store and journal, or makes them, and begins to count. Close it. broken
// is called when that has to be done anew, since writing the store has failed in a way that
// can't be gone on after.
func openLive(ctx context.Context, c *Config, metrics metrics, broken func(error), logger *slog.Logger) (*live, error) {
	l := &live{cfg: c, logger: logger, stop: func() {}, broken: broken}
	var err error
	if l.store, err = openForWriting(c, true, logger); err != nil {
		return nil, err
	}
	if err := l.open(ctx, metrics); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *live) open(ctx context.Context, metrics metrics) error {
	meta := l.store.Meta()
	j, err := journal.Open(journal.Options{
		Dir: filepath.Join(l.cfg.Data, "journal"), Partitions: meta.Partitions, Logger: l.logger, Metrics: metrics.journal,
	})
	if err != nil {
		return err
	}
	l.journal, l.begun = j, j.Ends()
	if l.imports, err = openImports(ctx, l.cfg.Data, j, l.logger); err != nil {
		return err
	}
	now := l.settings()
	versions, err := l.begin(now)
	if err != nil {
		return err
	}
	if err := checkJournal(ctx, l.store.Store, j, l.log, l.cfg.Data); err != nil {
		return err
	}
	inForce, err := l.settle(ctx, versions, now)
	if err != nil {
		return err
	}
	l.engine = windows.NewEngine(l.engineConfig(inForce, metrics.windows))
	l.accepter = ingest.NewAccepter(ingest.AccepterConfig{
		Journal: j, Partitions: meta.Partitions, Hasher: l.store.hasher, Type: meta.ViewTypes[0], Dimensions: meta.Dimensions,
	})
	pump, reader, err := l.pump(inForce, l.engine)
	if err != nil {
		return err
	}
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.running.Go(func() {
		err := pump.Run(ctx, nil)
		if ctx.Err() == nil {
			l.logger.ErrorContext(ctx, "counting has ended; what is accepted is in the journal, and is counted later", "err", err)
			l.failure.Store(&err)
			l.lookAt(err)
		}
		_ = reader.Close() // it was only read
	})
	l.running.Go(func() { l.maintain(ctx) })
	return nil
}

// begin finds the journal among the logs of the store, or makes it known there. It
// returns the settings that hold for what the journal has already.
func (l *live) begin(now journalSettings) (before settingsVersions, err error) {
	id := l.journal.ID()
	text, err := settingsVersions{{nil, now}}.text()
	if err != nil {
		return nil, err
	}
	log := store.Log{ID: id, Names: []string{"journal"}, Started: time.Now().UnixMilli(), Settings: text}
	known := false
	for _, other := range l.store.Logs() {
		known = known || other.ID == id
		if _, err := parseVersions(other.Settings); other.ID != id && err == nil { // those of an import are no JSON
			return nil, fmt.Errorf("the store in %s does not belong to the journal in %s: it was fed from journal %x, and this is %x: bring that one back, or begin with a new folder (--data)",
				storeDir(l.cfg), filepath.Join(l.cfg.Data, "journal"), other.ID, id)
		}
	}
	for i, first := range l.journal.First() {
		if !known && first > 0 {
			return nil, fmt.Errorf("the store in %s does not belong to the journal: it has nothing of it, and partition %d of the journal begins at offset %d: bring the store back that was fed from it", storeDir(l.cfg), i, first)
		}
	}
	for range l.store.Meta().Partitions {
		log.E = append(log.E, newIncarnation())
	}
	if log, err = l.store.Begin(log); err != nil {
		return nil, err
	}
	l.log = log.ID
	if log.Done { // at the end of the last run
		if err := l.store.Reopen(l.log); err != nil {
			return nil, err
		}
	}
	if before, err = parseVersions(log.Settings); err != nil {
		return nil, fmt.Errorf("the settings of the journal, as the store has them: %w", err)
	}
	return before, nil
}

// settle counts all that the journal has under the settings that held when it came,
// and closes it, if others hold from here on. It returns those that hold.
func (l *live) settle(ctx context.Context, versions settingsVersions, now journalSettings) (inForce settingsVersion, err error) {
	before := versions[len(versions)-1]
	was, err := json.Marshal(before.journalSettings)
	if err != nil {
		return before, err
	}
	is, err := json.Marshal(now)
	if err != nil || string(was) == string(is) {
		return before, err
	}
	l.logger.InfoContext(ctx, "other settings hold from here on", "before", string(was), "now", string(is), "offsets", l.begun)
	engine := windows.NewEngine(l.engineConfig(before, nil))
	pump, reader, err := l.pump(before, engine)
	if err != nil {
		engine.Close()
		return before, err
	}
	err = pump.Run(ctx, l.begun)
	_ = reader.Close() // it was only read
	if err != nil {
		engine.Close()
		return before, err
	}
	if err := engine.Finish(0); err != nil {
		return before, err
	}
	versions = versions.then(now, l.begun)
	text, err := versions.text()
	if err != nil {
		return before, err
	}
	return versions[len(versions)-1], l.store.Settle(l.log, text)
}

// positions returns what to go on from: far enough back for the first outcomes under
// these settings, as far as the journal reaches.
func (l *live) positions(s journalSettings) []windows.Position {
	generation, first := ingest.Generation(s.DedupEvents, 1), l.journal.First()
	positions := l.store.Positions(l.log)
	for p := range positions {
		pos := &positions[p]
		pos.R = min(pos.R, max(first[p], ingest.Look(generation, pos.To.S)))
	}
	return positions
}

func (l *live) engineConfig(s settingsVersion, m *windows.Metrics) windows.EngineConfig {
	generation := ingest.Generation(s.DedupEvents, 1)
	return windows.EngineConfig{
		Log:        l.log,
		Positions:  l.positions(s.journalSettings),
		From:       s.From,
		Hasher:     l.store.hasher,
		Limits:     windows.Limits{Items: s.MaxItemsPerWindow, Values: maxValues},
		Dimensions: s.Dimensions,
		Judge: func(int) windows.Judge {
			return ingest.NewJudge(ingest.JudgeConfig{Generation: generation, Lateness: s.Lateness, MaxLateness: s.MaxLateness, MaxSkew: s.MaxSkew})
		},
		Look:     func(offset int64) int64 { return ingest.Look(generation, offset) },
		Memory:   l.cfg.WindowMemory,
		Lateness: s.Lateness,
		MaxSkew:  s.MaxSkew,
		Idle:     l.cfg.Idle,
		End:      func(partition int) (int64, bool) { return l.journal.Ends()[partition], true },
		Store:    l.store,
		Logger:   l.logger,
		Metrics:  m,
	}
}

// pump returns what feeds an engine under these settings. The reader is to be closed.
func (l *live) pump(s settingsVersion, engine *windows.Engine) (*ingest.Pump, *journal.Reader, error) {
	var from []int64
	for _, pos := range l.positions(s.journalSettings) {
		from = append(from, pos.R)
	}
	reader, err := l.journal.NewReader(from)
	if err != nil {
		return nil, nil, err
	}
	return ingest.NewPump(ingest.PumpConfig{
		Reader: reader, From: from, Hasher: l.store.hasher, Dimensions: s.Dimensions, Submit: engine.Submit,
	}), reader, nil
}

// maintainEvery is how often the store is looked after and the journal is trimmed.
const maintainEvery = time.Minute

// maintain rolls up what has been passed, and removes what the journal need not keep.
func (l *live) maintain(ctx context.Context) {
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := l.store.Maintain(ctx, windows.MinuteOf(l.engine.Watermark()))
		if err == nil {
			err = l.trim(ctx)
		}
		if err != nil && ctx.Err() == nil {
			l.logger.ErrorContext(ctx, "maintenance failed; it is tried again in a minute", "err", err)
			l.lookAt(err)
		}
	}
}

// lookAt tells if an error is one that the store has to be opened anew after.
func (l *live) lookAt(err error) {
	if errors.Is(err, store.ErrBroken) && !errors.Is(err, store.ErrDamaged) {
		l.broken(err)
	}
}

func (l *live) trim(ctx context.Context) error {
	if l.cfg.JournalRetention == forever {
		return nil
	}
	var needed []int64
	for _, pos := range l.store.Positions(l.log) {
		needed = append(needed, pos.R)
	}
	if l.imports.pending() {
		return nil // the next start may look for a batch there
	}
	l.trimming.Lock()
	defer l.trimming.Unlock()
	return l.journal.Trim(ctx, needed, time.Now().Add(-l.cfg.JournalRetention))
}

// watermark is that of the answers: MaxInt64 while the journal has never had a record.
func (l *live) watermark() int64 {
	for _, end := range l.journal.Ends() {
		if end > 0 {
			return l.engine.Watermark()
		}
	}
	return math.MaxInt64
}

// settling returns how long after the watermark has passed a minute an event can
// still be counted there.
func settling(maxLateness, maxSkew time.Duration) time.Duration {
	if forever-maxLateness < maxSkew+time.Minute {
		return forever
	}
	return maxLateness + maxSkew + time.Minute
}

// ready says why questions can't be answered, if they can't: what was accepted before
// the start is still being read.
func (l *live) ready(context.Context) error {
	if err := l.behind(l.begun); err != nil {
		return err
	}
	n, err := l.store.Snapshot()
	if err != nil {
		return err
	}
	return n.Close()
}

// close ends counting, stores what is counted, and closes journal and store, in this
// order.
func (l *live) close() error {
	if l.store.Waiting() != nil {
		l.store.GiveUp()
	}
	defer time.AfterFunc(giveUpAfter, l.store.GiveUp).Stop()
	var err error
	if l.engine != nil {
		err = l.end()
	}
	l.copying.Lock() // whoever gets a backup is cut off by now
	if l.journal != nil {
		err = errors.Join(err, l.journal.Close())
	}
	return errors.Join(err, l.store.Close())
}

// giveUpAfter is how long the end waits for a disk that is full.
const giveUpAfter = 5 * time.Second

// endWithin bounds how long the end waits until all that was accepted is counted.
const endWithin = time.Second

// end ends the engine, and stores what is in its windows: so that the folder alone
// answers with all that was accepted, and the next start has nothing to read again.
// What is not counted by now is in the journal, and the log has then not ended.
func (l *live) end() error {
	all := false
	for begun := time.Now(); !all && l.failure.Load() == nil && time.Since(begun) < endWithin; time.Sleep(time.Millisecond) {
		all = l.behind(l.journal.Ends()) == nil
	}
	l.stop()
	l.running.Wait()
	if !all {
		l.engine.Close()
		return nil
	}
	if err := l.engine.Finish(0); err != nil {
		return fmt.Errorf("what was not stored yet is in the journal, and is counted at the next start: %w", err)
	}
	return l.store.Finish(l.log)
}

// behind says where the engine has not got to the ends, if it has not.
func (l *live) behind(ends []int64) error {
	for p, end := range ends {
		if next := l.engine.State(p).Next; next < end {
			return fmt.Errorf("partition %d of the journal is being read again: at offset %d of %d", p, next, end)
		}
	}
	return nil
}

// Unavailable implements web.Acceptor.
func (l *live) Unavailable() string {
	if l.failure.Load() != nil {
		return "counting has failed; the server's log says why"
	}
	if err := l.store.Waiting(); err != nil {
		return unavailable(err)
	}
	return unavailable(l.journal.Unavailable())
}

// unavailable says in words for a client why a journal can't be written.
func unavailable(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk is full"
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "the data folder can't be written"
	}
	return "the disk does not take them; the server's log says why"
}

// Accept implements web.Acceptor.
func (l *live) Accept(ctx context.Context, e web.Events) (web.Receipt, error) {
	if e.Import.Name == "" {
		return l.accept(ctx, e)
	}
	return l.imports.take(e.Import, func() (web.Receipt, error) {
		// Whether it was taken must be known, also when nobody waits for it any more.
		return l.accept(context.WithoutCancel(ctx), e)
	})
}

func (l *live) accept(ctx context.Context, e web.Events) (web.Receipt, error) {
	forms := [...]ingest.Form{web.AnyForm: ingest.AnyForm, web.JSON: ingest.JSON, web.NDJSON: ingest.NDJSON, web.CSV: ingest.CSV}
	got, err := l.accepter.Accept(ctx, ingest.Body{
		Reader: e.Body, Size: e.Size, Form: forms[e.Form], History: e.History,
		Imported: ingest.Imported{Name: e.Import.Name, Through: e.Import.Through},
	})
	switch {
	case errors.Is(err, ingest.ErrBusy):
		return web.Receipt{}, &web.Refusal{Status: 429, Detail: "more events come in than can be made durable at present; nothing of these was taken", RetryAfter: time.Second}
	case errors.Is(err, ingest.ErrLimit):
		return web.Receipt{}, &web.Refusal{Status: 413, Detail: err.Error() + "; nothing of it was taken"}
	case errors.Is(err, ingest.ErrUnreadable):
		return web.Receipt{}, &web.Refusal{Status: 400, Detail: "the body broke off, or can't be inflated; nothing of it was taken"}
	case errors.Is(err, journal.ErrUnavailable), errors.Is(err, journal.ErrClosed):
		return web.Receipt{}, &web.Refusal{Status: 503, Detail: "events cannot be taken now: " + unavailable(err) + "; send them again with the same event IDs", RetryAfter: time.Second}
	case err != nil:
		return web.Receipt{}, err
	}
	r := web.Receipt{Accepted: got.Accepted, Rejected: got.Rejected}
	for _, e := range got.Errors {
		r.Errors = append(r.Errors, web.Rejection{Line: e.Line, Reason: e.Reason})
	}
	return r, nil
}
