package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"

	"tidemark/windows/windowstest"
)

// clickHouse is a real ClickHouse of a test's own, which it may kill.
type clickHouse struct {
	program, dir, address string
	driver.Conn
}

func newClickHouse(t *testing.T) *clickHouse {
	t.Helper()
	program := os.Getenv("TIDEMARK_TEST_SERVICES")
	if program == "" {
		t.Skip("no ClickHouse: TIDEMARK_TEST_SERVICES is not set; run `make test`, or this by `bin/services run clickhouse -- go test …`")
	}
	c := &clickHouse{program: program, dir: filepath.Join(t.TempDir(), "services")}
	// It ends with its standard input: whatever becomes of this process.
	cmd := exec.Command(program, "run", "--json", "--dir", c.dir, "clickhouse")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	var report struct{ Services []struct{ Address string } }
	if err := json.NewDecoder(out).Decode(&report); err != nil {
		t.Fatal(err)
	}
	c.address = report.Services[0].Address
	if c.Conn, err = ch.Open(&ch.Options{Addr: []string{c.address}, DialTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *clickHouse) do(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), c.program, command, "--dir", c.dir, "clickhouse").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	if command != "start" {
		return
	}
	// It answers over HTTP; its native port may have some connections left to reset.
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := c.Ping(t.Context())
		if err == nil {
			return
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("ClickHouse was started and does not answer: %v", err)
		}
	}
}

// inserting waits until an insert has begun, for a while. ClickHouse, as a library, at
// times does not survive that its client is killed: then none begins.
func (c *clickHouse) inserting(t *testing.T) bool {
	t.Helper()
	begun := func() (n uint64) {
		if c.QueryRow(t.Context(), "SELECT sum(value) FROM system.events WHERE event = 'InsertQuery'").Scan(&n) != nil {
			return 0
		}
		return n
	}
	before := begun()
	if before == 0 {
		return false
	}
	for range 1000 {
		if begun() > before {
			return true
		}
	}
	return false
}

func (c *clickHouse) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// minuteKey is a row of item_minutes_exact.
type minuteKey struct {
	Minute time.Time `ch:"minute"`
	Type   string    `ch:"type"`
	Item   string    `ch:"item"`
}

// recount counts events as item_minutes_exact should have them.
func recount(events []windowstest.Event) map[minuteKey]uint64 {
	counts := make(map[minuteKey]uint64)
	for _, e := range events {
		counts[minuteKey{time.UnixMilli(e.Time).UTC().Truncate(time.Minute), e.Type, e.Item}]++
	}
	return counts
}

// counts returns the rows that count items as such, before a time.
func (c *clickHouse) counts(t *testing.T, before time.Time) map[minuteKey]uint64 {
	t.Helper()
	var rows []struct {
		minuteKey
		Events uint64 `ch:"events"`
	}
	err := c.Select(t.Context(), &rows, "SELECT minute, type, item, events FROM tidemark.item_minutes_exact WHERE dimension = '' AND kind = 'item' AND minute < $1", before)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[minuteKey]uint64)
	for _, r := range rows {
		if _, twice := counts[r.minuteKey]; twice {
			t.Errorf("%+v: two rows", r.minuteKey)
		}
		counts[r.minuteKey] = r.Events
	}
	return counts
}

// sinkStatus is what /v1/status says of ClickHouse.
type sinkStatus struct {
	State, Reason string
	Waiting       int
	Delivered     uint64
}

func (s *server) sink(t *testing.T) sinkStatus {
	t.Helper()
	var status struct{ Sinks []sinkStatus }
	s.ask(t, "/v1/status", nil, &status)
	if len(status.Sinks) != 1 {
		t.Fatalf("sinks: %+v", status.Sinks)
	}
	return status.Sinks[0]
}

// sinkIs waits until ClickHouse is in a state.
func (s *server) sinkIs(t *testing.T, state string) sinkStatus {
	t.Helper()
	for {
		if now := s.sink(t); now.State == state {
			return now
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// delivered waits until nothing waits.
func (s *server) delivered(t *testing.T) {
	t.Helper()
	for s.sink(t).Waiting > 0 {
		time.Sleep(20 * time.Millisecond)
	}
}

// counts waits until so many events are counted.
func (s *server) counts(t *testing.T, n uint64) {
	t.Helper()
	var a answer
	for a.Counts["*"].Value < n {
		s.ask(t, "/v1/counts", url.Values{"type": {"*"}, "last": {"all"}}, &a)
	}
}

// stream sends events, and what got no answer again, in the background.
type stream struct {
	base  atomic.Pointer[string]
	at    atomic.Int64
	limit atomic.Int64 // it waits there
	ended chan error
}

func newStream(base string, events []windowstest.Event) *stream {
	s := &stream{ended: make(chan error, 1)}
	s.base.Store(&base)
	go func() {
		const batch = 50
		for from := 0; from < len(events); {
			if from >= int(s.limit.Load()) {
				time.Sleep(time.Millisecond)
				continue
			}
			part := events[from:min(from+batch, len(events))]
			status, body, err := send(*s.base.Load(), part)
			switch {
			case err != nil || status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
			case status != http.StatusOK:
				s.ended <- fmt.Errorf("%d %s", status, body)
				return
			default:
				from += len(part)
				s.at.Store(int64(from))
			}
			time.Sleep(5 * time.Millisecond)
		}
		s.ended <- nil
	}()
	return s
}

// until waits until so many events were sent.
func (s *stream) until(t *testing.T, n int) {
	t.Helper()
	for s.at.Load() < int64(n) {
		select {
		case err := <-s.ended:
			s.ended <- err
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Millisecond):
		}
	}
}

// ClickHouse is killed in the middle of inserts and away, Tidemark is killed, at any
// time and between the steps of a seal and of a delivery, and both are: at the end
// every row is what a recount of the events says, and viewers are those of the API.
func TestClickHouseHasEveryRowOnce(t *testing.T) {
	rounds := 6
	if soak() {
		rounds = 100
	}
	c, data := newClickHouse(t), newFolder(t)
	flags := []string{"--lateness=1s", "--idle=200ms", "--clickhouse.addr=" + c.address, "--window-memory=4MiB"}
	const each = 4000
	// Ten minutes of event time a batch or so, and all of it in the past.
	events := windowstest.Shape{
		Seed: 5, Events: each * (rounds + 1), Items: 200, Users: 3000, Start: time.Now().Add(-20 * time.Hour).Truncate(time.Minute), Span: 18 * time.Hour,
		NoUser: 0.1, IDs: true, Types: []string{"view", "like"}, Late: 0.05, LateBy: time.Hour,
	}.Stream()
	for i := range events {
		events[i].ID = fmt.Sprint(i)
	}
	p := data.start(t, flags...)
	s := newStream(p.url, events)
	r := rand.New(rand.NewPCG(7, 2))
	inMiddle, deaths := 0, 0
	restart := func(crash string) {
		start := call{args: data.args(append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)}
		if crash != "" {
			start.crash, start.env = true, []string{"TIDEMARK_CRASH=" + crash}
		}
		p = data.startAs(t, start)
		s.base.Store(&p.url)
	}
	for round := range rounds {
		s.limit.Store(int64(each*round + each*3/4))
		s.until(t, each*round+r.IntN(each/2))
		if round%3 != 1 { // ClickHouse
			if c.inserting(t) {
				inMiddle++
			}
			c.do(t, "kill")
		}
		if round%3 != 0 { // Tidemark
			if round%2 == 0 {
				p.end(t, syscall.SIGKILL)
			} else {
				p.end(t, syscall.SIGKILL)
				restart([]string{"apply.committed:5", "done.begin:1", "done.committed:1"}[round/2%3])
				if round%3 == 2 {
					c.do(t, "start")
				}
				s.limit.Store(int64(each * (round + 1))) // something to seal and deliver
				<-p.gone                                 // by itself
			}
			deaths++
			restart("")
		}
		if round%3 == 0 {
			// Counting and answering go on meanwhile.
			before, waiting := s.at.Load(), p.sink(t).Waiting
			s.limit.Store(before + each/4)
			s.until(t, int(before)+each/4)
			p.counts(t, uint64(before))
			now := p.sink(t)
			for begin := time.Now(); now.State != "retrying" && time.Since(begin) < 30*time.Second; now = p.sink(t) {
				time.Sleep(20 * time.Millisecond) // what is under way has to fail first
			}
			if now.State != "retrying" || now.Waiting <= waiting {
				t.Errorf("ClickHouse is away: %+v, %d waited before", now, waiting)
			}
			time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
		}
		c.do(t, "start")
	}
	s.limit.Store(int64(len(events)))
	s.until(t, len(events))
	if err := <-s.ended; err != nil {
		t.Fatal(err)
	}
	settled(t, p.server, len(events))
	c.do(t, "start") // unless it runs and answers: see inserting
	// An event of now: what lies before it is sealed.
	last := time.Now()
	if status, body, err := send(p.url, []windowstest.Event{{Item: "last", Type: "view", Time: last.UnixMilli(), ID: "last"}}); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
	last = last.Truncate(time.Minute)
	want := recount(events)
	for {
		p.delivered(t)
		var n uint64
		if err := c.QueryRow(t.Context(), "SELECT sum(events) FROM tidemark.item_minutes_exact WHERE dimension = '' AND minute < $1", last).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n >= uint64(len(events)) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if diff := cmp.Diff(want, c.counts(t, last)); diff != "" {
		t.Errorf("item_minutes_exact (-want +got):\n%s", diff)
	}
	checkViewers(t, c, p.server, events, r)
	t.Logf("ClickHouse was killed %d times in the middle of an insert, Tidemark %d times", inMiddle, deaths)
}

// checkViewers asks for viewers of items over ranges by SQL and by the API.
func checkViewers(t *testing.T, c *clickHouse, s *server, events []windowstest.Event, r *rand.Rand) {
	t.Helper()
	for range 10 {
		e := events[r.IntN(len(events))]
		from := time.UnixMilli(e.Time).UTC().Add(-time.Duration(r.IntN(300)) * time.Minute).Truncate(time.Minute)
		to := from.Add(time.Duration(1+r.IntN(900)) * time.Minute)
		var a answer
		s.ask(t, "/v1/viewers", url.Values{"item": {e.Item}, "type": {e.Type}, "from": {from.Format(time.RFC3339)}, "to": {to.Format(time.RFC3339)}}, &a)
		var value, low, high uint64
		err := c.QueryRow(t.Context(), `
			WITH (SELECT sum(reached) FROM tidemark.item_minutes FINAL WHERE type = {type:String} AND dimension = '' AND kind = 'item' AND item = {item:String}
			      AND minute >= {from:DateTime('UTC')} AND minute < {to:DateTime('UTC')}) AS reached
			SELECT n.1, n.2, n.3 FROM (SELECT tidemark_number(tidemark_union(viewers), reached) AS n FROM tidemark.item_viewers
			WHERE type = {type:String} AND dimension = '' AND kind = 'item' AND item = {item:String}
			  AND tidemark_covers(level, start, {from:DateTime('UTC')}, {to:DateTime('UTC')}))`,
			ch.Named("type", e.Type), ch.Named("item", e.Item), ch.Named("from", from.Format(time.DateTime)), ch.Named("to", to.Format(time.DateTime))).Scan(&value, &low, &high)
		if err != nil {
			t.Fatal(err)
		}
		if got := (number{value, low, high, a.Viewers.Method}); got != *a.Viewers {
			t.Errorf("viewers of %q, %s, from %s to %s: SQL says %+v, the API %+v", e.Item, e.Type, from, to, got, *a.Viewers)
		}
	}
}

// Somebody changes a table, drops one, or brings another deployment's key: the sink
// stops and says so, everything else goes on, and so does the sink once it is mended.
func TestClickHouseStops(t *testing.T) {
	c, data := newClickHouse(t), newFolder(t)
	at := "--clickhouse.addr=" + c.address
	history := windowstest.Shape{Seed: 3, Events: 3000, Items: 50, Users: 300, Start: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Span: 3 * time.Hour, Types: []string{"view"}}.Stream()
	file := writeEvents(t, "history.csv", history)
	data.replay(t, file, at)
	want := recount(history)
	forever := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	if diff := cmp.Diff(want, c.counts(t, forever)); diff != "" {
		t.Errorf("after an import (-want +got):\n%s", diff)
	}

	metric := func(s *server, want string) {
		t.Helper()
		if _, body := s.get(t, "/metrics"); !strings.Contains(body, `tidemark_sink_stopped{sink="clickhouse"} `+want+"\n") {
			t.Errorf("tidemark_sink_stopped is not %s", want)
		}
	}
	c.exec(t, "ALTER TABLE tidemark.item_viewers RENAME COLUMN viewers TO people")
	p := data.start(t, at)
	if got := p.sinkIs(t, "stopped"); !strings.Contains(got.Reason, "column viewers of item_viewers is missing") {
		t.Errorf("changed: %+v", got)
	}
	metric(p.server, "1")
	if status, body, err := send(p.url, []windowstest.Event{{Item: "a", Type: "view", User: "u", ID: "1"}}); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
	settled(t, p.server, len(history)+1)
	c.exec(t, "ALTER TABLE tidemark.item_viewers RENAME COLUMN people TO viewers")
	p.sinkIs(t, "working")
	metric(p.server, "0")
	p.end(t, syscall.SIGTERM)

	// Without the address the folder goes on to keep what ClickHouse will want.
	later := windowstest.Shape{Seed: 4, Events: 500, Items: 50, Users: 300, Start: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Span: time.Hour, Types: []string{"view"}}.Stream()
	data.replay(t, writeEvents(t, "later.csv", later))
	p = data.start(t)
	if got := p.sink(t); got.State != "off" || got.Waiting == 0 || !strings.Contains(p.log.String(), "--clickhouse.addr=none") {
		t.Errorf("without an address: %+v\n%s", got, p.log)
	}
	p.end(t, syscall.SIGTERM)
	p = data.start(t, at)
	p.delivered(t)
	maps.Copy(want, recount(later))
	if diff := cmp.Diff(want, c.counts(t, time.Now().Add(-time.Hour))); diff != "" {
		t.Errorf("after it waited (-want +got):\n%s", diff)
	}
	p.end(t, syscall.SIGTERM)

	// The same history again in a new folder: there are two of it, under two E.
	again := newFolder(t)
	again.replay(t, file, at)
	for k, n := range recount(history) {
		want[k] = 2 * n
	}
	if diff := cmp.Diff(want, c.counts(t, time.Now().Add(-time.Hour))); diff != "" {
		t.Errorf("counted twice (-want +got):\n%s", diff)
	}

	// Another key is another deployment.
	other := newFolder(t)
	if err := os.WriteFile(other.key, bytes.Repeat([]byte("17"), 16), 0o600); err != nil {
		t.Fatal(err)
	}
	r := call{args: other.args("replay", file, at)}.run(t)
	if r.status != 1 || !strings.Contains(r.stderr, "belongs to another deployment") || !strings.Contains(r.stderr, "everything is imported") {
		t.Errorf("another key: exit status %d\n%s", r.status, r.stderr)
	}

	// What was delivered is gone.
	c.exec(t, "TRUNCATE TABLE tidemark.seals")
	p = data.start(t, at)
	if got := p.sinkIs(t, "stopped"); !strings.Contains(got.Reason, "is gone") {
		t.Errorf("dropped: %+v", got)
	}
	p.end(t, syscall.SIGTERM)
	p = data.start(t, "--clickhouse.addr=none")
	var status struct{ Sinks []sinkStatus }
	if p.ask(t, "/v1/status", nil, &status); len(status.Sinks) != 0 {
		t.Errorf("not wanted: %+v", status.Sinks)
	}
	p.end(t, syscall.SIGTERM)
	p = data.start(t, at)
	p.sinkIs(t, "working")
}

// Commits of thirteen years in one import: months are many, and rows exact.
func TestClickHouseManyYears(t *testing.T) {
	c, data := newClickHouse(t), newFolder(t)
	path := filepath.Join("testdata", "git-prometheus.events.csv.gz")
	events, err := windowstest.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	types := make(map[string]bool)
	for _, e := range events {
		types[e.Type] = true
	}
	data.replay(t, path, "--clickhouse.addr="+c.address, "--view-types="+strings.Join(slices.Sorted(maps.Keys(types)), ","))
	if diff := cmp.Diff(recount(windowstest.WithoutDuplicates(events)), c.counts(t, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))); diff != "" {
		t.Errorf("item_minutes_exact (-want +got):\n%s", diff)
	}
}
