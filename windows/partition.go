package windows

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"tidemark/sketches"
)

// Judge decides what becomes of each record: it sets the Outcome of every event
// that is not Malformed already. It sees each record of its partition from R on,
// once, in the order of offsets.
type Judge interface {
	Judge(events []Event)
}

// PartitionConfig is what a partition needs to know.
type PartitionConfig struct {
	Log      LogID
	Number   int
	Position Position // to go on from
	// Begun are the pairs that an owner before has begun and not delivered, oldest first:
	// they are cut again, at exactly their places, before any other.
	Begun []Pair
	// From is the offset that Judge decides from. All before it is held by seals that
	// were made of what other settings decided: what Judge says of it may be otherwise.
	From       int64
	Hasher     sketches.Hasher
	Limits     Limits
	Dimensions []string // declared, in the order of Event.Dims
	Judge      Judge
	Look       func(offset int64) int64 // the smallest offset that the outcome of a record at offset depends on

	// Memory is how much the windows that no watermark closes may take, in bytes,
	// before a cut closes them: in history all, in a live log those of late events.
	Memory int
	// History says that the log is history: only Memory and the end of the log cut.
	History  bool
	Lateness time.Duration // of a live log
	MaxSkew  time.Duration // of a live log
	Idle     time.Duration // of a live log: see Watermark
	Metrics  *Metrics      // nil: none
}

// Partition owns the open windows of one partition of a log. Add, Cut and Stored
// are called by one goroutine; Read by any.
type Partition struct {
	PartitionConfig
	watermark Watermark

	// mu guards what follows. The owner holds it for one run of events, a reader
	// while it looks.
	mu      sync.Mutex
	open    map[Minute]*Window
	refused map[Minute]*Window // of records without a usable minute, from to.F on: see windowOf
	last    *Window            // the one touched last
	to      Pair               // the newest pair cut
	then    Pair               // the pair to cut next, after one for what was refused; zero: none
	stored  Pair               // the newest pair stored
	next    int64              // the offset after the last record seen
	mark    Mark               // that record
	stamp   int64              // its own timestamp, Unix ms
	newest  Minute             // highest minute of an open window since ever
	guess   int                // how many items its window has: the next one will have about as many
	memory  int                // of the windows that no watermark closes
	waiting []*Seal            // cut and not stored, oldest first
	infos   infos

	phase   int   // records of the present run
	records int64 // since the last cut
	run     run
}

// runSize is how many records are handled by one pass of the batch loops; the
// budget is looked at after each such number of records of the partition, so that
// cuts do not depend on how records come.
const runSize = 128

// run is the scratch of the batch loops.
type run struct {
	events  [runSize]*Event
	windows [runSize]*Window
	series  [runSize]*seriesState
	keys    [runSize]key
	tokens  [runSize]uint32
	slots   [runSize]*slot
	sizes   [runSize]int // of the table that the slot is in
	touched uint64
}

// maxRecords bounds a seal, so that a count of a slot can't wrap.
const maxRecords = 1 << 31

// NewPartition returns a partition that goes on from cfg.Position.
func NewPartition(cfg PartitionConfig) *Partition {
	return &Partition{
		PartitionConfig: cfg,
		watermark:       NewWatermark(cfg.Lateness, cfg.MaxSkew, cfg.Idle),
		open:            make(map[Minute]*Window),
		refused:         make(map[Minute]*Window),
		to:              cfg.Position.To,
		stored:          cfg.Position.To,
		next:            cfg.Position.R,
	}
}

// Add judges and counts records. After each run of records cut is called where
// one is due.
func (p *Partition) Add(events []Event, cut func(Pair) error) error {
	p.Judge.Judge(events)
	for len(events) > 0 {
		n := min(len(events), runSize-p.phase)
		p.mu.Lock()
		if len(p.Begun) > 0 {
			n = min(n, countBefore(events, p.Begun[0].S))
		}
		if n > 0 {
			p.addRun(events[:n])
		} else {
			p.next = p.Begun[0].S // the log has nothing up to there
		}
		p.mu.Unlock()
		if err := p.cutDue(cut); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// countBefore returns how many of the events are before an offset.
func countBefore(events []Event, offset int64) int {
	for i := range events {
		if events[i].Offset >= offset {
			return i
		}
	}
	return len(events)
}

// cutDue cuts for as long as a cut is due.
func (p *Partition) cutDue(cut func(Pair) error) error {
	for {
		p.mu.Lock()
		pair, due := p.due()
		p.mu.Unlock()
		if !due {
			return nil
		}
		if err := cut(pair); err != nil {
			return err
		}
	}
}

// Tick says that time has passed: end is the end of the partition's log as just told
// by it, leading the most advanced watermark of the log. cut is called if that lets
// a minute be closed. It returns the partition's watermark, Unix ms.
func (p *Partition) Tick(now time.Time, end, leading int64, cut func(Pair) error) (watermark int64, err error) {
	p.mu.Lock()
	if p.next < end {
		p.watermark.Busy()
	} else {
		p.watermark.Idle(now, leading)
	}
	watermark = p.watermark.At(now)
	p.mu.Unlock()
	return watermark, p.cutDue(cut)
}

// addRun counts at most runSize records.
func (p *Partition) addRun(events []Event) {
	r := &p.run
	n := 0
	var st *seriesState     // of the record before
	var from, to int64      // the minute of st
	for i := range events { // resolve: which series of which window, key, token
		ev := &events[i]
		if st == nil || ev.Time < from || ev.Time >= to || string(ev.Type) != st.Type || !ev.Outcome.Counts() || ev.Offset < max(p.From, p.Position.To.S) {
			if p.held(ev) {
				continue
			}
			w := p.windowOf(ev)
			w.book(ev)
			if ev.Outcome == Malformed {
				continue
			}
			st = nil
			if ev.Outcome.Counts() {
				p.watermark.Observe(ev.Time)
				if st = w.findType(ev.Type); st != nil {
					from = w.minute.UnixMilli()
					to = from + MillisPerMinute
				}
			}
			if st == nil {
				r.windows[n] = w
			}
		} else {
			st.window.outcomes[ev.Outcome]++
			p.watermark.Observe(ev.Time)
		}
		r.events[n], r.series[n] = ev, st
		r.tokens[n] = sketches.Token(ev.User)
		if st != nil {
			r.keys[n] = keyOf(st.typ, ev.ItemHash)
		}
		n++
	}
	touched := r.touched // kept, or the compiler leaves the reads out
	for i := range n {   // touch: let the cache misses of the run overlap
		st := r.series[i]
		if st == nil {
			continue
		}
		if w := st.window; len(w.slots) > 0 {
			touched += w.slots[w.home(r.keys[i].hash)].hash
		}
	}
	r.touched = touched
	// Count. Whatever opens a series or takes a slot happens here, record after
	// record: in the loops above it would depend on where a batch, and so a run, ends.
	for i := range n {
		ev, st := r.events[i], r.series[i]
		if st == nil { // does not count, or is the first of its type in this run
			w := r.windows[i]
			if !ev.Outcome.Counts() {
				w.addOutcome(ev)
				continue
			}
			st = w.typeSeries(ev.Type)
			r.series[i] = st
			r.keys[i] = keyOf(st.typ, ev.ItemHash)
		}
		w := st.window
		r.slots[i] = w.count(st, r.keys[i], ev)
		r.sizes[i] = len(w.slots)
		if len(ev.Dims) > 0 {
			w.addBreakdowns(st, ev, r.tokens[i])
		}
		if ev.Info != nil {
			p.memory += p.infos.observe(ev)
		}
	}
	for i := range n { // viewers of the site
		if st := r.series[i]; st != nil && r.events[i].HasUser {
			st.window.addToken(&st.site, r.tokens[i])
		}
	}
	for i := range n { // viewers of items
		st, s := r.series[i], r.slots[i]
		if st == nil || !r.events[i].HasUser || s == nil {
			continue
		}
		w := st.window
		if len(w.slots) != r.sizes[i] { // it has moved since
			s, _ = w.find(r.keys[i])
		}
		w.addToken(s, r.tokens[i])
	}
	last := &events[len(events)-1]
	p.next, p.mark, p.stamp = last.Offset+1, Mark{last.Offset, last.Hash}, last.Stamp
	p.records += int64(len(events))
	p.phase = (p.phase + len(events)) % runSize
	if p.phase == 0 { // whatever batches they came in
		p.guess = 0
		if w := p.open[p.newest]; w != nil {
			p.guess = w.Items()
		}
	}
}

// held reports whether a seal holds the record already: then it has only fed the
// judge.
func (p *Partition) held(ev *Event) bool {
	return ev.Offset < p.From || ev.Offset < p.Position.To.S && (ev.Outcome.Quarantined() || MinuteOf(ev.Time) < p.Position.To.F)
}

// windowOf returns the open window that an event is booked in. One without a usable
// minute is held by the next pair whatever the minute of its record is: in a window of
// that minute which no watermark has to close. Where that minute is sealed by then
// anyway, there is one window of it.
func (p *Partition) windowOf(ev *Event) *Window {
	m := ev.Minute()
	if !ev.Outcome.Quarantined() || m < p.to.F {
		return p.window(m, ev.Offset)
	}
	w := p.refused[m]
	if w == nil {
		w = newWindow(m, p.Hasher, p.Limits, p.Dimensions, ev.Offset, 0)
		p.refused[m] = w
		p.addMemory(w)
	}
	return w
}

// addMemory counts a window that no watermark will close against the budget.
func (p *Partition) addMemory(w *Window) {
	w.total = &p.memory
	p.memory += w.Bytes()
}

// window returns the open window of a minute.
func (p *Partition) window(m Minute, offset int64) *Window {
	if p.last != nil && p.last.minute == m {
		return p.last
	}
	w := p.open[m]
	if w == nil {
		items := 0
		if m > p.newest {
			items = p.guess
		}
		w = newWindow(m, p.Hasher, p.Limits, p.Dimensions, offset, items)
		p.open[m] = w
		p.newest = max(p.newest, m)
		if p.History || m < p.to.F { // no watermark will close it
			p.addMemory(w)
		}
	}
	p.last = w
	return w
}

// due says whether a cut is due, and its pair.
func (p *Partition) due() (Pair, bool) {
	if p.then != (Pair{}) {
		return p.then, true
	}
	to, due := p.closing()
	if !due {
		return Pair{}, false
	}
	return p.refusedFirst(to), true
}

// refusedFirst returns what to cut on the way to a pair: where minutes are closed, what
// was refused is cut before, at the same offset, so that a seal has one partial a minute.
func (p *Partition) refusedFirst(to Pair) Pair {
	if len(p.refused) == 0 || to.F == p.to.F || len(p.Begun) > 0 {
		return to
	}
	p.then = to
	return Pair{F: p.to.F, S: to.S}
}

// closing says what is to be closed, if anything.
func (p *Partition) closing() (Pair, bool) {
	if len(p.Begun) > 0 {
		return p.Begun[0], p.next >= p.Begun[0].S
	}
	if len(p.open)+len(p.refused) == 0 || p.phase != 0 && p.History || p.next < p.Position.To.S {
		return Pair{}, false // never an empty cut, never one below the newest S known
	}
	full := p.phase == 0 && p.memory > p.Memory
	if p.History {
		if full || p.records >= maxRecords {
			return p.all(), true
		}
		return Pair{}, false
	}
	to := Pair{F: p.to.F, S: p.next}
	if closed := MinuteOf(p.watermark.At(time.Now())); closed >= to.F+sparing(len(p.waiting)) && p.anyBefore(closed) {
		to.F = closed
		return to, true
	}
	if full && (p.anyBefore(to.F) || len(p.refused) > 0) || p.refusedLongAgo() {
		return to, true
	}
	if p.records >= maxRecords {
		return p.all(), true
	}
	return Pair{}, false
}

// refusedKept is for how many minutes of the records' own timestamps refused records
// wait for a cut that closes a minute. They make none come, and must not wait for ever.
const refusedKept = 5

func (p *Partition) refusedLongAgo() bool {
	for m := range p.refused {
		if m+refusedKept < MinuteOf(p.stamp) {
			return true
		}
	}
	return false
}

// all is the pair that closes every open window.
func (p *Partition) all() Pair { return Pair{F: max(p.to.F, p.newest+1), S: p.next} }

func (p *Partition) anyBefore(m Minute) bool {
	for open := range p.open {
		if open < m {
			return true
		}
	}
	return false
}

// Cut closes all windows before to.F as one seal, which waits, and is answered
// from, until Stored.
func (p *Partition) Cut(to Pair) *Seal {
	tables := make(map[*Window]map[*seriesState]*sketches.CountMin)
	for _, w := range p.closedBy(to) { // only the owner writes: no lock for what takes long
		if t := w.countMins(); t != nil {
			tables[w] = t
			p.Metrics.check(&w.Content, t)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &Seal{
		Identity: Identity{Log: p.Log, Partition: p.Number, E: p.Position.E, To: to},
		From:     p.to,
		H:        p.mark,
	}
	for _, w := range p.closedBy(to) {
		s.Partials = append(s.Partials, w.seal(tables[w]))
	}
	clear(p.refused)
	held := to.S // the smallest offset that no seal holds
	for m, w := range p.open {
		if m < to.F {
			delete(p.open, m)
		} else {
			held = min(held, w.first)
		}
	}
	s.R = p.Look(held)
	slices.SortFunc(s.Partials, func(a, b *Partial) int { return cmp.Compare(a.minute, b.minute) })
	s.Items = p.infos.take()
	if len(p.Begun) > 0 && to == p.Begun[0] {
		p.Begun = p.Begun[1:]
	}
	if p.to = to; p.then.S <= to.S && p.then.F <= to.F {
		p.then = Pair{}
	}
	p.last, p.memory, p.records = nil, 0, 0
	p.waiting = append(p.waiting, s)
	return s
}

// closedBy returns the windows that a cut closes.
func (p *Partition) closedBy(to Pair) []*Window {
	closed := slices.Collect(maps.Values(p.refused))
	for m, w := range p.open {
		if m < to.F {
			closed = append(closed, w)
		}
	}
	return closed
}

// Stored says that the oldest seal that waits is in the store.
func (p *Partition) Stored() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored = p.waiting[0].To
	p.waiting = slices.Delete(p.waiting, 0, 1)
}

// End returns what to cut at the end of the log, which is at offset end or after the
// last record seen, and whether there is anything to cut. It is asked until there is not.
func (p *Partition) End(end int64) (Pair, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.all()
	to.S = max(end, p.next, p.to.S)
	switch {
	case len(p.open) > 0:
		return p.refusedFirst(to), true
	case len(p.refused) > 0:
		return Pair{F: p.to.F, S: to.S}, true
	}
	return Pair{}, false
}

// Read calls yield for every summary of the partition that a store at the pair
// stored does not hold: of the seals that wait, and of the open windows. It
// returns false, having called nothing, where the store has taken more since: then
// the caller's snapshot is too old, and a newer one has to be taken. The contents
// are valid until Read returns.
func (p *Partition) Read(stored Pair, yield func(*Content)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stored != p.stored { // a snapshot may be ahead of Stored, but not behind
		i := slices.IndexFunc(p.waiting, func(s *Seal) bool { return s.To == stored })
		if i < 0 {
			return false
		}
		p.read(p.waiting[i+1:], yield)
		return true
	}
	p.read(p.waiting, yield)
	return true
}

func (p *Partition) read(waiting []*Seal, yield func(*Content)) {
	for _, s := range waiting {
		for _, part := range s.Partials {
			yield(&part.Content)
		}
	}
	for _, windows := range []map[Minute]*Window{p.refused, p.open} {
		for _, m := range slices.Sorted(maps.Keys(windows)) {
			yield(&windows[m].Content)
		}
	}
}

// State is where a partition stands.
type State struct {
	To        Pair  // the newest pair cut
	Stored    Pair  // the newest pair stored
	Next      int64 // the offset after the last record seen
	Watermark int64 // Unix ms; 0 before any event, and in history
	Open      int   // open windows
	Memory    int   // of those that no watermark closes, bytes
}

// State returns where the partition stands.
func (p *Partition) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := State{To: p.to, Stored: p.stored, Next: p.next, Open: len(p.open), Memory: p.memory}
	if !p.History {
		s.Watermark = p.watermark.At(time.Now())
	}
	return s
}
