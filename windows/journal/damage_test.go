package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

// sample is a small journal of three segments, as its files, and what is in it.
type sample struct {
	files   map[string][]byte
	records []Record
	vouched int // so many of the records have a later group that vouches for them
}

// makeSample makes a journal and stops it in order, or by a power cut that leaves
// all of it.
func makeSample(t tester, inOrder bool) sample {
	t.Helper()
	disk := vfs.NewCrashableMem()
	o := options(disk)
	o.Partitions, o.SegmentBytes = 3, 420
	j, err := Open(o)
	must(t, err)
	var s sample
	for i := range 10 {
		s.vouched = len(s.records)
		var group []Record
		for k := range 1 + i%3 {
			group = append(group, Record{Partition: (i + k) % 3, Payload: fmt.Appendf(nil, "record %d of group %d", k, i)})
		}
		must(t, j.Append(context.Background(), group))
		s.records = append(s.records, group...)
	}
	left := disk
	if !inOrder {
		left = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRand(1)})
	}
	must(t, j.Close())
	if inOrder {
		s.vouched = len(s.records)
	}
	s.files = filesOf(t, left, o.Dir)
	if len(s.files) != 3 {
		t.Fatalf("%d segments", len(s.files))
	}
	return s
}

// filesOf reads the segments in a folder.
func filesOf(t tester, fs vfs.FS, dir string) map[string][]byte {
	t.Helper()
	names, err := fs.List(dir)
	must(t, err)
	files := map[string][]byte{}
	for _, name := range names {
		if _, ok := parseSegmentName(name); ok {
			f, err := fs.Open(fs.PathJoin(dir, name))
			must(t, err)
			files[name], err = io.ReadAll(f)
			must(t, err)
			must(t, f.Close())
		}
	}
	return files
}

// with returns a file system that has the sample's files, one of them replaced.
func (s *sample) with(t tester, name string, content []byte) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	must(t, fs.MkdirAll("data/journal", 0o700))
	for n, b := range s.files {
		if n == name {
			b = content
		}
		if b != nil {
			writeFile(t, fs, fs.PathJoin("data/journal", n), b)
		}
	}
	return fs
}

func writeFile(t tester, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write(bytes.Clone(b))
	must(t, err)
	must(t, f.Close())
}

func (s *sample) names() []string {
	var names []string
	for n := range s.files {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// J6: whatever byte of whatever file is another one, the journal is damaged, or ends
// before a group that nothing vouched for. What it hands out is what was written.
func TestEveryByteChanged(t *testing.T) {
	for _, inOrder := range []bool{true, false} {
		t.Run(fmt.Sprintf("ended in order=%t", inOrder), func(t *testing.T) {
			s := makeSample(t, inOrder)
			tails := 0
			for _, name := range s.names() {
				for i := range s.files[name] {
					for _, change := range []byte{0x01, 0xff} {
						content := bytes.Clone(s.files[name])
						content[i] ^= change
						got, err := s.reopen(t, name, content)
						if err != nil {
							if !errors.Is(err, ErrDamaged) {
								t.Fatalf("%s byte %d ^ %x: %v", name, i, change, err)
							}
							continue
						}
						tails++
						if len(got) < s.vouched {
							t.Fatalf("%s byte %d ^ %x: %d records are left, %d were vouched for", name, i, change, len(got), s.vouched)
						}
						if diff := cmp.Diff(s.records[:len(got)], got); diff != "" {
							t.Fatalf("%s byte %d ^ %x: -want +got\n%s", name, i, change, diff)
						}
					}
				}
			}
			if tails == 0 {
				t.Error("no change was taken for a torn tail")
			}
		})
	}
}

// A file that is cut off anywhere: the last one then ends with a whole group, as
// after a power cut; any other one is damaged.
func TestEveryLength(t *testing.T) {
	s := makeSample(t, false)
	names := s.names()
	for _, name := range names {
		for length := range s.files[name] {
			got, err := s.reopen(t, name, s.files[name][:length])
			if name == names[len(names)-1] && err == nil {
				if diff := cmp.Diff(s.records[:len(got)], got); diff != "" {
					t.Fatalf("%s cut to %d: -want +got\n%s", name, length, diff)
				}
			} else if !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s cut to %d: %d records, %v", name, length, len(got), err)
			}
		}
	}
}

// Zeros behind the end, as a file system leaves them after a power cut, are a torn tail.
func TestZerosBehindTheEnd(t *testing.T) {
	s := makeSample(t, false)
	names := s.names()
	last := names[len(names)-1]
	for _, n := range []int{1, 39, 40, 41, 5000, 3 * scanBytes} {
		got, err := s.reopen(t, last, append(bytes.Clone(s.files[last]), make([]byte, n)...))
		must(t, err)
		if diff := cmp.Diff(s.records, got); diff != "" {
			t.Errorf("%d zeros: -want +got\n%s", n, diff)
		}
	}
}

// A missing segment, one of another journal, and one under another's name are damage.
func TestWrongFiles(t *testing.T) {
	s, other := makeSample(t, true), makeSample(t, true)
	names := s.names()
	for what, content := range map[string][]byte{
		"missing":            nil,
		"of another journal": other.files[names[1]],
		"another one":        s.files[names[0]],
		"of another format":  append([]byte("tidemkJL\x02"), s.files[names[1]][9:]...),
		"empty":              {},
		"no segment at all":  []byte("this is no segment, however long its text goes on, and it must be eighty bytes long"),
	} {
		if _, err := s.reopen(t, names[1], content); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Nothing tells a missing first segment from a trimmed one; First does.
	got, err := s.reopen(t, names[0], nil)
	must(t, err)
	if len(got) == 0 || len(got) == len(s.records) {
		t.Errorf("%d records without the first segment", len(got))
	}
}

// reopen opens the sample with a file replaced, reads all, and does so once more.
func (s *sample) reopen(t tester, name string, content []byte) ([]Record, error) {
	t.Helper()
	fs := s.with(t, name, content)
	got, err := reopen(fs)
	if err != nil {
		return nil, err
	}
	again, err := reopen(fs)
	must(t, err)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Fatalf("opened again: -first +second\n%s", diff)
	}
	return got, nil
}

func reopen(fs vfs.FS) (got []Record, err error) {
	j, err := Open(options(fs))
	if err != nil {
		return nil, err
	}
	got, err = readAll(j, j.First(), j.Ends())
	return got, errors.Join(err, j.Close())
}
