package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Backups are made while records are appended and segments removed: each is a
// journal with all that was acknowledged before, and records that are those of the
// log; it can be gone on with, which the one it was made of does not notice.
func TestBackupIsTheJournalAtOneInstant(t *testing.T) {
	disk := vfs.NewMem()
	o := options(disk)
	o.Partitions = 3
	j := open(t, o)
	w := newWorld(j.Partitions())
	stop := make(chan struct{})
	var senders, trimmer sync.WaitGroup
	for s := range 3 {
		senders.Go(func() {
			rng := newRand(uint64(s))
			for range 300 {
				must(t, w.append(j, w.group(rng, 5, 200)))
			}
		})
	}
	trimmer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			keep := j.Ends()
			for p := range keep {
				keep[p] = max(0, keep[p]-200)
			}
			must(t, j.Trim(t.Context(), keep, time.Now().Add(time.Minute)))
		}
	})
	type copied struct {
		dir   string
		least []int64 // what was acknowledged before
	}
	var copies []copied
	for n := range 20 {
		c := copied{fmt.Sprintf("data/copy-%d", n), j.Ends()}
		must(t, j.Backup(c.dir))
		copies = append(copies, c)
	}
	senders.Wait()
	close(stop)
	trimmer.Wait()
	if err := j.Backup(copies[0].dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a backup over another one: %v", err)
	}
	if j.First()[0] == 0 {
		t.Error("nothing was trimmed")
	}

	for _, c := range copies {
		o := options(disk)
		o.Dir = c.dir
		b := open(t, o)
		records, err := readAll(b, b.First(), b.Ends())
		must(t, err)
		for _, r := range records {
			if was := w.known[r.Partition][r.Offset]; was.Stamp != r.Stamp || !bytes.Equal(was.Payload, r.Payload) {
				t.Fatalf("%s: partition %d offset %d is another record", c.dir, r.Partition, r.Offset)
			}
		}
		for p, end := range b.Ends() {
			if end < c.least[p] {
				t.Errorf("%s: partition %d ends at %d, and %d was acknowledged before", c.dir, p, end, c.least[p])
			}
		}
		must(t, b.Append(t.Context(), payloads(0, "after the backup")))
	}
	must(t, w.check(j))
}
