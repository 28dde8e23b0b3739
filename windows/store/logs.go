package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"tidemark/windows"
)

// roster is the logs of a store, in the order of their ids. A copy of the list
// shares the logs, which are never changed but replaced.
type roster struct {
	logs   []*logState
	shared bool // a reader has the list
}

// logState is a log and how far its partitions are. It is never changed.
type logState struct {
	Log
	positions []*position // one a partition
	turns     *[]sync.Mutex
}

func compareLog(l *logState, id windows.LogID) int { return slices.Compare(l.ID[:], id[:]) }

// find returns a log, or nil.
func (r *roster) find(id windows.LogID) *logState {
	i, found := slices.BinarySearchFunc(r.logs, id, compareLog)
	if !found {
		return nil
	}
	return r.logs[i]
}

// put adds a log or takes the place of it.
func (r *roster) put(l *logState) {
	if r.shared {
		r.logs, r.shared = slices.Clone(r.logs), false
	}
	i, found := slices.BinarySearchFunc(r.logs, l.ID, compareLog)
	if found {
		r.logs[i] = l
	} else {
		r.logs = slices.Insert(r.logs, i, l)
	}
}

// moved returns the log with another position.
func (l *logState) moved(partition int, p *position) *logState {
	out := *l
	out.positions = slices.Clone(l.positions)
	out.positions[partition] = p
	return &out
}

// public returns the log as others see it.
func (l *logState) public() Log {
	out := l.Log
	out.Names, out.Contents, out.E = slices.Clone(l.Names), slices.Clone(l.Contents), slices.Clone(l.E)
	for _, p := range l.positions {
		for _, o := range p.outcomes {
			out.Records += int64(o.Records)
		}
	}
	return out
}

// A log's row. Part of the format:
//
//	uvarint(version) uvarint(done) uvarint(started) uvarint(n), n × (uvarint(len) name)
//	uvarint(n), n × (uvarint(len) content) uvarint(len) settings
//	uvarint(partitions), for each: E(8, little-endian)
const logVersion = 1

func (l *Log) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, logVersion)
	done := uint64(0)
	if l.Done {
		done = 1
	}
	dst = binary.AppendUvarint(dst, done)
	dst = binary.AppendUvarint(dst, uint64(l.Started))
	dst = appendStrings(dst, l.Names)
	dst = appendStrings(dst, l.Contents)
	dst = appendString(dst, l.Settings)
	dst = binary.AppendUvarint(dst, uint64(len(l.E)))
	for _, e := range l.E {
		dst = binary.LittleEndian.AppendUint64(dst, e)
	}
	return dst
}

func parseLog(key, value []byte) (Log, error) {
	var l Log
	if len(key) != 1+len(l.ID) {
		return Log{}, damaged(key, "not the key of a log")
	}
	copy(l.ID[:], key[1:])
	d := decoder{b: value}
	if v := d.uint(math.MaxInt); v != logVersion && !d.bad {
		return Log{}, damaged(key, "version %d of a log; this build knows %d", v, logVersion)
	}
	l.Done = d.uint(1) == 1
	l.Started = int64(d.uint(math.MaxInt64))
	l.Names = d.strings()
	l.Contents = d.strings()
	l.Settings = d.string()
	n := d.uint(uint64(len(d.b)) / 8)
	for range n {
		l.E = append(l.E, d.uint64())
	}
	if d.bad || len(d.b) > 0 {
		return Log{}, damaged(key, "not the row of a log")
	}
	return l, nil
}

// loadLogs reads the logs and their positions.
func (s *Store) loadLogs() error {
	err := s.eachRow(prefixLog, func(key, value []byte) error {
		l, err := parseLog(key, value)
		if err != nil {
			return err
		}
		if len(l.E) != s.meta.Partitions {
			return damaged(key, "%d partitions; the store has %d", len(l.E), s.meta.Partitions)
		}
		s.roster.put(newLogState(l))
		return nil
	})
	if err != nil {
		return err
	}
	return s.eachRow(prefixPosition, func(key, value []byte) error {
		var id windows.LogID
		if len(key) != 1+len(id)+2 {
			return damaged(key, "not the key of a position")
		}
		copy(id[:], key[1:])
		partition := int(binary.BigEndian.Uint16(key[1+len(id):]))
		l := s.roster.find(id)
		if l == nil || partition >= len(l.positions) {
			return damaged(key, "a position of a log that is not known")
		}
		p, err := parsePosition(key, value)
		if err != nil {
			return err
		}
		if p.E != l.E[partition] {
			return damaged(key, "the position is of another incarnation of its log")
		}
		s.roster.put(l.moved(partition, p))
		return nil
	})
}

func newLogState(l Log) *logState {
	turns := make([]sync.Mutex, len(l.E))
	out := &logState{Log: l, turns: &turns}
	for _, e := range l.E {
		out.positions = append(out.positions, &position{Position: windows.Position{E: e}})
	}
	return out
}

// Begin makes a log known, synced to disk, before the first of its seals. Where it
// is known already nothing is changed, and it is returned as it was begun: its
// Started and E are the ones to use.
func (s *Store) Begin(l Log) (Log, error) {
	s.mu.RLock()
	known := s.roster.find(l.ID)
	s.mu.RUnlock()
	if known != nil {
		return known.public(), nil
	}
	if len(l.E) != s.meta.Partitions || slices.Contains(l.E, 0) || l.Started < 0 {
		return Log{}, fmt.Errorf("begin log %x: want %d incarnations that are not 0 and a start after 1970, got %x and %d", l.ID, s.meta.Partitions, l.E, l.Started)
	}
	l.Done, l.Records = false, 0
	if err := s.writeLog(l); err != nil {
		return Log{}, fmt.Errorf("begin log %x: %w", l.ID, err)
	}
	l.Names, l.E = slices.Clone(l.Names), slices.Clone(l.E)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.roster.find(l.ID); known != nil { // two at once: the row is the later one's
		return Log{}, fmt.Errorf("begin log %x: it is being begun by another", l.ID)
	}
	s.roster.put(newLogState(l))
	return l, nil
}

// Finish says that a log has ended: all its seals are in the store.
func (s *Store) Finish(id windows.LogID) error {
	if err := s.change(id, func(l *Log) { l.Done = true }); err != nil {
		return fmt.Errorf("finish log %x: %w", id, err)
	}
	return nil
}

// Reopen takes back Finish: there is more of the log to come.
func (s *Store) Reopen(id windows.LogID) error {
	if err := s.change(id, func(l *Log) { l.Done = false }); err != nil {
		return fmt.Errorf("reopen log %x: %w", id, err)
	}
	return nil
}

// Settle replaces the settings of a log, synced to disk: those that hold for what is
// not in the store yet.
func (s *Store) Settle(id windows.LogID, settings string) error {
	if err := s.change(id, func(l *Log) { l.Settings = settings }); err != nil {
		return fmt.Errorf("settings of log %x: %w", id, err)
	}
	return nil
}

// change changes a log's row. It is not called twice at once for one log.
func (s *Store) change(id windows.LogID, change func(*Log)) error {
	s.mu.RLock()
	known := s.roster.find(id)
	s.mu.RUnlock()
	if known == nil {
		return ErrUnknownLog
	}
	l := known.Log
	change(&l)
	if err := s.writeLog(l); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := *s.roster.find(id)
	change(&out.Log)
	s.roster.put(&out)
	return nil
}

// Logs returns all logs, in the order in which they were begun.
func (s *Store) Logs() []Log {
	s.mu.Lock()
	logs := s.roster.logs
	s.roster.shared = true
	s.mu.Unlock()
	return publicLogs(logs)
}

func publicLogs(logs []*logState) []Log {
	out := make([]Log, len(logs))
	for i, l := range logs {
		out[i] = l.public()
	}
	slices.SortStableFunc(out, func(a, b Log) int {
		if a.Started != b.Started {
			return int(min(1, max(-1, a.Started-b.Started)))
		}
		return slices.Compare(a.ID[:], b.ID[:])
	})
	return out
}

func (s *Store) writeLog(l Log) error {
	if s.opts.ReadOnly {
		return pebble.ErrReadOnly
	}
	b := s.db.NewBatch()
	if err := b.Set(logKey(l.ID), l.append(nil), nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return s.commit(b, true)
}
