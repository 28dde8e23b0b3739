package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"tidemark/sinks"
	"tidemark/sketches"
	"tidemark/windows"
)

// CH1: the connection is cut at each answer of the server in turn: the server has
// taken what came before, and the sink does not know it.
func TestCutAtEachAnswer(t *testing.T) {
	w := newWorld(t)
	p := newProxy(t, w.Addr[0])
	w.Addr = []string{p.addr()}
	s := w.sink(t)
	r, o := newRandom(1), newOracle()
	base := minuteAt(2026, 5, 31, 23, 50)
	failures := 0
	for n := 1; ; n++ {
		seals := []*sinks.Seal{r.seal(base, 4, 20), r.seal(base, 4, 20)}
		before := p.arm(n)
		err := s.Deliver(t.Context(), seals)
		if after := p.arm(0); after == before {
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range seals {
				o.add(s)
			}
			break // there are no more answers than that
		}
		if err != nil {
			failures++
			if errors.Is(err, sinks.ErrStopped) {
				t.Errorf("cut at answer %d: %v: must be tried again soon", n, err)
			}
			if err := s.Resume(t.Context(), sinks.Progress{}); err != nil {
				t.Fatal(err)
			}
			if err := s.Deliver(t.Context(), seals); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range seals {
			o.add(s)
		}
	}
	if failures < 5 { // one for each table at least
		t.Errorf("only %d deliveries failed", failures)
	}
	o.check(t, w)
	t.Logf("%d deliveries failed, and were done again", failures)
}

// A server that says nothing any more: the sink gives up when it is told to.
func TestSilentServer(t *testing.T) {
	w := newWorld(t)
	p := newProxy(t, w.Addr[0])
	w.Addr = []string{p.addr()}
	s := w.sink(t)
	r := newRandom(2)
	var seals []*sinks.Seal
	for range 20 {
		seals = append(seals, r.seal(minuteAt(2026, 1, 1, 0, 0), 10, 60))
	}
	p.silence(true)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	if err := s.Deliver(ctx, seals); err == nil {
		t.Error("delivered to a server that is silent")
	}
	p.silence(false)
	if err := w.sink(t).Deliver(t.Context(), seals); err != nil {
		t.Error(err)
	}
}

// CH3: a seal over 264 months.
func TestManyMonths(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	r, o := newRandom(3), newOracle()
	seal := &sinks.Seal{Identity: windows.Identity{E: 1, To: windows.Pair{F: windows.MaxMinute, S: 1000}}}
	for month := range 264 {
		seal.Partials = append(seal.Partials, r.partial(minuteAt(2001, 1+month, 1+month%28, month%24, 0)))
	}
	// Given up half-way, and begun again.
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	_ = s.Deliver(ctx, []*sinks.Seal{seal}) // on a fast machine it may be through
	for range 2 {
		if err := s.Deliver(t.Context(), []*sinks.Seal{seal}); err != nil {
			t.Fatal(err)
		}
	}
	o.add(seal)
	o.check(t, w)
	if n := one[uint64](t, w, "SELECT rows FROM {{.}}.seals FINAL"); n != one[uint64](t, w, "SELECT count() FROM {{.}}.item_minutes FINAL") {
		t.Errorf("the seal's row says %d rows", n)
	}
}

// CH4.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	view := windows.Series{Type: "view"}
	fine := func() *sinks.Seal {
		return &sinks.Seal{Identity: windows.Identity{E: 1, To: windows.Pair{F: 100, S: 1}}}
	}
	row := func(r windows.Row) []sinks.Partial {
		r.Item, r.Events = []byte("a"), 1
		p := &partial{minute: 7}
		p.add(view, r)
		return []sinks.Partial{p}
	}
	for want, change := range map[string]func(*sinks.Seal){
		"partition 65536": func(s *sinks.Seal) { s.Partition = 65536 },
		"partition -1":    func(s *sinks.Seal) { s.Partition = -1 },
		"floor":           func(s *sinks.Seal) { s.To.F = windows.MaxMinute + 1 },
		"minute":          func(s *sinks.Seal) { s.Partials = []sinks.Partial{&partial{minute: windows.MaxMinute}} },
		"time -1": func(s *sinks.Seal) {
			s.Items = []windows.ItemInfo{{Item: "a", Title: windows.Text{At: -1, Value: "x"}}}
		},
		"time 4291747200000": func(s *sinks.Seal) {
			s.Items = []windows.ItemInfo{{Item: "a", Image: windows.Text{At: windows.MaxTime, Value: "x"}}}
		},
		"no token": func(s *sinks.Seal) { s.Partials = row(windows.Row{Tokens: []uint32{1}}) },
		"register 0": func(s *sinks.Seal) {
			s.Partials = row(windows.Row{Registers: append(sketches.Registers{60}, make(sketches.Registers, sketches.RegisterCount-1)...)})
		},
		"16385 regist": func(s *sinks.Seal) {
			s.Partials = row(windows.Row{Registers: make(sketches.Registers, sketches.RegisterCount+1)})
		},
	} {
		bad := fine()
		change(bad)
		err := s.Deliver(t.Context(), []*sinks.Seal{bad})
		if !errors.Is(err, sinks.ErrStopped) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if n := one[uint64](t, w, "SELECT count() FROM {{.}}.seals"); n != 0 {
		t.Errorf("%d seals were taken", n)
	}
	// The ends of what fits.
	last := fine()
	last.Partition, last.E, last.To, last.R = 65535, 1<<64-1, windows.Pair{F: windows.MaxMinute, S: 1<<63 - 1}, 1<<63-1
	first, end := &partial{minute: 0}, &partial{minute: windows.MaxMinute - 1}
	for _, p := range []*partial{first, end} {
		p.add(view, windows.Row{Item: []byte("a"), Events: 1<<64 - 1, Reached: 1<<64 - 1})
		last.Partials = append(last.Partials, p)
	}
	last.Items = []windows.ItemInfo{{Item: "a", Title: windows.Text{At: windows.MaxTime - 1, Value: "last"}, URL: windows.Text{Value: "first"}}}
	o := newOracle()
	o.add(last)
	if err := s.Deliver(t.Context(), []*sinks.Seal{last}); err != nil {
		t.Fatal(err)
	}
	o.check(t, w)
}

// CH6: somebody has changed a table.
func TestChangedTable(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	r := newRandom(5)
	for _, c := range []struct{ change, back, want string }{
		{"ALTER TABLE {{.}}.item_viewers RENAME COLUMN viewers TO people", "ALTER TABLE {{.}}.item_viewers RENAME COLUMN people TO viewers", "column viewers of item_viewers is missing"},
		{"ALTER TABLE {{.}}.seals MODIFY COLUMN rows UInt32", "ALTER TABLE {{.}}.seals MODIFY COLUMN rows UInt64", "column rows of seals is UInt32, must be UInt64"},
		{"RENAME TABLE {{.}}.item_minutes TO {{.}}.gone", "RENAME TABLE {{.}}.gone TO {{.}}.item_minutes", "table item_minutes is missing"},
	} {
		w.exec(t, c.change)
		seals := []*sinks.Seal{r.seal(minuteAt(2026, 1, 1, 0, 0), 3, 60)}
		if err := s.Deliver(t.Context(), seals); !errors.Is(err, sinks.ErrStopped) {
			t.Errorf("%s: Deliver: %v", c.change, err)
		}
		if err := s.Resume(t.Context(), sinks.Progress{}); !errors.Is(err, sinks.ErrStopped) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Resume: %v, want %q", c.change, err, c.want)
		}
		w.exec(t, c.back)
		if err := s.Resume(t.Context(), sinks.Progress{}); err != nil {
			t.Error(err)
		}
		if err := s.Deliver(t.Context(), seals); err != nil {
			t.Errorf("%s: after it was mended: %v", c.change, err)
		}
	}
	w.exec(t, "ALTER TABLE {{.}}.item_minutes ADD COLUMN note String DEFAULT 'x' FIRST")
	if err := s.Resume(t.Context(), sinks.Progress{}); err != nil {
		t.Errorf("a column more: %v", err)
	}
	if err := s.Deliver(t.Context(), []*sinks.Seal{r.seal(minuteAt(2026, 1, 1, 0, 0), 3, 60)}); err != nil {
		t.Errorf("a column more: %v", err)
	}
}

// CH6: a second deployment, or another hash key, is refused.
func TestOtherDeployment(t *testing.T) {
	w := newWorld(t)
	w.sink(t)
	own := w.Deployment
	for _, c := range []struct {
		other Deployment
		want  string
	}{
		{Deployment{Key: 8}, "hash key 0000000000000008, journal"},
		{Deployment{Key: 7, Topic: "events", Consumer: "tidemark"}, `topic "events", group "tidemark"`},
	} {
		w.Deployment = c.other
		err := w.fresh(t).Resume(t.Context(), sinks.Progress{})
		if !errors.Is(err, sinks.ErrStopped) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "another deployment") {
			t.Errorf("%v, want %q in it", err, c.want)
		}
	}
	w.Deployment = own
	w.sink(t)
}

// Seals that were delivered and are gone are noticed.
func TestGoneSeals(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	r := newRandom(6)
	group := []*sinks.Seal{r.seal(minuteAt(2026, 1, 1, 0, 0), 3, 60), r.seal(minuteAt(2026, 1, 1, 0, 0), 3, 60)}
	if err := s.Deliver(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	delivered := []windows.Identity{group[0].Identity, group[1].Identity}
	if err := s.Resume(t.Context(), sinks.Progress{Delivered: delivered}); err != nil {
		t.Fatal(err)
	}
	w.exec(t, "TRUNCATE TABLE {{.}}.seals")
	err := s.Resume(t.Context(), sinks.Progress{Delivered: delivered})
	if !errors.Is(err, sinks.ErrStopped) || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("got %v", err)
	}
}

// A folder that was brought back from an older copy does not go on before what came
// after it is removed, as the error says; then numbers are those without it.
func TestOlderCopy(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	r, o := newRandom(6), newOracle()
	var have sinks.Progress
	newest := make(map[int]windows.Identity)
	for round := range 2 {
		for range 12 {
			seal := r.seal(minuteAt(2026, 1, 1, 0, 0), 3, 60+round)
			if round == 0 {
				o.add(seal)
				newest[seal.Partition] = seal.Identity
			}
			seal.Items = nil // they stay
			if err := s.Deliver(t.Context(), []*sinks.Seal{seal}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Resume(t.Context(), sinks.Progress{}); err != nil {
			t.Fatal(err)
		}
	}
	o.texts = nil
	for _, id := range newest {
		have.Sealed = append(have.Sealed, id)
	}
	err := s.Resume(t.Context(), have)
	if !errors.Is(err, sinks.ErrStopped) || !strings.Contains(err.Error(), "older copy") {
		t.Fatalf("got %v", err)
	}
	for line := range strings.Lines(err.Error()) {
		if strings.HasPrefix(line, "DELETE") {
			w.exec(t, strings.TrimSuffix(strings.TrimSpace(line), ";"))
		}
	}
	if err := s.Resume(t.Context(), have); err != nil {
		t.Errorf("after it was removed: %v", err)
	}
	o.check(t, w)
}

// Too many parts pass: they are not for somebody to mend.
func TestTooManyParts(t *testing.T) {
	w := newWorld(t)
	s := w.sink(t)
	w.exec(t, "SYSTEM STOP MERGES {{.}}.item_minutes",
		"ALTER TABLE {{.}}.item_minutes MODIFY SETTING parts_to_delay_insert = 3, parts_to_throw_insert = 4, max_delay_to_insert = 1")
	r, o := newRandom(7), newOracle()
	refused := 0
	for range 8 {
		seal := r.seal(minuteAt(2026, 1, 1, 0, 0), 3, 60)
		o.add(seal)
		err := s.Deliver(t.Context(), []*sinks.Seal{seal})
		if err == nil {
			continue
		}
		refused++
		if errors.Is(err, sinks.ErrStopped) || !strings.Contains(err.Error(), "252") {
			t.Errorf("got %v", err)
		}
		w.exec(t, "SYSTEM START MERGES {{.}}.item_minutes", "OPTIMIZE TABLE {{.}}.item_minutes FINAL")
		if err := s.Deliver(t.Context(), []*sinks.Seal{seal}); err != nil {
			t.Error(err)
		}
		w.exec(t, "SYSTEM STOP MERGES {{.}}.item_minutes")
	}
	if refused == 0 {
		t.Error("no delivery was refused")
	}
	o.check(t, w)
}

// A server that is away is tried again, and New does not need it.
func TestNoServer(t *testing.T) {
	w := &world{Options: Options{Addr: []string{"127.0.0.1:1"}, Database: "x"}}
	if err := w.fresh(t).Resume(t.Context(), sinks.Progress{}); err == nil || errors.Is(err, sinks.ErrStopped) {
		t.Errorf("got %v", err)
	}
}

// What ClickHouse says is sorted into what passes and what somebody must mend, and
// then it says what to do.
func TestExplain(t *testing.T) {
	for code, want := range map[int32]string{
		516: "--clickhouse.user", 497: "--clickhouse.migrate=print", 60: "table is missing",
		252: "", 241: "", 243: "", 999: "", // too many parts, memory, disk, anything else
	} {
		err := explain(fmt.Errorf("insert: %w", &ch.Exception{Code: code, Message: "said so"}))
		if errors.Is(err, sinks.ErrStopped) != (want != "") || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "said so") {
			t.Errorf("%d: %v, want %q in it", code, err, want)
		}
	}
	if err := explain(io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}
