package windows_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

// The model of the protocol by which records are sealed and delivered: one partition of a
// log, two workers with disks of their own, a broker that keeps the commit and fences by
// generation, and a sink whose inserts are made of two parts, may arrive late, and are
// told apart by the identity of their seal alone. Commits, partitions and their cuts are
// the real ones; what is around them is a few lines each. At random, with everything
// failing that can: crashes, lost disks, take-overs while the owner before goes on, commits
// that are refused, lost, taken without an answer, or late; other settings; the log made
// anew. After every step what must hold is looked at.

// fact is a record of the log, as a function of which all is judged.
type fact struct {
	id       uint64 // 0: none
	time     windows.Minute
	stamp    windows.Minute
	bad, bot bool
}

const (
	factSkew   = 1 // minutes
	factTooOld = 4
)

// mutation is a rule taken out, so that the model is seen to notice.
type mutation int

const (
	intact mutation = iota
	identityWithoutF
	noIncarnation
	pairsForgotten
	unclearGoesOn
	noLookBack
	settingsOfToday
	storeWithoutPosition
	anotherLogUnnoticed
	mutations
)

var mutationNames = [mutations]string{
	"intact", "identity without F", "no incarnation", "pairs begun are forgotten", "an unclear commit does not end the generation",
	"R without look-back", "settings of today", "store without its position", "another log is not noticed",
}

// content is what a seal holds: of each record, by its number in the whole run, its outcome.
type content map[int]string

type identity struct {
	e  uint64
	to windows.Pair
}

type chained struct {
	identity
	from  windows.Pair
	r     int64
	holds content
	state int // 0 cut, 1 committed, 2 stored
	acks  int // bits: the parts that the sink has
	h     windows.Mark
}

type worker struct {
	generation int
	log        int // which of the logs it believes to read
	commit     windows.Commit
	partition  *windows.Partition
	chain      []*chained
	settings   uint64
}

type disk struct {
	e         uint64
	base, to  windows.Pair
	counts    map[int]int
	outbox    []*chained
	initiated bool
}

type rowKey struct {
	identity
	part int
}

type register struct {
	text string
	r    int64
	set  bool
}

type late struct {
	generation int
	register
}

type world struct {
	r          *rand.Rand
	mutation   mutation
	logs       [][]fact
	log        int // the present one
	produced   int
	generation int
	owner      int // -1: none
	committed  register
	delayed    []late
	workers    [2]*worker
	settings   [2]uint64
	disks      [2]disk
	rows       map[rowKey]content
	inserts    []struct {
		key   rowKey
		holds content
	}
	first  map[identity]content
	trace  []string
	failed string
	calm   bool // no more faults
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf(format, args...)
	}
}

func (w *world) facts() []fact { return w.logs[w.log] }

// number is that of a record among those of all logs.
func (w *world) number(log, offset int) int { return 1000*log + offset }

func newWorld(r *rand.Rand, m mutation) *world {
	w := &world{r: r, mutation: m, owner: -1, rows: make(map[rowKey]content), first: make(map[identity]content)}
	for range 2 {
		var facts []fact
		base := windows.Minute(10)
		for i := range 3 + r.IntN(14) {
			if r.IntN(3) == 0 {
				base++
			}
			f := fact{id: uint64(100 + i), time: base, stamp: base, bad: r.IntN(10) == 0, bot: r.IntN(5) == 0}
			switch r.IntN(8) {
			case 0:
				f.time -= 3 // late
			case 1:
				f.time += 3 // in the future
			case 2:
				f.time -= 6 // too old
			case 3:
				f.time++
			}
			if i > 0 && r.IntN(3) == 0 {
				of := facts[i-1-r.IntN(min(i, 4))]
				f.id, f.time = of.id, of.time
			}
			facts = append(facts, f)
		}
		w.logs = append(w.logs, facts)
	}
	return w
}

// judgeOf judges by the settings of a worker's commit: under the second ones robots do
// not count.
type judgeOf struct {
	plain windowstest.Judge
	w     *worker
	facts []fact
	today bool
}

func (j *judgeOf) Judge(events []windows.Event) {
	j.plain.Judge(events)
	for i := range events {
		e := &events[i]
		settings := j.w.commit.Settings(e.Offset)
		if j.today {
			settings = j.w.settings
		}
		switch e.Outcome {
		case windows.Counted, windows.Late, windows.TooOld:
			if settings == 1 && j.facts[e.Offset].bot {
				e.Outcome = windows.Bot
			}
		default:
		}
	}
}

const minuteMillis = windows.MillisPerMinute

var commitHasher = sketches.NewHasher(sketches.Key{7})

func lookBack(offset int64) int64 { return windowstest.Look(offset, 1) }

// hash is that of a record.
func (w *world) hash(log int, offset int64) uint64 { return uint64(1+log)<<32 | uint64(offset) }

// take gives the partition to a worker, as the commit says.
func (w *world) take(i int) {
	n := &worker{generation: w.generation, log: w.log, settings: w.settings[i]}
	w.workers[i] = n
	c, known := windows.Commit{}, false
	if w.committed.set {
		var err error
		if c, err = windows.ParseCommit(w.committed.text, w.committed.r); err != nil {
			w.fail("the commit can't be read: %v", err)
			return
		}
		known = w.mutation == anotherLogUnnoticed && c.Newest().S <= int64(w.produced) ||
			c.Follows(int64(w.produced), func(offset int64) (uint64, bool) { return w.hash(w.log, offset), true })
	}
	if !known { // no commit, or that of another log
		c = windows.Commit{E: w.r.Uint64() | 1, V: []windows.Version{{From: 0, Settings: n.settings}}}
		if w.mutation == noIncarnation {
			c.E = 1
		}
		w.committed = register{c.Text(), 0, true}
	}
	begun := c.P
	if w.mutation == pairsForgotten {
		begun, c.P = nil, nil
	}
	n.commit = c
	if c.Settings(math.MaxInt64) != n.settings {
		n.commit = c.Settle(windows.Version{From: c.Newest().S, Settings: n.settings})
	}
	w.takeDisk(i, &c)
	j := &judgeOf{w: n, facts: w.facts(), today: w.mutation == settingsOfToday}
	j.plain = windowstest.Judge{Generation: 1, MaxSkew: factSkew * minuteMillis, MaxLateness: factTooOld * minuteMillis, Lateness: 2 * minuteMillis}
	n.partition = windows.NewPartition(windows.PartitionConfig{
		Position: windows.Position{E: c.E, To: c.To, R: c.R, H: c.H}, Begun: slices.Clone(begun),
		Hasher: commitHasher, Limits: windows.Limits{Items: 1000, Values: 10}, Judge: j, Look: lookBack,
		Memory: math.MaxInt, Lateness: 1000 * minuteMillis * 1_000_000, MaxSkew: minuteMillis * 1_000_000,
	})
}

// takeDisk looks whether a worker's store goes on from the commit.
func (w *world) takeDisk(i int, c *windows.Commit) {
	d := &w.disks[i]
	fits := d.initiated && d.e == c.E && (d.to == c.To || slices.Contains(c.P, d.to))
	if w.mutation == storeWithoutPosition {
		fits = d.initiated && d.e == c.E
	}
	if !fits {
		*d = disk{e: c.E, base: c.To, to: c.To, counts: make(map[int]int), initiated: true}
	}
	d.outbox = slices.DeleteFunc(d.outbox, func(s *chained) bool { return !slices.Contains(c.P, s.to) })
}

// read has a worker read the next record.
func (w *world) read(i int) {
	n := w.workers[i]
	offset, _ := n.partition.At()
	f := w.logs[n.log][offset]
	item := fmt.Appendf(nil, "%d", w.number(n.log, int(offset)))
	ev := windows.Event{
		Offset: offset, Stamp: int64(f.stamp) * minuteMillis, Time: int64(f.time) * minuteMillis, Hash: w.hash(n.log, offset),
		Item: item, ItemHash: commitHasher.Item(item), Type: []byte("view"), ID: f.id, HasID: true,
	}
	if f.bad {
		ev.Outcome, ev.Reason = windows.Malformed, string(item)
	}
	w.note("w%d reads %d", i, offset)
	err := n.partition.Add([]windows.Event{ev}, func(to windows.Pair) error {
		w.cut(i, to)
		return nil
	})
	if err != nil {
		w.fail("%v", err)
	}
}

// cut seals.
func (w *world) cut(i int, to windows.Pair) {
	n := w.workers[i]
	s := n.partition.Cut(to)
	n.partition.Stored()
	c := &chained{identity: identity{s.E, s.To}, from: s.From, r: s.R, h: s.H, holds: make(content)}
	if w.mutation == noLookBack {
		c.r = s.To.S
	}
	for _, p := range s.Partials {
		series := p.Series()
		p.Each(func(of int, r windows.Row) bool {
			if r.Kind != windows.Item {
				return true
			}
			outcome := "counted"
			if series[of].Dimension == windows.OutcomeDimension {
				outcome = series[of].Value
			}
			c.put(w, string(r.Item), outcome)
			return true
		})
		for _, o := range p.Outcomes() {
			if o.Outcome == windows.Malformed {
				c.put(w, o.Reason, "malformed")
			}
		}
	}
	if slices.Contains(n.commit.P, to) { // made again
		c.state = 1
		w.registerFirst(c)
		for _, o := range w.disks[i].outbox {
			if o.identity == c.identity && !maps.Equal(o.holds, c.holds) {
				w.fail("the outbox has %v, made again it is %v", o.holds, c.holds)
			}
		}
	}
	n.chain = append(n.chain, c)
	w.note("w%d seals %v: %v, R %d", i, to, c.holds, c.r)
}

func (c *chained) put(w *world, number, outcome string) {
	var n int
	if _, err := fmt.Sscan(number, &n); err != nil || c.holds[n] != "" {
		w.fail("record %q is in seal %v twice", number, c.to)
	}
	c.holds[n] = outcome
}

func (w *world) registerFirst(c *chained) {
	if first, known := w.first[c.identity]; !known {
		w.first[c.identity] = c.holds
	} else if !maps.Equal(first, c.holds) {
		w.fail("seal %v is %v, first it was %v", c.identity, c.holds, first)
	}
}

// try commits: in all the ways in which that can end.
func (w *world) try(i int, what string, c windows.Commit, done func()) {
	n := w.workers[i]
	if n.generation != w.generation {
		w.note("w%d %s: refused", i, what)
		w.workers[i] = nil
		return
	}
	reg := register{c.Text(), c.R, true}
	how := w.r.IntN(12)
	if w.calm {
		how = 0
	}
	if how > 2 || how == 0 {
		w.note("w%d %s: %v %v R %d", i, what, c.To, c.P, c.R)
		w.committed = reg
		n.commit = c
		done()
		return
	}
	w.note("w%d %s: unclear (%d)", i, what, how)
	switch w.r.IntN(3) {
	case 0:
		w.committed = reg // taken, the answer lost
	case 1:
		w.delayed = append(w.delayed, late{n.generation, reg})
	}
	if w.mutation == unclearGoesOn {
		n.commit = c
		done()
		return
	}
	w.workers[i] = nil // leaves the group
	if w.owner == i {
		w.owner = -1
		w.generation++
	}
}

// apply stores a seal, if it is the one that follows.
func (w *world) apply(i int, c *chained) {
	d := &w.disks[i]
	c.state = 2
	at := func(a, b windows.Pair) bool { return a.S > b.S || a.S == b.S && a.F >= b.F }
	switch {
	case d.e != c.e:
		w.fail("a store of %x is offered a seal of %x", d.e, c.e)
	case d.to == c.from, w.mutation == storeWithoutPosition && !at(d.to, c.to):
		for r := range c.holds {
			d.counts[r]++
		}
		d.to = c.to
		d.outbox = append(d.outbox, c)
	case at(d.to, c.to):
	default:
		w.fail("a store at %v is offered %v, which follows %v", d.to, c.to, c.from)
	}
}

func (w *world) insert(key rowKey, holds content) {
	if w.mutation == identityWithoutF {
		key.to.F = 0
		if _, there := w.rows[key]; there {
			return // the sink has it already
		}
	}
	if w.mutation == noIncarnation {
		if _, there := w.rows[key]; there {
			return
		}
	}
	w.rows[key] = holds
}

// partOf is what one of the two inserts of a seal has.
func (c *chained) partOf(part int) content {
	out := make(content)
	for r, o := range c.holds {
		if r%2 == part {
			out[r] = o
		}
	}
	return out
}

type action struct {
	weight int
	do     func()
}

// actions are all that can happen next.
func (w *world) actions() (all []action) {
	add := func(weight int, do func()) { all = append(all, action{weight, do}) }
	if w.produced < len(w.facts()) {
		add(6, func() { w.produced++; w.note("record %d is produced", w.produced-1) })
	}
	for k := range w.delayed {
		add(3, func() {
			d := w.delayed[k]
			w.delayed = slices.Delete(w.delayed, k, k+1)
			if d.generation == w.generation {
				w.committed = d.register
				w.note("a late commit is taken")
			}
		})
	}
	for k := range w.inserts {
		add(3, func() {
			x := w.inserts[k]
			w.inserts = slices.Delete(w.inserts, k, k+1)
			w.insert(x.key, x.holds)
			w.note("a late insert of %v arrives", x.key)
		})
	}
	if !w.calm && w.log == 0 && w.produced > 0 {
		add(1, func() {
			w.log, w.produced, w.delayed, w.owner = 1, 0, nil, -1
			w.generation++
			w.workers = [2]*worker{}
			if w.r.IntN(2) == 0 { // else the commit outlives its log
				w.committed = register{}
			} else {
				w.produced = len(w.facts())
			}
			w.note("the log is made anew; is there a commit: %t", w.committed.set)
		})
	}
	for i := range w.workers {
		w.workerActions(i, add)
	}
	return all
}

func (w *world) workerActions(i int, add func(int, func())) {
	n := w.workers[i]
	if w.owner == -1 || !w.calm && (w.owner != i || n == nil) {
		add(2, func() {
			w.generation++
			w.owner = i
			w.note("w%d takes over", i)
			w.take(i)
		})
	}
	if !w.calm {
		add(1, func() {
			w.settings[i] = 1 - w.settings[i]
			w.note("w%d gets settings %d", i, w.settings[i])
			if n != nil {
				n.settings = w.settings[i]
				next, _ := n.partition.At()
				n.commit = n.commit.Settle(windows.Version{From: max(next, n.commit.Newest().S, n.newestCut().S), Settings: n.settings})
			}
		})
	}
	if n == nil {
		return
	}
	if !w.calm {
		add(1, func() {
			if w.owner == i && n.generation == w.generation {
				w.owner = -1
			}
			w.workers[i] = nil
			w.note("w%d crashes", i)
			if w.r.IntN(2) == 0 {
				w.disks[i] = disk{}
				w.note("its disk is lost")
			}
		})
	}
	if n.log != w.log {
		return
	}
	next, to := n.partition.At()
	if next < int64(w.produced) {
		add(8, func() { w.read(i) })
	}
	w.cutActions(i, n, next, to, add)
	w.chainActions(i, n, add)
}

func (n *worker) newestCut() windows.Pair {
	_, to := n.partition.At()
	return to
}

// cutActions are the cuts at any floor.
func (w *world) cutActions(i int, n *worker, next int64, to windows.Pair, add func(int, func())) {
	if len(n.chain) >= 3 && !w.calm || next < n.commit.Newest().S && w.mutation != pairsForgotten {
		return
	}
	if to.S < n.commit.Newest().S { // those begun come first
		return
	}
	for f := max(to.F, 3); f <= 40; f++ {
		if p := (windows.Pair{F: f, S: next}); p != to && (f == to.F || f == 40 || w.r.IntN(6) == 0) && n.partition.Holding(f) {
			add(1, func() {
				for _, step := range n.partition.Steps(p) {
					w.cut(i, step)
				}
			})
		}
	}
}

// chainActions bring seals on their way.
func (w *world) chainActions(i int, n *worker, add func(int, func())) {
	first := slices.IndexFunc(n.chain, func(c *chained) bool { return c.state == 0 })
	if first >= 0 && n.newestCut().S >= n.commit.Newest().S {
		c := n.chain[first]
		if next, err := n.commit.Begin(c.to, c.h); err != nil {
			w.fail("%v", err)
		} else {
			add(8, func() {
				w.try(i, fmt.Sprintf("begins %v", c.to), next, func() {
					c.state = 1
					w.registerFirst(c)
				})
			})
		}
	}
	if k := slices.IndexFunc(n.chain, func(c *chained) bool { return c.state == 1 }); k >= 0 {
		add(8, func() {
			w.note("w%d stores %v", i, n.chain[k].to)
			w.apply(i, n.chain[k])
		})
	}
	if len(n.chain) == 0 || n.chain[0].state != 2 {
		return
	}
	c := n.chain[0]
	for part := range 2 {
		if c.acks&(1<<part) != 0 {
			continue
		}
		key := rowKey{c.identity, part}
		add(8, func() {
			w.note("w%d inserts %v", i, key)
			w.insert(key, c.partOf(part))
			if w.calm || w.r.IntN(5) > 0 { // else the answer is lost
				c.acks |= 1 << part
			}
		})
		if !w.calm {
			add(1, func() {
				w.inserts = append(w.inserts, struct {
					key   rowKey
					holds content
				}{key, c.partOf(part)})
			})
		}
	}
	if c.acks == 3 && len(n.commit.P) > 0 {
		add(8, func() {
			w.try(i, fmt.Sprintf("delivers %v", c.to), n.commit.Deliver(c.r), func() {
				n.chain = n.chain[1:]
				d := &w.disks[i]
				d.outbox = slices.DeleteFunc(d.outbox, func(s *chained) bool { return s.identity == c.identity })
			})
		})
	}
}

// check looks at what must hold after every step.
func (w *world) check() {
	in := make(map[int]int)
	outcome := make(map[int]string)
	for _, holds := range w.rows {
		for r, o := range holds {
			in[r]++
			outcome[r] = o
		}
	}
	for r, n := range in {
		if n > 1 {
			w.fail("record %d is in %d rows of the sink", r, n)
		}
	}
	if w.committed.set {
		c, err := windows.ParseCommit(w.committed.text, w.committed.r)
		if err == nil && c.Follows(int64(w.produced), func(o int64) (uint64, bool) { return w.hash(w.log, o), true }) {
			for o := range min(c.To.S, int64(w.produced)) {
				if w.held(int(o), c.To) && in[w.number(w.log, int(o))] == 0 {
					w.fail("record %d is delivered by %v, and not in the sink", o, c.To)
				}
			}
		}
	}
	for log, facts := range w.logs {
		for a := range facts {
			for b := a + 1; b < min(len(facts), a+9); b++ {
				if facts[a].id == facts[b].id && outcome[w.number(log, a)] == "counted" && outcome[w.number(log, b)] == "counted" {
					w.fail("records %d and %d are the same, and both count", a, b)
				}
			}
		}
	}
	for i := range w.disks {
		w.checkDisk(&w.disks[i], i)
	}
}

func (w *world) checkDisk(d *disk, i int) {
	for r, n := range d.counts {
		if n > 1 {
			w.fail("store %d counts record %d %d times", i, r, n)
		}
	}
	n := w.workers[i]
	if n == nil || n.log != w.log || n.commit.E != d.e {
		return
	}
	for o := range min(d.to.S, int64(w.produced)) {
		if w.held(int(o), d.to) && !w.mayHold(int(o), d.base) && d.counts[w.number(w.log, int(o))] == 0 {
			w.fail("store %d from %v to %v lacks record %d", i, d.base, d.to, o)
		}
	}
}

// held reports whether a pair surely holds a record. One that is too old may be a
// duplicate instead, or a robot's, and is then held by its minute.
func (w *world) held(offset int, by windows.Pair) bool {
	f := w.facts()[offset]
	return int64(offset) < by.S && (f.bad || f.time > f.stamp+factSkew || f.time < by.F)
}

// mayHold reports whether a pair may hold it.
func (w *world) mayHold(offset int, by windows.Pair) bool {
	f := w.facts()[offset]
	return int64(offset) < by.S && (w.refused(f) || f.time < by.F)
}

// refused: perhaps without a usable minute.
func (w *world) refused(f fact) bool {
	return f.bad || f.time > f.stamp+factSkew || f.time+factTooOld < f.stamp
}

func (w *world) step() bool {
	all := w.actions()
	sum := 0
	for _, a := range all {
		sum += a.weight
	}
	if sum == 0 {
		return false
	}
	pick := w.r.IntN(sum)
	for _, a := range all {
		if pick -= a.weight; pick < 0 {
			a.do()
			break
		}
	}
	w.check()
	return w.failed == ""
}

// run walks at random, and then without faults until all is delivered.
func (w *world) run(steps int) string {
	for range steps {
		if !w.step() {
			return w.failed
		}
	}
	w.calm = true
	w.note("no more faults")
	for i := range w.workers {
		if w.owner != i || w.workers[i] != nil && w.workers[i].generation != w.generation {
			w.workers[i] = nil
		}
	}
	if w.owner >= 0 && w.workers[w.owner] == nil {
		w.owner = -1
	}
	for range 3000 {
		if w.delivered() {
			return ""
		}
		if !w.step() {
			break
		}
	}
	if w.failed == "" {
		w.fail("it does not come to an end: %d records", w.produced)
	}
	return w.failed
}

func (w *world) delivered() bool {
	if w.produced < len(w.facts()) {
		return false
	}
	in := make(map[int]bool)
	for _, holds := range w.rows {
		for r := range holds {
			in[r] = true
		}
	}
	for o := range w.produced {
		if !in[w.number(w.log, o)] {
			return false
		}
	}
	return len(w.inserts) == 0
}

func runModel(seed uint64, m mutation) (failed string, trace []string) {
	r := rand.New(rand.NewPCG(seed, uint64(m)))
	w := newWorld(r, m)
	failed = w.run(20 + r.IntN(100))
	return failed, w.trace
}

// Whatever fails, each record is in the sink once, in the seal that held it first, and the
// stores have neither holes nor anything twice.
func TestModelOfTheCommit(t *testing.T) {
	runs := 3000
	if os.Getenv("TIDEMARK_SOAK") != "" {
		runs = 300_000
	}
	for seed := range runs {
		if failed, trace := runModel(uint64(seed), intact); failed != "" {
			t.Fatalf("seed %d: %s\n%s", seed, failed, strings.Join(trace, "\n"))
		}
	}
}

// Each rule is needed: without it the model finds a failure.
func TestModelNoticesWhatIsMissing(t *testing.T) {
	for m := intact + 1; m < mutations; m++ {
		t.Run(mutationNames[m], func(t *testing.T) {
			for seed := range 20_000 {
				if failed, _ := runModel(uint64(seed), m); failed != "" {
					t.Logf("run %d: %s", seed, failed)
					return
				}
			}
			t.Error("nothing fails without it")
		})
	}
}
