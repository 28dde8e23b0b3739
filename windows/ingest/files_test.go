package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"tidemark/sketches"
	"tidemark/windows"
	"tidemark/windows/windowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hasher = sketches.NewHasher(sketches.Key{1})

// event is a windows.Event with copies of what it points to.
type event struct {
	windows.Event
	partition        int
	item, typ        string
	dims             []string
	title, url, site string
}

// describe writes what can be told of an event without the hashes.
func (e event) String() string {
	if e.Outcome == windows.Malformed {
		return fmt.Sprintf("%d %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("%d %s %s %d", e.Offset, e.item, e.typ, e.Time)
}

func texts(events []event) []string {
	s := make([]string, len(events))
	for i, e := range events {
		s[i] = e.String()
	}
	return s
}

func configOf(paths ...string) FilesConfig {
	return FilesConfig{Paths: paths, Partitions: 4, Hasher: hasher, Type: "view", Dimensions: []string{"country", "device"}}
}

// importFiles imports the files and returns their events by number. It fails if
// the batches of a partition are not in order.
func importFiles(t testing.TB, cfg FilesConfig, from int64) []event {
	t.Helper()
	f, err := OpenFiles(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var events []event
	last := make(map[int]int64)
	n, err := f.Run(t.Context(), RunConfig{From: from, Stamp: stamp, Submit: func(_ context.Context, partition int, b windows.Batch) error {
		for _, e := range b.Events {
			if at, ok := last[partition]; ok && at >= e.Offset {
				t.Errorf("partition %d: record %d after %d", partition, e.Offset, at)
			}
			last[partition] = e.Offset
			events = append(events, copied(e, partition))
		}
		b.Release()
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(events, func(a, b event) int { return int(a.Offset - b.Offset) })
	for i, e := range events {
		if e.Offset != from+int64(i) {
			t.Fatalf("record %d is missing", from+int64(i))
		}
		if e.Stamp != stamp {
			t.Fatalf("record %d is stamped %d", e.Offset, e.Stamp)
		}
	}
	if n < from || int64(len(events)) != n-from {
		t.Fatalf("%d events from %d on of %d records", len(events), from, n)
	}
	return events
}

func copied(e windows.Event, partition int) event {
	c := event{Event: e, partition: partition, item: string(e.Item), typ: string(e.Type)}
	for _, d := range e.Dims {
		c.dims = append(c.dims, string(d))
	}
	if e.Info != nil {
		c.title, c.url, c.site = string(e.Info.Title), string(e.Info.URL), string(e.Info.Image)
	}
	c.Item, c.Type, c.Dims, c.Info = nil, nil, nil, nil
	return c
}

func write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(content []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(content)
	z.Close()
	return b.Bytes()
}

func zstandard(content []byte) []byte {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		panic(err)
	}
	z.Write(content)
	z.Close()
	return b.Bytes()
}

// One log of several files, in each format and packed each way, numbered through;
// and the same from any record on.
func TestFilesAreOneLog(t *testing.T) {
	const bom = "\ufeff"
	paths := []string{
		write(t, "a", []byte(bom+"{\"item\":\"a0\"}\n\n{\"item\":\"a1\"}")),
		write(t, "b.csv", []byte(bom+"ts_ms,item\n1767225600000,b0\n,b1\n")),
		write(t, "c", gzipped([]byte("[{\"item\":\"c0\"},\n{\"item\":\"c1\",\"type\":\"like\"}]"))),
		write(t, "empty", nil),
		write(t, "header", []byte("item\n")),
		write(t, "d", zstandard([]byte("{\n\"item\":\"d0\"\n}\n{\n\"item\":\"d1\"\n}"))),
		write(t, "e", append(gzipped([]byte("{\"item\":\"e0\"}\n{\"it")), gzipped([]byte("em\":\"e1\"}"))...)),
		write(t, "f.ndjson", []byte("nonsense\n{\"item\":\"f1\"}\n")),
		write(t, "g.jsonl.gz", gzipped([]byte("[1]\n{\"item\":\"g1\"}\n"))),
		write(t, "h", []byte("nonsense\n{\"item\":\"h1\"}\n")),
	}
	want := []string{
		"0 a0 view 1767225600000", "1 a1 view 1767225600000",
		"2 b0 view 1767225600000", "3 b1 view 1767225600000",
		"4 c0 view 1767225600000", "5 c1 like 1767225600000",
		"6 d0 view 1767225600000", "7 d1 view 1767225600000",
		"8 e0 view 1767225600000", "9 e1 view 1767225600000",
		"10 record: not a JSON object", "11 f1 view 1767225600000",
		"12 record: not a JSON object", "13 g1 view 1767225600000",
		"14 record: not a JSON object", "15 h1 view 1767225600000",
	}
	for from := range len(want) + 1 {
		if diff := cmp.Diff(want[from:], texts(importFiles(t, configOf(paths...), int64(from)))); diff != "" {
			t.Errorf("from %d: %s", from, diff)
		}
	}
}

// Every field arrives in its place, hashed as the deployment does.
func TestEventsAreWhole(t *testing.T) {
	path := write(t, "f.ndjson", []byte(`{"item":"a","type":"like","user":"u","id":"7","time":1,"country":"DE","device":3,"title":"T","url":"U","image":"I"}
{"item":"a","device":"x"}
{"item":"a","title":"\u0054"}
{}
`))
	got := importFiles(t, configOf(path), 0)
	hash := hasher.Item([]byte("a"))
	user, id := hasher.User([]byte("u")), hasher.ID([]byte("7"))
	want := []event{
		{
			Event:     windows.Event{Offset: 0, Stamp: stamp, Time: 1, ItemHash: hash, User: user, HasUser: true, ID: id, HasID: true},
			partition: int(user % 4), item: "a", typ: "like", dims: []string{"DE", "3"}, title: "T", url: "U", site: "I",
		},
		{Event: windows.Event{Offset: 1, Stamp: stamp, Time: stamp, ItemHash: hash}, partition: 1, item: "a", typ: "view", dims: []string{"", "x"}},
		{Event: windows.Event{Offset: 2, Stamp: stamp, Time: stamp, ItemHash: hash}, partition: 2, item: "a", typ: "view", title: "T"},
		{Event: windows.Event{Offset: 3, Stamp: stamp, Outcome: windows.Malformed, Reason: reasonItemMissing}, partition: 3},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(event{})); diff != "" {
		t.Error(diff)
	}
}

// A person's events meet in one partition; without a person, those of one ID do.
func TestRoutes(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, `{"item":"%d","user":"u%d","id":"%d"}`+"\n"+`{"item":"%d","id":"i%d"}`+"\n"+`{"item":"%d"}`+"\n", i, i%10, i, i, i%10, i)
	}
	cfg := configOf(write(t, "f.ndjson", []byte(b.String())))
	cfg.Partitions = 7
	users, ids, spread := make(map[uint64]int), make(map[uint64]int), make(map[int]int)
	for _, e := range importFiles(t, cfg, 0) {
		where, key := users, e.User
		switch {
		case e.HasUser:
		case e.HasID:
			where, key = ids, e.ID
		default:
			spread[e.partition]++
			continue
		}
		if p, ok := where[key]; ok && p != e.partition {
			t.Fatalf("record %d is in partition %d, others of it in %d", e.Offset, e.partition, p)
		}
		where[key] = e.partition
	}
	if len(users) != 10 || len(ids) != 10 || len(spread) != 7 {
		t.Errorf("%d users, %d IDs, %d partitions with neither", len(users), len(ids), len(spread))
	}
}

// Each line of a file of faults gets its reason, all others count, and nothing is
// left out.
func TestFileOfFaults(t *testing.T) {
	var b strings.Builder
	var want []string
	for i, tt := range jsonLines {
		fmt.Fprintf(&b, "%s\n{\"item\":\"good\",\"user\":\"%d\"}\n", tt.line, i)
		want = append(want, tt.want, fmt.Sprintf("item=good user=%d", i))
	}
	fmt.Fprintf(&b, "{\"item\":\"%s\"}\n{\"item\":\"good\"}\n", strings.Repeat("a", 2<<20))
	want = append(want, reasonLong, "item=good")
	for _, path := range []string{write(t, "f.ndjson", []byte(b.String())), write(t, "f.ndjson", gzipped([]byte(b.String())))} {
		got := importFiles(t, configOf(path), 0)
		if len(got) != len(want) {
			t.Fatalf("%d records of %d lines", len(got), len(want))
		}
		for i, e := range got {
			reason := want[i]
			if strings.HasPrefix(reason, "item=") {
				reason = ""
			}
			if e.Reason != reason || (e.Outcome == windows.Malformed) != (reason != "") {
				t.Errorf("line %d: %s %q; want %q", i, e.Outcome, e.Reason, want[i])
			}
		}
	}
}

// What can be read of a compressed file that was cut anywhere, or has a byte that
// is another, counts; then comes one malformed record.
func TestDamagedFiles(t *testing.T) {
	var b bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&b, `{"item":"%d","user":"%x"}`+"\n", i, hasher.User([]byte{byte(i), byte(i >> 8)}))
	}
	whole := texts(importFiles(t, configOf(write(t, "f.ndjson", b.Bytes())), 0))
	check := func(name, reason string, content []byte) {
		t.Helper()
		got := texts(importFiles(t, configOf(write(t, "f.ndjson", content)), 0))
		n := len(got) - 1
		if n < 0 || n > len(whole) {
			t.Fatalf("%s: %d records", name, len(got))
		}
		if diff := cmp.Diff(whole[:n], got[:n]); diff != "" {
			t.Fatalf("%s: %s", name, diff)
		}
		if reasons := strings.SplitN(got[n], " ", 2); reasons[1] != reason {
			t.Fatalf("%s: after %d records %q, want %q", name, n, reasons[1], reason)
		}
	}
	for name, content := range map[string][]byte{"gzip": gzipped(b.Bytes()), "zstd": zstandard(b.Bytes())} {
		for cut := 10; cut < len(content); cut += 1 + len(content)/40 {
			check(fmt.Sprintf("%s cut at %d of %d", name, cut, len(content)), reasonFileCut, content[:cut])
		}
		damaged := bytes.Clone(content)
		damaged[len(damaged)-6] ^= 1 // in the checksum
		if name == "gzip" {
			check(name+" with a wrong checksum", reasonFileDamaged, damaged)
		}
		check(name+" with something behind", reasonFileDamaged, append(bytes.Clone(content), "nonsense behind it"...))
	}
}

func TestWhatIsRefused(t *testing.T) {
	good := write(t, "good", []byte(`{"item":"a"}`))
	zipped := zstandard(bytes.Repeat([]byte("{\"item\":\"a\"}\n"), 10))
	for _, tt := range []struct {
		name  string
		paths []string
		want  string
	}{
		{"no file", nil, "files: none given"},
		{"a file that is not there", []string{"nowhere"}, "nowhere: no such file"},
		{"a folder", []string{t.TempDir()}, "is a folder"},
		{"no column item", []string{write(t, "f.csv", []byte("time,user\n1,u\n"))}, `neither JSON nor CSV with a column named item; its first line is "time,user"`},
		{"other separators", []string{write(t, "f.csv", []byte("time;item\n1;i\n"))}, `its first line is "time;item"`},
		{"a binary", []string{write(t, "f", []byte("PK\x03\x04\x00\x00"))}, `its first line is "PK\x03\x04\x00\x00"`},
		{"UTF-16", []string{write(t, "f.csv", []byte("\xff\xfei\x00"))}, "UTF-16; UTF-8 is asked"},
		{"a column twice", []string{write(t, "f.csv", []byte("item,time,ts_ms\n"))}, `columns "time" and "ts_ms" of the header are the same`},
		{"a packed file with a wrong header", []string{write(t, "f.csv.gz", gzipped([]byte("time,user\n")))}, "neither JSON nor CSV"},
		{"a header without an end", []string{write(t, "f.csv", []byte(strings.Repeat("x,", sniffBytes)))}, "neither JSON nor CSV"},
		{"the same file twice", []string{good, good}, "the same content as"},
		{"the same content twice", []string{good, write(t, "copy", []byte(`{"item":"a"}`))}, "the same content as"},
		{"a window that takes too much memory", []string{write(t, "f.zst", bytes.Replace(zipped, zipped[4:6], []byte{0x00, 0xf0}, 1))}, "window"},
	} {
		f, err := OpenFiles(t.Context(), configOf(tt.paths...))
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	cfg := configOf(good)
	cfg.Partitions, cfg.Type, cfg.Dimensions = 0, "", []string{"user", "x", "x", "", "event_id"}
	_, err := OpenFiles(t.Context(), cfg)
	want := "partitions: must be at least 1, got 0\n" +
		"type: must have 1 to 64 bytes, got \"\"\n" +
		"dimensions: \"user\" is a field of events already\n" +
		"dimensions: \"x\" stands twice\n" +
		"dimensions: one has no name\n" +
		"dimensions: \"event_id\" is a field of events already"
	if err == nil || err.Error() != want {
		t.Error(cmp.Diff(want, fmt.Sprint(err)))
	}
	cfg = configOf(good, good)
	cfg.Again = true
	if n := len(importFiles(t, cfg, 0)); n != 2 {
		t.Errorf("twice on purpose: %d records", n)
	}
}

func TestLogNames(t *testing.T) {
	a, b := write(t, "a", []byte(`{"item":"a"}`)), write(t, "b", []byte(`{"item":"b"}`))
	copyOfA := write(t, "other", []byte(`{"item":"a"}`))
	name := func(again uint64, paths ...string) windows.LogID {
		f, err := OpenFiles(t.Context(), configOf(paths...))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return f.Log(again)
	}
	seen := map[windows.LogID]string{}
	for what, id := range map[string]windows.LogID{
		"a": name(0, a), "b": name(0, b), "a, b": name(0, a, b), "b, a": name(0, b, a), "a again": name(1, a), "a once more": name(2, a),
	} {
		if other, ok := seen[id]; ok {
			t.Errorf("%s has the name of %s", what, other)
		}
		seen[id] = what
	}
	if name(0, a) != name(0, copyOfA) {
		t.Error("a copy has another name")
	}
}

// The content of a file is told apart at every byte, pieces and ends included.
func TestContent(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 3*pieceBytes/16)
	seen := make(map[Content]string)
	add := func(name string, b []byte) {
		c, err := contentOf(t.Context(), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[c]; ok {
			t.Errorf("%s is taken for %s", name, other)
		}
		seen[c] = name
	}
	for _, size := range []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes, 3 * pieceBytes} {
		add(fmt.Sprintf("%d bytes", size), content[:size])
	}
	for _, at := range []int{0, pieceBytes - 1, pieceBytes, 3*pieceBytes - 1} {
		b := bytes.Clone(content)
		b[at]++
		add(fmt.Sprintf("another byte at %d", at), b)
	}
	if _, err := contentOf(t.Context(), bytes.NewReader(content), int64(len(content))+1); !errors.Is(err, io.EOF) {
		t.Errorf("a file that became shorter: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errFailing)
	if _, err := contentOf(ctx, bytes.NewReader(content), int64(len(content))); !errors.Is(err, errFailing) {
		t.Errorf("called off: %v", err)
	}
}

// Standard input and pipes are read twice all the same, and leave nothing behind.
func TestWhatCannotBeReadTwice(t *testing.T) {
	content := []byte("{\"item\":\"a\"}\n{\"item\":\"b\"}\n")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() { written <- os.WriteFile(pipe, gzipped(content), 0o600) }()
	cfg := configOf("-", pipe)
	cfg.Stdin, cfg.SpoolDir = bytes.NewReader(content), t.TempDir()
	f, err := OpenFiles(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n, err := f.Run(t.Context(), RunConfig{Submit: func(_ context.Context, _ int, b windows.Batch) error {
			b.Release()
			return nil
		}})
		if n != 4 || err != nil {
			t.Errorf("%d records, %v", n, err)
		}
	}
	if left, _ := os.ReadDir(cfg.SpoolDir); len(left) > 0 {
		t.Errorf("left behind: %s", left[0].Name())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}

	cfg = configOf("-")
	cfg.Stdin, cfg.SpoolDir = bytes.NewReader(content), filepath.Join(t.TempDir(), "nowhere")
	if _, err := OpenFiles(t.Context(), cfg); err == nil {
		t.Error("copied into a folder that is not there")
	}
	cfg.Stdin, cfg.SpoolDir = io.MultiReader(bytes.NewReader(content), failing{}), t.TempDir()
	if _, err := OpenFiles(t.Context(), cfg); !errors.Is(err, errFailing) {
		t.Errorf("standard input failed: %v", err)
	}
}

var errFailing = errors.New("failing on purpose")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFailing }

// A file that changes between being named and being imported, or meanwhile, is not
// the log that it is booked under.
func TestChangedFiles(t *testing.T) {
	content := bytes.Repeat([]byte("{\"item\":\"a\"}\n"), 100_000)
	path := write(t, "f", content)
	grow := func() {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString("{\"item\":\"b\"}\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []string{"before", "meanwhile"} {
		f, err := OpenFiles(t.Context(), configOf(path))
		if err != nil {
			t.Fatal(err)
		}
		if when == "before" {
			grow()
		}
		once := false
		_, err = f.Run(t.Context(), RunConfig{Submit: func(_ context.Context, _ int, b windows.Batch) error {
			if !once {
				once = true
				grow()
			}
			b.Release()
			return nil
		}})
		if err == nil || !strings.Contains(err.Error(), "changed while it was imported") {
			t.Errorf("changed %s: %v", when, err)
		}
	}
}

// Where partitions don't keep up, reading waits; it ends when it is told to.
func TestReadingWaits(t *testing.T) {
	for name, content := range map[string][]byte{"plain": bytes.Repeat(plainEvents(), 20), "gzip": gzipped(bytes.Repeat(plainEvents(), 20))} {
		f, err := OpenFiles(t.Context(), configOf(write(t, "f.ndjson", content)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		events := 0
		full := make(chan struct{})
		go func() {
			<-full
			cancel(errFailing)
		}()
		_, err = f.Run(ctx, RunConfig{Submit: func(_ context.Context, _ int, b windows.Batch) error {
			if events += len(b.Events); events > (chunks-1)*chunkEvents/2 { // never released: soon there is no chunk left
				select {
				case <-full:
				default:
					close(full)
				}
			}
			return nil
		}})
		if !errors.Is(err, errFailing) || events > chunks*(chunkEvents+1) {
			t.Errorf("%s: %d events, then %v", name, events, err)
		}
		_, err = f.Run(t.Context(), RunConfig{Submit: func(context.Context, int, windows.Batch) error { return errFailing }})
		if !errors.Is(err, errFailing) {
			t.Errorf("%s: a partition fails: %v", name, err)
		}
		f.Close()
	}
}

func TestProgress(t *testing.T) {
	content := bytes.Repeat(plainEvents(), 10)
	packed := gzipped(content)
	long := fmt.Appendf(nil, `{"item":"a","title":"%s","url":"%s"}`, strings.Repeat("t", 2000), strings.Repeat("u", 2001))
	f, err := OpenFiles(t.Context(), configOf(write(t, "f", content), write(t, "g", packed), write(t, "h", long)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, from := range []int64{0, 15_000} {
		var last Progress
		calls := 0
		_, err = f.Run(t.Context(), RunConfig{
			From: from,
			Submit: func(_ context.Context, _ int, b windows.Batch) error {
				b.Release()
				return nil
			},
			Progress: func(p Progress) {
				if p.Read < last.Read || p.Records < last.Records || p.Read > p.Bytes {
					t.Errorf("%+v after %+v", p, last)
				}
				last = p
				calls++
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		total := int64(len(content) + len(packed) + len(long))
		if want := (Progress{Records: 20_001, Read: total, Bytes: total, Dropped: 1}); last != want || calls < 10 {
			t.Errorf("%d calls, the last: %+v, want %+v", calls, last, want)
		}
	}
}

// The real sets are read as encoding/csv reads them, none malformed.
func TestRealSets(t *testing.T) {
	for _, set := range windowstest.Sets(t) {
		t.Run(set.Name, func(t *testing.T) {
			want := set.Events(t)
			got := importFiles(t, configOf(set.Path), 0)
			if len(got) != len(want) {
				t.Fatalf("%d records, want %d", len(got), len(want))
			}
			for i, e := range got {
				w := want[i]
				switch {
				case e.Outcome == windows.Malformed:
					t.Fatalf("line %d: %s", i, e.Reason)
				case e.item != w.Item, e.typ != w.Type, e.Time != w.Time, e.HasUser != (w.User != ""), e.HasID != (w.ID != ""),
					e.ItemHash != hasher.Item([]byte(w.Item)),
					e.HasUser && e.User != hasher.User([]byte(w.User)),
					e.HasID && e.ID != hasher.ID([]byte(w.ID)):
					t.Fatalf("line %d: got %+v, want %+v", i, e, w)
				}
			}
		})
	}
}

// Real lines of JSON, which are no events of ours, are read alike by both passes.
func TestRealJSONIsReadAlike(t *testing.T) {
	dir := os.Getenv(windowstest.DataVariable)
	if dir == "" {
		t.Skip(windowstest.DataVariable, "is unset, and the repository has no lines of JSON of its own")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.ndjson.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no lines of JSON in", dir, err)
	}
	for _, path := range paths {
		packed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		// So that they have an item.
		for _, name := range []string{"repo", "path", "g", "page"} {
			data = bytes.ReplaceAll(data, []byte(`"`+name+`":`), []byte(`"item":`))
		}
		d := testDecoder("country")
		fast, all := 0, 0
		for line := range bytes.Lines(data) {
			if all == 10_000 {
				break // enough of a kind
			}
			if all++; agree(t, d, bytes.TrimSuffix(line, []byte{'\n'})) {
				fast++
			}
		}
		t.Logf("%s: the fast pass took %d of %d lines", filepath.Base(path), fast, all)
	}
}

// Once buffers are warm, no event costs an allocation, whichever way it is read.
func TestNoAllocations(t *testing.T) {
	table := rowsOf(t, "time,user,item,type,id,bot,country,device")
	csv := strings.Repeat("1767225600000,u1,i,view,e1,0,DE,\"mob,ile\"\"\"\n", 500)
	escaped := bytes.ReplaceAll(plainEvents(), []byte("video"), []byte(`vid\u00e9o`))
	for name, tt := range map[string]struct {
		f    format
		data []byte
	}{
		"fast":   {&lines{}, plainEvents()},
		"strict": {&lines{}, escaped},
		"csv":    {table, []byte(csv)},
		"array":  {&values{array: true}, append(append([]byte("["), bytes.ReplaceAll(plainEvents(), []byte("\n"), []byte(",\n"))...), "{\"item\":\"a\"}]"...)},
	} {
		d := testDecoder("country", "device")
		c := newPool(4).make()
		c.buf = append(bytes.Clone(tt.data), make([]byte, slack)...)
		n := testing.AllocsPerRun(10, func() {
			c.reset()
			c.end = len(tt.data)
			if n := decodeAll(d, c, tt.f); n < 500 {
				t.Fatalf("%s: %d records", name, n)
			}
		})
		if n > 0 {
			t.Errorf("%s: %v allocations in a chunk", name, n)
		}
	}
}
