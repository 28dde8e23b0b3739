package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tidemark/sinks"
	"tidemark/sinks/sinkstest"
	"tidemark/windows"
)

// sink is a sink that fails as it is told and writes down its calls.
type sink struct {
	calls    []string
	failures []error // of the next calls, nil: it succeeds
	times    []time.Time
}

func (*sink) Name() string { return "fake" }

func (s *sink) next(call string) error {
	s.calls, s.times = append(s.calls, call), append(s.times, time.Now())
	if len(s.failures) == 0 {
		return nil
	}
	err := s.failures[0]
	s.failures = s.failures[1:]
	return err
}

func (s *sink) Resume(_ context.Context, have sinks.Progress) error {
	var b strings.Builder
	b.WriteString("resume")
	for _, id := range have.Delivered {
		fmt.Fprintf(&b, " %d/%d", id.Partition, id.To.S)
	}
	return s.next(b.String())
}

func (s *sink) Deliver(_ context.Context, seals []*sinks.Seal) error {
	var b strings.Builder
	b.WriteString("deliver")
	for _, seal := range seals {
		fmt.Fprintf(&b, " %d/%d", seal.Partition, seal.To.S)
	}
	return s.next(b.String())
}

func seal(partition int, s int64, bytes int) *sinks.Seal {
	return &sinks.Seal{Identity: windows.Identity{Partition: partition, To: windows.Pair{S: s}}, Bytes: bytes}
}

// pass lets time pass in the bubble, and waits for what is due then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// logged is what was logged.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type world struct {
	*sinks.Deliverer
	sink   *sink
	outbox *sinkstest.Outbox
	log    *logged
	reg    *prometheus.Registry
	stop   func()
}

// run starts a deliverer, in a bubble of its own time.
func run(t *testing.T, s *sink, seals ...*sinks.Seal) *world {
	w := &world{sink: s, outbox: sinkstest.NewOutbox(), log: new(logged), reg: prometheus.NewRegistry()}
	w.outbox.Add(seals...)
	w.Deliverer = sinks.NewDeliverer(sinks.Config{
		Sink: s, Outbox: w.outbox, Metrics: sinks.NewMetrics(w.reg),
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		})),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	return w
}

func (w *world) want(t *testing.T, calls ...string) {
	t.Helper()
	if diff := cmp.Diff(calls, w.sink.calls); diff != "" {
		t.Errorf("calls of the sink (-want +got):\n%s", diff)
	}
}

// D1: whole batches in order, and at most one a second.
func TestInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const half = 32 << 20
		w := run(t, &sink{}, seal(0, 1, half), seal(1, 1, half), seal(0, 2, half), seal(1, 2, half), seal(0, 3, 3*half))
		defer w.stop()
		pass(10 * time.Second)
		w.want(t, "resume", "deliver 0/1 1/1", "deliver 0/2 1/2", "deliver 0/3")
		for i, at := range w.sink.times[2:] {
			if gap := at.Sub(w.sink.times[i+1]); gap < time.Second {
				t.Errorf("delivery %d came %v after the one before", i+1, gap)
			}
		}
		w.outbox.Add(seal(0, 4, 1))
		pass(time.Second)
		w.want(t, "resume", "deliver 0/1 1/1", "deliver 0/2 1/2", "deliver 0/3", "deliver 0/4")
		if n := w.Status().Seals; n != 6 {
			t.Errorf("%d seals delivered, want 6", n)
		}
	})
}

// D2, D3: after a failure the same seals again, also when more have come, and
// nothing is marked before they are there.
func TestSameAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := errors.New("connection cut")
		w := run(t, &sink{failures: []error{nil, cut, nil, cut, cut}}, seal(0, 1, 1))
		defer w.stop()
		synctest.Wait()
		w.outbox.Add(seal(0, 2, 1))
		for w.outbox.Waiting("fake") == 2 {
			if w.Status().State == sinks.StateWorking {
				t.Fatalf("state %q with a failure", w.Status().State)
			}
			pass(100 * time.Millisecond)
		}
		pass(2 * time.Second)
		w.want(t, "resume", "deliver 0/1", "resume", "deliver 0/1", "resume", "resume", "deliver 0/1", "deliver 0/2")
		if s := w.Status(); s.State != sinks.StateWorking || s.Reason != "" || s.Seals != 2 {
			t.Errorf("status %+v", s)
		}
		want := `level=WARN msg="delivery failed, trying again" sink=fake reason="connection cut"` + "\n"
		if got := w.log.String(); strings.Count(got, want) != 1 || !strings.Contains(got, `msg="sink goes on"`) {
			t.Errorf("log:\n%swant one line for three failures of one reason", got)
		}
	})
}

// D2: a mark that was lost means another delivery; Resume is told what is marked.
func TestMarksLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		w := run(t, s, seal(0, 1, 1), seal(0, 2, 1))
		pass(5 * time.Second)
		w.stop()
		outbox := w.outbox
		w = &world{Deliverer: sinks.NewDeliverer(w.Config), sink: s, outbox: outbox}
		outbox.Add(seal(0, 3, 1))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		pass(5 * time.Second)
		outbox.Forget("fake")
		pass(5 * time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.want(t, "resume", "deliver 0/1 0/2", "resume 0/2", "deliver 0/3", "deliver 0/1 0/2 0/3")
	})
}

// D4: a stopped sink says why, everywhere, once, and goes on when it is mended.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := fmt.Errorf("%w: column gone", sinks.ErrStopped)
		w := run(t, &sink{failures: slices.Repeat([]error{stop}, 20)}, seal(0, 1, 1))
		defer w.stop()
		started := time.Now()
		pass(time.Minute)
		if s := w.Status(); s.State != sinks.StateStopped || !strings.Contains(s.Reason, "column gone") || s.Since.Sub(started) > time.Second {
			t.Errorf("status %+v", s)
		}
		gauge := func() string {
			return `
# HELP tidemark_sink_stopped 1 while the sink cannot go on before somebody mends it: the log and /v1/status say what to do.
# TYPE tidemark_sink_stopped gauge
tidemark_sink_stopped{sink="fake"} `
		}
		if err := testutil.GatherAndCompare(w.reg, strings.NewReader(gauge()+"1\n"), "tidemark_sink_stopped"); err != nil {
			t.Error(err)
		}
		if n := strings.Count(w.log.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors logged, want one:\n%s", n, w.log)
		}
		pass(5 * time.Minute)
		if s := w.Status(); s.State != sinks.StateWorking || w.outbox.Waiting("fake") != 0 {
			t.Errorf("status %+v, %d waiting", s, w.outbox.Waiting("fake"))
		}
		if err := testutil.GatherAndCompare(w.reg, strings.NewReader(gauge()+"0\n"), "tidemark_sink_stopped"); err != nil {
			t.Error(err)
		}
	})
}

// What is wrong with a sink shows before there is anything to deliver.
func TestResumeWithoutSeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, &sink{failures: []error{sinks.ErrStopped}})
		defer w.stop()
		synctest.Wait()
		if s := w.Status(); s.State != sinks.StateStopped {
			t.Errorf("status %+v", s)
		}
		pass(time.Minute)
		w.want(t, "resume", "resume")
	})
}

// brokenOutbox fails at one of its methods.
type brokenOutbox struct {
	*sinkstest.Outbox
	method string
}

var errDisk = errors.New("disk full")

func (o brokenOutbox) fail(method string) error {
	if o.method == method {
		return errDisk
	}
	return nil
}

func (o brokenOutbox) Wait(ctx context.Context, sink string) error {
	return errors.Join(o.fail("wait"), o.Outbox.Wait(ctx, sink))
}

func (o brokenOutbox) Oldest(ctx context.Context, sink string, bytes int) ([]*sinks.Seal, error) {
	seals, err := o.Outbox.Oldest(ctx, sink, bytes)
	return seals, errors.Join(o.fail("oldest"), err)
}

func (o brokenOutbox) Done(ctx context.Context, sink string, seals []*sinks.Seal) error {
	return errors.Join(o.fail("done"), o.Outbox.Done(ctx, sink, seals))
}

func (o brokenOutbox) Progress(ctx context.Context, sink string) (sinks.Progress, error) {
	have, err := o.Outbox.Progress(ctx, sink)
	return have, errors.Join(o.fail("progress"), err)
}

func TestOutboxFails(t *testing.T) {
	for _, method := range []string{"wait", "oldest", "done", "progress"} {
		synctest.Test(t, func(t *testing.T) {
			outbox := brokenOutbox{sinkstest.NewOutbox(), method}
			outbox.Add(seal(0, 1, 1))
			d := sinks.NewDeliverer(sinks.Config{Sink: &sink{}, Outbox: outbox, Logger: slog.New(slog.DiscardHandler)})
			if err := d.Run(t.Context()); !errors.Is(err, errDisk) {
				t.Errorf("%s: Run returned %v", method, err)
			}
		})
	}
}
