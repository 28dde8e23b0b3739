package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tidemark/windows"
)

// malformed are groups whose checksum fits, and that nobody can have written: what
// follows the position in the header, then table and records.
var malformed = []struct {
	name          string
	synced, stamp int64
	count, shares uint32
	body          []byte
	next          []int64 // what was to come
	valid         bool
}{
	{name: "empty", next: []int64{0, 0}, valid: true},
	{name: "one record", count: 1, shares: 1, body: []byte{0, 7, 1, 0, 2, 'a', 'b'}, next: []int64{7, 0}, valid: true},
	{name: "synced ahead of itself", synced: 1001, next: []int64{0, 0}},
	{name: "synced before the log", synced: -1, next: []int64{0, 0}},
	{name: "a stamp before time", stamp: -1, next: []int64{0, 0}},
	{name: "more shares than partitions", shares: 3, body: make([]byte, 9), next: []int64{0, 0}},
	{name: "a share of no partition", count: 1, shares: 1, body: []byte{2, 0, 1, 2, 0}, next: []int64{0, 0}},
	{name: "a table that ends early", shares: 2, body: []byte{0, 0, 0, 1}, next: []int64{0, 0}},
	{name: "an offset that was not to come", count: 1, shares: 1, body: []byte{0, 6, 1, 0, 0}, next: []int64{7, 0}},
	{name: "an endless number", shares: 1, body: bytes.Repeat([]byte{0xff}, 20), next: []int64{0, 0}},
	{name: "fewer records than said", count: 2, shares: 1, body: []byte{0, 0, 2, 0, 0}, next: []int64{0, 0}},
	{name: "more records than said", count: 1, shares: 1, body: []byte{0, 0, 1, 0, 0, 0, 0}, next: []int64{0, 0}},
	{name: "a record that no share tells of", count: 1, shares: 0, body: []byte{0, 0}, next: []int64{0, 0}},
	{name: "no record, where one is said", count: 1, shares: 1, body: []byte{0, 0, 0}, next: []int64{0, 0}},
	{name: "a record of no partition", count: 1, shares: 1, body: []byte{0, 0, 1, 2, 0}, next: []int64{0, 0}},
	{name: "a payload longer than the group", count: 1, shares: 1, body: []byte{0, 0, 1, 0, 1}, next: []int64{0, 0}},
	{name: "a payload of endless length", count: 1, shares: 1, body: append([]byte{0, 0, 1, 0}, bytes.Repeat([]byte{0xff}, 9)...), next: []int64{0, 0}},
	{name: "a share twice", count: 1, shares: 2, body: []byte{0, 0, 1, 0, 0, 1, 0, 0}, next: []int64{0, 0}},
}

const fuzzPosition = 1000

// sealGroup puts a header before a body, and a checksum that fits, if its table can be read.
func sealGroup(d *decoder, synced, stamp int64, count, shares uint32, body []byte) []byte {
	b := make([]byte, groupHeader, groupHeader+len(body))
	b = append(b, body...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(body)))
	binary.LittleEndian.PutUint64(b[8:], fuzzPosition)
	binary.LittleEndian.PutUint64(b[16:], uint64(synced))
	binary.LittleEndian.PutUint64(b[24:], uint64(stamp))
	binary.LittleEndian.PutUint32(b[32:], count)
	binary.LittleEndian.PutUint32(b[36:], shares)
	if _, table, err := d.table(b); err == nil {
		sum := crc32.Update(crc32.Update(d.salt, castagnoli, b[table:]), castagnoli, b[4:table])
		binary.LittleEndian.PutUint32(b, sum)
	}
	return b
}

func TestMalformedGroups(t *testing.T) {
	for _, c := range malformed {
		d := decoder{salt: 5, partitions: 2}
		b := sealGroup(&d, c.synced, c.stamp, c.count, c.shares, c.body)
		g, err := d.decode(b, fuzzPosition)
		if err == nil {
			_, err = g.take(slices.Clone(c.next), make([]int64, 2), nil)
		}
		if (err == nil) != c.valid {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := d.decode(b, fuzzPosition+1); !errors.Is(err, errNoGroup) {
			t.Errorf("%s: at another position: %v", c.name, err)
		}
		other := decoder{salt: 6, partitions: 2}
		if _, err := other.decode(b, fuzzPosition); !errors.Is(err, errNoGroup) {
			t.Errorf("%s: in another journal: %v", c.name, err)
		}
	}
}

// FuzzGroup has groups whose checksum fits: the contents alone must not mislead.
func FuzzGroup(f *testing.F) {
	for _, c := range malformed {
		f.Add(c.synced, c.stamp, c.count, c.shares, c.body, c.next[0], c.next[1])
	}
	f.Fuzz(func(t *testing.T, synced, stamp int64, count, shares uint32, body []byte, next0, next1 int64) {
		d := decoder{salt: 5, partitions: 2}
		b := sealGroup(&d, synced, stamp, count, shares, body)
		g, err := d.decode(b, fuzzPosition)
		if err != nil {
			return
		}
		next := []int64{next0, next1}
		records, err := g.take(next, []int64{next0, next1}, nil)
		if err != nil {
			return
		}
		if len(records) != int(count) || next[0]-next0+next[1]-next1 != int64(count) {
			t.Fatalf("%d records taken, offsets advanced by %d and %d, of %d", len(records), next[0]-next0, next[1]-next1, count)
		}
		// What was taken in is what would be written.
		var r request
		if err := r.encode(records, 2, d.salt); err != nil {
			t.Fatal(err)
		}
		again, err := d.decode(r.frame(fuzzPosition, synced, stamp, []int64{next0, next1}), fuzzPosition)
		if err != nil {
			t.Fatal(err)
		}
		if again.count != g.count || !bytes.Equal(canonical(t, again), canonical(t, g)) {
			t.Fatal("encoded again, the group is another one")
		}
	})
}

// canonical returns a group's payloads, with their partitions and lengths.
func canonical(t *testing.T, g group) []byte {
	next := make([]int64, 2)
	for _, s := range g.shares {
		next[s.partition] = s.first
	}
	records, err := g.take(next, make([]int64, 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	var r request
	if err := r.encode(records, 2, 0); err != nil {
		t.Fatal(err)
	}
	return r.buf[r.reserved:]
}

// FuzzSegment has files of any content as a journal's only one, and as its last.
func FuzzSegment(f *testing.F) {
	s := makeSample(f, false)
	names := s.names()
	for _, name := range names {
		f.Add(s.files[name])
		f.Add(s.files[name][:len(s.files[name])-3])
	}
	h := header{id: windows.LogID{1}, sequence: 3, offsets: make([]int64, MaxPartitions)}
	f.Add(h.encode())
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, fs := range []vfs.FS{
			s.with(t, names[2], content),
			(&sample{files: map[string][]byte{names[2]: content}}).with(t, "", nil),
		} {
			if _, err := reopen(fs); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
	})
}
