package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

// J3, J4: readers that begin anywhere, in memory and on the disk, get all that comes
// from there on, in order, while it is written.
func TestReadWhileWritten(t *testing.T) {
	o := options(vfs.NewMem())
	o.Partitions = 3
	j := open(t, o)
	w := newWorld(3)
	rng := newRand(1)
	const senders, groups = 4, 60
	total := int64(0)
	var wg sync.WaitGroup
	for range senders {
		var work [][]Record
		for range groups {
			work = append(work, w.group(rng, 4, 300))
			total += int64(len(work[len(work)-1]))
		}
		wg.Go(func() {
			for _, g := range work {
				if err := w.append(j, g); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			from := j.Ends() // wherever that is just now
			left := total - from[0] - from[1] - from[2]
			r, err := j.NewReader(from)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			next, b := from, Batch{}
			for left > 0 {
				if err := r.Next(t.Context(), &b); err != nil {
					t.Error(err)
					return
				}
				left -= int64(len(b.Records))
				for _, rec := range b.Records {
					if rec.Offset != next[rec.Partition] {
						t.Errorf("partition %d: offset %d, want %d", rec.Partition, rec.Offset, next[rec.Partition])
						return
					}
					next[rec.Partition]++
				}
			}
		})
	}
	wg.Wait()
	must(t, w.check(j))
}

// A reader from any offsets gets exactly the records from there on.
func TestReaderFromAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		partitions := rapid.IntRange(1, 4).Draw(rt, "partitions")
		o := options(vfs.NewMem())
		o.Partitions = partitions
		o.SegmentBytes = rapid.Int64Range(100, 4000).Draw(rt, "segment bytes")
		o.RecentBytes = rapid.Int64Range(1, 4000).Draw(rt, "recent bytes")
		j, err := Open(o)
		must(rt, err)
		defer j.Close()
		w := newWorld(partitions)
		rng := newRand(rapid.Uint64().Draw(rt, "seed"))
		for range rapid.IntRange(0, 30).Draw(rt, "groups") {
			must(rt, w.append(j, w.group(rng, 5, 200)))
		}
		from, ends := make([]int64, partitions), j.Ends()
		for p := range from {
			from[p] = rapid.Int64Range(0, ends[p]).Draw(rt, "from")
		}
		got, err := readAll(j, from, ends)
		must(rt, err)
		next := slices.Clone(from)
		for _, r := range got {
			if known := w.known[r.Partition][r.Offset]; r.Offset != next[r.Partition] || string(known.Payload) != string(r.Payload) {
				rt.Fatalf("partition %d: offset %d, want %d, or another payload", r.Partition, r.Offset, next[r.Partition])
			}
			next[r.Partition]++
		}
		if !slices.Equal(next, ends) {
			rt.Fatalf("read up to %v of %v", next, ends)
		}
		for p := range from {
			if from[p] == ends[p] {
				continue
			}
			h, err := j.Hash(context.Background(), p, from[p])
			must(rt, err)
			if h != w.known[p][from[p]].Hash() {
				rt.Fatalf("hash of partition %d offset %d", p, from[p])
			}
		}
	})
}

// A reader at the end waits, without turning, until there is more, its context
// ends, or the journal is closed; after its context has ended it goes on.
func TestReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(vfs.NewMem())
		o.Partitions = 1
		j, err := Open(o)
		must(t, err)
		r, err := j.NewReader([]int64{0})
		must(t, err)
		defer r.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var b Batch
		if err := r.Next(ctx, &b); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Hour)
			must(t, j.Append(t.Context(), payloads(0, "a")))
			time.Sleep(time.Hour)
			must(t, j.Close())
		}()
		must(t, r.Next(t.Context(), &b))
		if string(b.Records[0].Payload) != "a" {
			t.Errorf("read %q", b.Records[0].Payload)
		}
		if err := r.Next(t.Context(), &b); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	})
}

// A reader that keeps up is served from memory.
func TestRecentIsInMemory(t *testing.T) {
	fs := newFaults(vfs.NewMem())
	o := options(fs)
	o.Partitions = 1
	j := open(t, o)
	r, err := j.NewReader([]int64{0})
	must(t, err)
	defer r.Close()
	fs.set(func(_ int, op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt || op.Kind == errorfs.OpOpen {
			t.Errorf("read from the disk: %s", op.Path)
		}
		return nil
	})
	var b Batch
	for i := range 50 { // some segments, and rounds of the ring
		must(t, j.Append(t.Context(), payloads(0, strings.Repeat("x", 20*i))))
		must(t, r.Next(t.Context(), &b))
		if len(b.Records) != 1 || len(b.Records[0].Payload) != 20*i {
			t.Fatalf("read %d records", len(b.Records))
		}
	}
	fs.set(nil)
}

// What a reader can't have: offsets from before the start, from beyond the end, and
// of another number of partitions.
func TestReaderOutOfRange(t *testing.T) {
	o := options(vfs.NewMem())
	o.Partitions = 2
	j := open(t, o)
	must(t, j.Append(t.Context(), payloads(0, "a", "b")))
	for _, from := range [][]int64{{3, 0}, {0, 1}, {0}, {0, 0, 0}} {
		if _, err := j.NewReader(from); err == nil || errors.Is(err, ErrTrimmed) {
			t.Errorf("from %v: %v", from, err)
		}
	}
	for _, at := range []struct {
		partition int
		offset    int64
	}{{0, 2}, {1, 0}, {2, 0}, {-1, 0}} {
		if _, err := j.Hash(t.Context(), at.partition, at.offset); err == nil || errors.Is(err, ErrTrimmed) {
			t.Errorf("hash of %v: %v", at, err)
		}
	}
	if _, err := j.NewReader([]int64{-1, 0}); !errors.Is(err, ErrTrimmed) {
		t.Errorf("from a negative offset: %v", err)
	}
}

// A group that is larger than what is read at a time, than what is kept in memory,
// and than a segment.
func TestLargeGroup(t *testing.T) {
	o := options(vfs.NewMem())
	o.Partitions = 2
	j := open(t, o)
	large := Record{Partition: 1, Payload: make([]byte, 3*readBytes)}
	for i := 0; i+8 <= len(large.Payload); i += 8 {
		binary.LittleEndian.PutUint64(large.Payload[i:], uint64(i))
	}
	must(t, j.Append(t.Context(), payloads(0, "before")))
	must(t, j.Append(t.Context(), []Record{large, large}))
	must(t, j.Append(t.Context(), payloads(0, "after")))
	for range 2 {
		got, err := readAll(j, make([]int64, 2), j.Ends())
		must(t, err)
		if len(got) != 4 || string(got[2].Payload) != string(large.Payload) || string(got[3].Payload) != "after" {
			t.Fatalf("read %d records", len(got))
		}
		must(t, j.Close())
		j = open(t, o)
	}
}
