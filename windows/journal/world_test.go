package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tester is what world needs of *testing.T and *rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a model of a journal: what must be in it, and what may be.
type world struct {
	partitions int

	mu     sync.Mutex
	sent   map[uint32]sentGroup // every group that was tried
	made   uint32
	known  []map[int64]Record // of each partition: what was acknowledged, or handed out
	failed []error            // of Append, but for those of a crash
}

type sentGroup struct {
	records int
	payload []byte // of all its records, without their heads
}

func newWorld(partitions int) *world {
	w := &world{partitions: partitions, sent: map[uint32]sentGroup{}, known: make([]map[int64]Record, partitions)}
	for p := range w.known {
		w.known[p] = map[int64]Record{}
	}
	return w
}

// group makes the records of a new group. Each payload says which one it is.
func (w *world) group(rng *rand.Rand, maxRecords, maxPayload int) []Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	n := 1 + rng.IntN(maxRecords)
	body := make([]byte, rng.IntN(maxPayload+1))
	for i := range body {
		body[i] = byte(rng.Uint32())
	}
	w.sent[w.made] = sentGroup{records: n, payload: body}
	records := make([]Record, n)
	for i := range records {
		head := binary.LittleEndian.AppendUint32(nil, w.made)
		head = binary.LittleEndian.AppendUint32(head, uint32(i))
		records[i] = Record{Partition: rng.IntN(w.partitions), Payload: append(head, body...)}
	}
	return records
}

// append tries a group, and notes what was acknowledged.
func (w *world) append(j *Journal, records []Record) error {
	err := j.Append(context.Background(), records)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed = append(w.failed, err)
		return err
	}
	for _, r := range records {
		if err := w.note(r); err != nil {
			return fmt.Errorf("acknowledged: %w", err)
		}
	}
	return nil
}

// note notes a record that is in the log. The caller holds mu.
func (w *world) note(r Record) error {
	if before, ok := w.known[r.Partition][r.Offset]; ok && (before.Stamp != r.Stamp || !bytes.Equal(before.Payload, r.Payload)) {
		return fmt.Errorf("partition %d offset %d changed: %x at %d became %x at %d",
			r.Partition, r.Offset, before.Payload, before.Stamp, r.Payload, r.Stamp)
	}
	r.Payload = bytes.Clone(r.Payload)
	w.known[r.Partition][r.Offset] = r
	return nil
}

// check reads a journal from its first record to its end, and holds it against what
// is known. What it has is known from then on.
func (w *world) check(j *Journal) error {
	first, ends := j.First(), j.Ends()
	records, err := readAll(j, first, ends)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	next, stamp := slices.Clone(first), int64(0)
	seen := map[uint32]int{}
	var order []uint32
	for _, r := range records {
		if r.Offset != next[r.Partition] {
			return fmt.Errorf("partition %d: offset %d where %d was to come", r.Partition, r.Offset, next[r.Partition])
		}
		next[r.Partition]++
		if r.Stamp < stamp {
			return fmt.Errorf("the stamp fell from %d to %d", stamp, r.Stamp)
		}
		stamp = r.Stamp
		g, i := binary.LittleEndian.Uint32(r.Payload), binary.LittleEndian.Uint32(r.Payload[4:])
		if s, ok := w.sent[g]; !ok || !bytes.Equal(r.Payload[8:], s.payload) {
			return fmt.Errorf("a record that nobody sent: %x", r.Payload)
		}
		if seen[g] != int(i) {
			return fmt.Errorf("group %d: record %d where %d was to come", g, i, seen[g])
		}
		if seen[g]++; i == 0 {
			order = append(order, g)
		} else if order[len(order)-1] != g {
			return fmt.Errorf("group %d is torn apart", g)
		}
		if err := w.note(r); err != nil {
			return err
		}
	}
	for g, n := range seen {
		if n != w.sent[g].records {
			return fmt.Errorf("group %d has %d of %d records", g, n, w.sent[g].records)
		}
	}
	for p := range w.known {
		for o := range w.known[p] {
			if o >= ends[p] {
				return fmt.Errorf("partition %d offset %d was acknowledged or handed out, and the journal ends at %d", p, o, ends[p])
			}
		}
	}
	return nil
}

// readAll reads from and to the given offsets.
func readAll(j *Journal, from, to []int64) ([]Record, error) {
	r, err := j.NewReader(from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []Record
	var b Batch
	left := int64(0)
	for p := range from {
		left += to[p] - from[p]
	}
	for left > 0 {
		if err := r.Next(context.Background(), &b); err != nil {
			return out, err
		}
		for _, r := range b.Records {
			r.Payload = bytes.Clone(r.Payload)
			if r.Offset < to[r.Partition] {
				out = append(out, r)
				left--
			}
		}
	}
	return out, nil
}

// options are those of small journals in memory.
func options(fs vfs.FS) Options {
	return Options{
		Dir: "data/journal", FS: fs, Logger: slog.New(slog.DiscardHandler),
		SegmentBytes: 8 << 10, RecentBytes: 4 << 10,
	}
}

// open opens a journal that is closed with the test.
func open(t *testing.T, o Options) *Journal {
	t.Helper()
	j, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// must fails the test on an error.
func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// payloads makes records of one partition.
func payloads(partition int, payloads ...string) []Record {
	var out []Record
	for _, p := range payloads {
		out = append(out, Record{Partition: partition, Payload: []byte(p)})
	}
	return out
}

var errGone = errors.New("the machine is off")

// drain reads a read-only journal to its end.
func drain(j *Journal) ([]Record, error) {
	r, err := j.NewReader(j.First())
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []Record
	for {
		var b Batch
		if err := r.Next(context.Background(), &b); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, err
		}
		out = append(out, b.Records...)
	}
}
