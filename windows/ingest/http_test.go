package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"tidemark/windows/journal"
)

// appended is a journal that keeps what it gets, or fails.
type appended struct {
	mu      sync.Mutex
	groups  int
	records []journal.Record
	err     error
}

func (a *appended) Append(_ context.Context, records []journal.Record) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	a.groups++
	for _, r := range records {
		r.Payload = bytes.Clone(r.Payload)
		a.records = append(a.records, r)
	}
	return nil
}

func newAccepter(j Appender, dimensions ...string) *Accepter {
	return NewAccepter(AccepterConfig{Journal: j, Partitions: 4, Hasher: hasher, Type: "view", Dimensions: dimensions})
}

func body(form Form, content []byte) Body {
	return Body{Reader: bytes.NewReader(content), Size: int64(len(content)), Form: form}
}

func TestBodies(t *testing.T) {
	const ok = `{"item":"a"}`
	tests := []struct {
		name, content string
		forms         []Form
		accepted      int
		errors        string // LINE: REASON
	}{
		{"an object", ok, []Form{AnyForm, JSON, NDJSON}, 1, ""},
		{"an object and a line break", ok + "\n", []Form{AnyForm, JSON, NDJSON}, 1, ""},
		{"an object over lines", "{\n  \"item\": \"a\",\n  \"user\": \"u\"\n}\n", []Form{AnyForm, JSON}, 1, ""},
		{"an object that begins in the first line", "{\"item\":\n\"a\"}\n", []Form{AnyForm, JSON}, 1, ""},
		{"an array", "[" + ok + ",\n" + ok + "]", []Form{AnyForm, JSON}, 2, ""},
		{"an array with a fault", "[\n" + ok + ",\n\n{\"item\":7.5},\n" + ok + "\n]", []Form{AnyForm, JSON}, 2, "4: item: not a string or an integer\n"},
		{"an empty array", "[]", []Form{AnyForm, JSON}, 0, ""},
		{"an array that is not closed", "[" + ok + ",\n", []Form{AnyForm, JSON}, 1, "2: file: cut short; its JSON array is not closed\n"},
		{"lines", ok + "\n" + ok + "\r\n" + ok, []Form{AnyForm, JSON, NDJSON}, 3, ""},
		{"lines with faults", ok + "\n\n{}\n" + ok + "\nx\n", []Form{AnyForm, NDJSON}, 2, "3: item: missing or empty\n5: record: not a JSON object\n"},
		{"lines behind a byte order mark", "\ufeff" + ok + "\n{}", []Form{AnyForm, NDJSON}, 1, "2: item: missing or empty\n"},
		{"a line that is too long", ok + "\n{\"item\":\"a\",\"x\":\"" + strings.Repeat("x", MaxRecord) + "\"}\n" + ok + "\n{}", []Form{AnyForm, NDJSON}, 2, "2: record: longer than 1 MiB\n4: item: missing or empty\n"},
		{"CSV", "item,user\na,u\n\nb,\n", []Form{AnyForm, CSV}, 2, ""},
		{"CSV with faults", "user,item\r\n\r\nu,\r\nu,\"a\r\nb\"\r\nu,a,b\r\n", []Form{AnyForm, CSV}, 1, "3: item: missing or empty\n6: record: not as many columns as the header\n"},
		{"CSV without items", "user,thing\nu,a\n", []Form{CSV}, 0, "1: no column named item in the first line\n"},
		{"neither", "user,thing\nu,a\n", []Form{AnyForm}, 0, "1: neither JSON nor CSV with a column named item\n"},
		{"nothing", "", []Form{AnyForm, JSON, NDJSON, CSV}, 0, ""},
		{"white space", " \n\n", []Form{AnyForm, JSON, NDJSON, CSV}, 0, ""},
		{"form says otherwise", ok, []Form{CSV}, 0, "1: no column named item in the first line\n"},
		{"UTF-16", "\xff\xfe{\x00", []Form{AnyForm}, 0, "1: neither JSON nor CSV with a column named item\n"},
	}
	j := &appended{}
	a := newAccepter(j)
	for _, tt := range tests {
		for _, form := range tt.forms {
			for _, pack := range []func([]byte) []byte{func(b []byte) []byte { return b }, gzipped, zstandard} {
				*j = appended{}
				got, err := a.Accept(t.Context(), body(form, pack([]byte(tt.content))))
				if err != nil {
					t.Errorf("%s: %v", tt.name, err)
					continue
				}
				var errs strings.Builder
				for _, e := range got.Errors {
					fmt.Fprintf(&errs, "%d: %s\n", e.Line, e.Reason)
				}
				if got.Accepted != tt.accepted || got.Rejected != strings.Count(tt.errors, "\n") || errs.String() != tt.errors {
					t.Errorf("%s as form %d: %+v, want %d accepted and %q", tt.name, form, got, tt.accepted, tt.errors)
				}
				if want := min(1, tt.accepted); j.groups != want {
					t.Errorf("%s: %d groups in the journal, want %d", tt.name, j.groups, want)
				}
			}
		}
	}
}

// What is accepted is read again as it was sent, but for who it was.
func TestAcceptedEventsComeBack(t *testing.T) {
	j := openJournal(t, 4)
	a := newAccepter(j, "country", "device")
	lines := []string{
		`{"item":"a","user":"secret-user","id":"secret-id","owner":"secret-owner","ip":"secret-ip","user_agent":"secret-agent","referrer":"secret-referrer","time":5000,"bot":true,"watched_ms":1.5e3,"title":"T\n","url":"U","country":"DE","else":"secret-else"}`,
		`{"item":"b","type":"like"}`,
		`{"item":"c","id":"i","user":7}`,
		`{"secret-name":1}`,
	}
	got, err := a.Accept(t.Context(), body(AnyForm, []byte(strings.Join(lines, "\n"))))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Receipt{Accepted: 3, Rejected: 1, Errors: []Rejection{{4, reasonItemMissing}}}); !cmp.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	r, err := j.NewReader(make([]int64, 4))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var batch journal.Batch
	if err := r.Next(t.Context(), &batch); err != nil {
		t.Fatal(err)
	}
	var s stored
	for _, rec := range batch.Records {
		if bytes.Contains(rec.Payload, []byte("secret")) {
			t.Errorf("%q", rec.Payload)
		}
		if reason := s.parse(rec.Payload); reason != "" {
			t.Error(reason)
		}
		if string(s.item) == "a" && (!s.hasOwner || s.owner != hasher.User([]byte("secret-owner")) || !s.bot || s.watched != 1500) {
			t.Errorf("%+v", s)
		}
	}
	var want []event
	for _, e := range importFiles(t, configOf(write(t, "events.ndjson", []byte(strings.Join(lines, "\n")))), 0) {
		if e.Time == stamp {
			e.Time = 0 // the record's own
		}
		e.Offset, e.Stamp = 0, 0
		want = append(want, e)
	}
	events := pumped(t, j, nil, "country", "device")
	for i := range events {
		e := &events[i]
		if e.Time == e.Stamp {
			e.Time = 0
		}
		if !e.HasUser && !e.HasID {
			e.partition = want[1].partition // any
			if e.Reason != "" {
				e.partition = want[3].partition
			}
		}
		e.Offset, e.Stamp, e.Hash = 0, 0, 0 // those of the journal
	}
	byItem := cmpopts.SortSlices(func(a, b event) bool { return a.item < b.item })
	if d := cmp.Diff(want, events, byItem, cmp.AllowUnexported(event{})); d != "" {
		t.Error(d)
	}
}

// endless sends until it is stopped.
type endless struct {
	block []byte
	sent  int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.block)
	e.sent += int64(n)
	return n, nil
}

func TestLimitsOfABody(t *testing.T) {
	j := &appended{}
	a := newAccepter(j)
	refused := func(what string, b Body, want error) {
		t.Helper()
		got, err := a.Accept(t.Context(), b)
		if !errors.Is(err, want) || got.Accepted != 0 {
			t.Errorf("%s: %+v, %v; want %v", what, got, err, want)
		}
		if a.held.Load() != 0 {
			t.Errorf("%s: %d bytes are still held", what, a.held.Load())
		}
	}
	refused("announced as too large", Body{Reader: iotest.ErrReader(io.ErrClosedPipe), Size: MaxBody + 1}, ErrLimit)
	e := &endless{block: []byte("{\"item\":\"a\"}\n")}
	refused("endless", Body{Reader: e, Size: -1}, ErrLimit)
	if e.sent > 2*MaxBody {
		t.Errorf("%d bytes of it were read", e.sent)
	}
	var bomb bytes.Buffer
	z, err := zstd.NewWriter(&bomb, zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	line := append(bytes.Repeat([]byte("x"), 1<<20-1), '\n')
	for range MaxUnpacked>>20 + 1 {
		z.Write(line)
	}
	z.Close()
	refused("a bomb", body(NDJSON, bomb.Bytes()), errUnpacked)
	refused("blank lines", body(AnyForm, gzipped(bytes.Repeat([]byte(" \n"), MaxUnpacked/16))), errBlanks)
	refused("too many events", body(NDJSON, bytes.Repeat([]byte("{}\n"), MaxBodyEvents+1)), errEvents)
	refused("a body that breaks off", Body{Reader: io.MultiReader(strings.NewReader(`{"item":"a"}`), iotest.ErrReader(io.ErrUnexpectedEOF)), Size: 100}, ErrUnreadable)
	if j.groups != 0 {
		t.Errorf("%d groups were taken", j.groups)
	}
	got, err := a.Accept(t.Context(), body(NDJSON, bytes.Repeat([]byte("{\"item\":\"a\"}\n{}\n"), MaxBodyEvents/2)))
	if err != nil || got.Accepted != MaxBodyEvents/2 || got.Rejected != MaxBodyEvents/2 || len(got.Errors) != MaxRejections || len(j.records) != MaxBodyEvents {
		t.Errorf("%d accepted, %d rejected, %d errors, %d records, %v", got.Accepted, got.Rejected, len(got.Errors), len(j.records), err)
	}

	a.held.Store(acceptBytes)
	refusedBusy, err := a.Accept(t.Context(), body(AnyForm, []byte(`{"item":"a"}`)))
	if !errors.Is(err, ErrBusy) || refusedBusy.Accepted != 0 || a.held.Load() != acceptBytes {
		t.Errorf("beside others that hold all: %v", err)
	}
	a.held.Store(0)
	for _, tt := range []struct{ err, want error }{
		{journal.ErrFull, ErrBusy}, {journal.ErrTooLarge, ErrLimit}, {journal.ErrUnavailable, journal.ErrUnavailable}, {context.Canceled, context.Canceled},
	} {
		j.err = fmt.Errorf("append: %w", tt.err)
		refused(tt.err.Error(), body(AnyForm, []byte(`{"item":"a"}`)), tt.want)
	}
}

// Many at once, with what others left in what is used again.
func TestBodiesAtOnce(t *testing.T) {
	j := openJournal(t, 4)
	a := newAccepter(j)
	var senders sync.WaitGroup
	for s := range 16 {
		senders.Go(func() {
			for n := range 20 {
				var b bytes.Buffer
				for i := range 1 + s*n {
					fmt.Fprintf(&b, "{\"item\":\"%d\",\"user\":\"%d-%d\\n\",\"time\":%d}\n", s, n, i, i)
				}
				content := b.Bytes()
				if n%3 == 1 {
					content = gzipped(content)
				}
				if got, err := a.Accept(t.Context(), body(AnyForm, content)); err != nil || got.Accepted != 1+s*n {
					t.Errorf("%+v, %v; want %d", got, err, 1+s*n)
				}
			}
		})
	}
	senders.Wait()
	have := make(map[string]int)
	for _, e := range pumped(t, j, nil) {
		if !e.HasUser || e.partition != int(e.User%4) {
			t.Fatalf("%+v", e)
		}
		have[e.item]++
	}
	for s := range 16 {
		want := 0
		for n := range 20 {
			want += 1 + s*n
		}
		if got := have[fmt.Sprint(s)]; got != want {
			t.Errorf("%d events of sender %d, want %d", got, s, want)
		}
	}
	if a.held.Load() != 0 {
		t.Errorf("%d bytes are still held", a.held.Load())
	}
}
