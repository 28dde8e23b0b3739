package store

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// Apply takes a seal: one batch, on the disk when Apply returns, and all of it or
// nothing. It does nothing, and returns nil, if the store has the seal already, or
// one that comes after it; it fails with ErrGap if seals are missing in between.
// Partitions call it at the same time.
func (s *Store) Apply(seal *windows.Seal) error {
	if err := s.apply(seal); err != nil {
		return fmt.Errorf("seal of partition %d to %v: %w", seal.Partition, seal.To, err)
	}
	return nil
}

func (s *Store) apply(seal *windows.Seal) error {
	if s.opts.ReadOnly {
		return pebble.ErrReadOnly
	}
	turn, err := s.turn(seal)
	if err != nil {
		return err
	}
	defer turn()

	before := s.position(seal)
	if take, err := before.follow(seal); err != nil || !take {
		return err
	}
	s.step("apply.begin")
	if err := s.writeTexts(seal.Items); err != nil {
		return err
	}
	s.step("apply.texts")
	// What is rolled up must not change between the look at it and the moment from
	// which a roll-up sees the seal.
	s.gate.RLock()
	defer s.gate.RUnlock()
	p, batch, err := s.sealBatch(seal, before)
	if err != nil {
		return err
	}
	s.step("apply.encoded")
	after, waiting, err := s.finishBatch(seal, before, p, batch)
	if err != nil {
		return err
	}
	s.step("apply.committed")
	s.show(p, after)
	s.outbox.add(seal, p.seal.seq, waiting)
	s.step("apply.shown")
	return nil
}

// turn waits until no other seal of the partition is being applied.
func (s *Store) turn(seal *windows.Seal) (done func(), err error) {
	s.mu.RLock()
	l := s.roster.find(seal.Log)
	s.mu.RUnlock()
	if l == nil {
		return nil, fmt.Errorf("log %x: %w: begin it first", seal.Log, ErrUnknownLog)
	}
	if seal.Partition < 0 || seal.Partition >= len(l.positions) {
		return nil, fmt.Errorf("%w: there are %d partitions", ErrSettings, len(l.positions))
	}
	mu := &(*l.turns)[seal.Partition]
	mu.Lock()
	return mu.Unlock, nil
}

func (s *Store) position(seal *windows.Seal) *position {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.roster.find(seal.Log).positions[seal.Partition]
}

// sealBatch makes the batch of a seal's blocks, and the part that they are.
func (s *Store) sealBatch(seal *windows.Seal, before *position) (*part, *pebble.Batch, error) {
	p := &part{
		number: s.nextPart.Add(1) - 1,
		kind:   partSeal,
		key:    s.meta.KeyID,
		seal:   sealed{Identity: seal.Identity, seq: before.seq + 1, from: seal.From, r: seal.R, h: seal.H},
	}
	batch := s.db.NewBatch()
	starts, err := s.encode(seal.Partials, p.number, batch)
	if err != nil {
		batch.Close()
		return nil, nil, err
	}
	p.starts = starts
	return p, batch, nil
}

// finishBatch adds the rows of the seal and of the position, puts the seal into the
// outbox if a sink wants it, and commits.
func (s *Store) finishBatch(seal *windows.Seal, before *position, p *part, batch *pebble.Batch) (after *position, waiting *waitingHead, err error) {
	after = &position{
		Position: windows.Position{E: seal.E, To: seal.To, R: seal.R, H: seal.H},
		seq:      p.seal.seq,
		part:     p.number,
		outcomes: before.outcomes,
	}
	for _, partial := range seal.Partials {
		if o := partial.Outcomes(); len(o) > 0 {
			after.outcomes = book(after.outcomes, o)
		}
	}
	if err := batch.Set(partKey(p.number), p.append(nil), nil); err != nil {
		return nil, nil, err
	}
	if err := batch.Set(positionKey(seal.Log, seal.Partition), after.append(nil), nil); err != nil {
		return nil, nil, err
	}
	if s.outbox.any() {
		if waiting, err = putWaiting(batch, seal, p.seal.seq, s.settingsOf(seal.Log)); err != nil {
			return nil, nil, err
		}
	}
	return after, waiting, s.commit(batch, true)
}

func (s *Store) settingsOf(id windows.LogID) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.roster.find(id).Settings
}

// show makes a committed seal part of what readers see.
func (s *Store) show(p *part, after *position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enterLocked(p)
	l := s.roster.find(p.seal.Log)
	s.roster.put(l.moved(p.seal.Partition, after))
}

// enterLocked makes a part known. mu must be held, or nobody else have the store.
func (s *Store) enterLocked(p *part) {
	for i, starts := range p.starts {
		l := windows.Level(i)
		for _, at := range starts {
			s.catalogue.add(l, at, p.number)
			if at.info.counted() {
				s.ladder.first = min(s.ladder.first, at.start)
			}
			if l == levelEver {
				s.ladder.widenEver(at.start)
			}
			if l > levelMinute && (p.kind != partSeal || s.alone(period{l, at.start})) {
				s.ladder.rolled.add(l, at, p.number)
			}
		}
	}
}

// alone reports whether a seal is the first to bring something to a period of a
// level above the minutes, where it is because a larger period was rolled up before
// there was anything in this one, or because the smaller ones are no longer kept.
// Whatever comes later comes here as well: there is nothing to roll up. mu must be held.
func (s *Store) alone(p period) bool {
	_, marked := s.marks[p]
	return !marked && !s.ladder.has(p)
}
