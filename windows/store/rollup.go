package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"tidemark/windows"
)

const (
	// rowsAJob is how many rows are rolled up as one part, about: so that small
	// periods share the cost of a mark and of a commit, and a large one has its own.
	rowsAJob = 1 << 18
	// periodsAJob bounds the row of a mark, and of a part.
	periodsAJob = 4096
)

// rollUp rolls up all periods that ended at passed or before, from the smallest
// level up: each is made of the level below.
func (s *Store) rollUp(ctx context.Context, passed windows.Minute) error {
	// A seal may bring something to a period of a small level after that level's
	// turn, and then the larger ones wait for another round; with luck for the next call.
	const rounds = 3
	for range rounds {
		put := make(map[period]bool) // put off
		for l := levelMinute + 1; l < levelCount; l++ {
			if err := s.rollLevel(ctx, l, passed, put); err != nil {
				return err
			}
		}
		if len(put) == 0 {
			break
		}
	}
	return nil
}

func (s *Store) rollLevel(ctx context.Context, l windows.Level, passed windows.Minute, put map[period]bool) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		j := s.due(l, passed, put)
		if j == nil {
			return nil
		}
		n, err := s.start(j, put)
		if err != nil {
			return err
		}
		if n == nil {
			continue
		}
		s.step("roll.marked")
		if err := errors.Join(s.roll(ctx, j, n), n.Close()); err != nil {
			return err
		}
	}
}

// due returns some periods of a level that have ended and are neither rolled up nor
// put off, or nil.
func (s *Store) due(l windows.Level, passed windows.Minute, put map[period]bool) *job {
	s.mu.RLock()
	defer s.mu.RUnlock()
	j := &job{level: l}
	size := policy[l].size
	if l == levelEver {
		size = policy[levelDay].size
	}
	var rows uint64
	skip := windows.Minute(0) // the period that was looked at last ends here
	s.catalogue.each(l-1, windows.Range{To: passed}, func(e entry) bool {
		if e.start() < skip {
			if n := len(j.periods); n > 0 && j.periods[n-1] == skip-size {
				rows += e.info().rows()
			}
			return true
		}
		start := e.start() - e.start()%size
		skip = start + size
		if skip > passed {
			return false
		}
		if s.ladder.has(period{l, start}) || put[period{l, start}] {
			return true
		}
		if len(j.periods) == periodsAJob || rows >= rowsAJob {
			return false
		}
		j.periods = append(j.periods, start)
		rows += e.info().rows()
		return true
	})
	if len(j.periods) == 0 {
		return nil
	}
	return j
}

// start marks the periods of a job, and returns the snapshot that is rolled up: all
// seals that were shown before the mark are in it, and all others write what is
// late for these periods themselves. Periods of which the level below lacks
// something are put off; where they are all, there is nothing to do and no snapshot.
func (s *Store) start(j *job, put map[period]bool) (*Snapshot, error) {
	s.gate.Lock()
	defer s.gate.Unlock()
	j.periods = slices.DeleteFunc(j.periods, func(start windows.Minute) bool {
		p := period{j.level, start}
		if s.whole(p) {
			return false
		}
		put[p] = true
		return true
	})
	if len(j.periods) == 0 {
		return nil, nil
	}
	j.number = s.nextPart.Add(1) - 1
	b := s.db.NewBatch()
	if err := b.Set(markKey(j.number), j.append(nil), nil); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if err := s.commit(b, true); err != nil {
		return nil, fmt.Errorf("mark a roll-up: %w", err)
	}
	s.mark(j)
	return s.Snapshot()
}

// whole reports whether the level below a period has all that the levels below that
// have. gate must be held alone.
func (s *Store) whole(p period) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	end := p.start + policy[p.level].size
	if p.level == levelEver {
		end = p.start + policy[levelDay].size
	}
	for l := levelMinute; l+1 < p.level; l++ {
		whole := true
		var last period
		s.catalogue.each(l, windows.Range{From: p.start, To: end}, func(e entry) bool {
			if above := periodOf(l+1, e.start()); above != last {
				last = above
				whole = s.ladder.has(above)
			}
			return whole
		})
		if !whole {
			return false
		}
	}
	return true
}

// roll makes the part of a job. It does the same again after a crash: it takes
// parts older than the mark, which are the same ones.
func (s *Store) roll(ctx context.Context, j *job, n *Snapshot) error {
	p := &part{number: j.number, kind: partRoll, key: s.meta.KeyID}
	out := newOutput(s)
	defer out.abandon()
	r := newRoller(s, n, out)
	if j.level == levelEver {
		var parts []sourcePart
		for _, day := range j.periods {
			parts = append(parts, n.older(levelDay, windows.Range{From: day, To: day + policy[levelDay].size}, j.number)...)
		}
		info, err := r.merge(ctx, blockKey{level: levelEver, part: j.number}, parts)
		if err != nil {
			return err
		}
		for _, day := range j.periods {
			p.starts[levelEver] = append(p.starts[levelEver], presence{day, info})
		}
	} else {
		for _, start := range j.periods {
			parts := n.older(j.level-1, windows.Range{From: start, To: start + policy[j.level].size}, j.number)
			info, err := r.merge(ctx, blockKey{level: j.level, start: start, part: j.number}, parts)
			if err != nil {
				return err
			}
			p.starts[j.level] = append(p.starts[j.level], presence{start, info})
		}
	}
	s.step("roll.merged")
	if err := out.ingest(p.number); err != nil {
		return fmt.Errorf("roll up to %s: %w", policy[j.level].name, err)
	}
	s.step("roll.ingested")
	if err := out.commit(rowChange{partKey(p.number), p.append(nil)}, rowChange{key: markKey(j.number)}); err != nil {
		return fmt.Errorf("roll up to %s: %w", policy[j.level].name, err)
	}
	s.step("roll.committed")
	s.rolled(j, p)
	s.step("roll.shown")
	return nil
}

// rolled makes a roll-up part of what readers see.
func (s *Store) rolled(j *job, p *part) {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enterLocked(p)
	for _, start := range j.periods {
		delete(s.marks, period{j.level, start})
	}
}

// sourcePart is a part that is merged.
type sourcePart struct {
	windows.Part
	info presenceInfo
}

// older returns the parts of a range that are older than a number.
func (n *Snapshot) older(l windows.Level, r windows.Range, number uint32) (out []sourcePart) {
	n.eachPart(windows.Stretch{Level: l, Range: r}, func(p windows.Part, info presenceInfo) bool {
		if p.ID < number {
			out = append(out, sourcePart{p, info})
		}
		return true
	})
	return out
}

// roller merges parts of a snapshot into an output. Its memory is used again.
type roller struct {
	snap    *Snapshot
	out     *output
	merger  *merger
	writer  partWriter
	sources []*source
	readers []*partReader
	key     []byte
}

func newRoller(s *Store, n *Snapshot, out *output) *roller {
	return &roller{snap: n, out: out, merger: newMerger(s), writer: partWriter{known: &s.known}}
}

// merge merges parts into the start of the key's part.
func (r *roller) merge(ctx context.Context, at blockKey, parts []sourcePart) (presenceInfo, error) {
	r.key = at.append(r.key[:0])
	r.writer.begin(func(row rowKey, value []byte) error {
		binary.BigEndian.PutUint64(r.key[blockKeySize-8:], uint64(row))
		return r.out.set(r.key, value)
	})
	for len(r.readers) < len(parts) {
		r.readers = append(r.readers, new(partReader))
		r.sources = append(r.sources, new(source))
	}
	z := &r.snap.store.sizes
	chunk := min(z.maxChunk, max(z.minChunk, z.chunks/max(1, len(parts))))
	for i, p := range parts {
		reader := r.readers[i]
		reader.begin(ctx, r.snap, p.Part, chunk)
		*r.sources[i] = source{block: reader.block}
		if p.info.overflowed() {
			var err error
			if r.sources[i].types, err = r.snap.overflowedTypes(p.Part); err != nil {
				return 0, err
			}
			r.sources[i].load = func(typ uint32) (typeTables, error) {
				table, heap, err := r.snap.readSketches(p.Part, typ)
				return typeTables{series: typ, table: table, heap: heap}, err
			}
		}
	}
	return r.merger.merge(r.sources[:len(parts)], &r.writer)
}

// partReader reads the blocks of a part in chunks, so that one iterator serves many
// parts.
type partReader struct {
	ctx   context.Context
	snap  *Snapshot
	part  windows.Part
	chunk int

	buf  []byte
	ends []int
	at   int    // how many blocks of buf were handed out
	next rowKey // where the next chunk begins
	end  bool   // there is none
}

func (r *partReader) begin(ctx context.Context, n *Snapshot, p windows.Part, chunk int) {
	*r = partReader{ctx: ctx, snap: n, part: p, chunk: chunk, buf: r.buf[:0], ends: r.ends[:0]}
}

func (r *partReader) block() ([]byte, error) {
	if r.at == len(r.ends) {
		if r.end {
			return nil, nil
		}
		if err := r.fill(); err != nil || len(r.ends) == 0 {
			return nil, err
		}
	}
	from := 0
	if r.at > 0 {
		from = r.ends[r.at-1]
	}
	r.at++
	return r.buf[from:r.ends[r.at-1]], nil
}

func (r *partReader) fill() error {
	if err := r.ctx.Err(); err != nil {
		return context.Cause(r.ctx)
	}
	r.buf, r.ends, r.at = r.buf[:0], r.ends[:0], 0
	block, err := r.snap.seek(r.part, r.next)
	for {
		if err != nil {
			return err
		}
		if block == nil {
			r.end = true
			return nil
		}
		r.buf = append(r.buf, block...)
		r.ends = append(r.ends, len(r.buf))
		if len(r.buf) >= r.chunk {
			break
		}
		block, err = r.snap.next(r.part)
	}
	at, err := parseBlockKey(r.snap.cursor.key())
	r.next = at.row + 1
	return err
}

// overflowedTypes returns the series of the types that overflowed in a part.
func (n *Snapshot) overflowedTypes(p windows.Part) (types []uint32, err error) {
	if _, err := n.seek(p, makeRowKey(seriesHeap, 0)); err != nil {
		return nil, err
	}
	for n.cursor.valid() && sharesPart(n.cursor.key(), n.key) {
		at, err := parseBlockKey(n.cursor.key())
		if err != nil {
			return nil, err
		}
		types = append(types, at.row.item())
		n.cursor.next()
	}
	return types, n.cursor.err()
}
