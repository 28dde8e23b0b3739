package clickhouse

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tidemark/sinks"
	"tidemark/sinks/sinkstest"
)

// server is a ClickHouse of a test's own, which it may kill.
type server struct{ program, dir, address string }

func newServer(t *testing.T) *server {
	t.Helper()
	program := os.Getenv("TIDEMARK_TEST_SERVICES")
	if program == "" {
		t.Skip("no server of its own to kill: TIDEMARK_TEST_SERVICES is not set; run `make test`, or this by `bin/services run clickhouse -- go test …`")
	}
	s := &server{program, filepath.Join(t.TempDir(), "services"), ""}
	// It ends with its standard input: whatever becomes of this process.
	cmd := exec.Command(program, "run", "--json", "--dir", s.dir, "clickhouse")
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
	s.address = report.Services[0].Address
	return s
}

func (s *server) do(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), s.program, command, "--dir", s.dir, "clickhouse").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// CH1, CH2: ClickHouse is killed in the middle of inserts, again and again, and so
// are the connections; afterwards every row is there once.
func TestKilledServer(t *testing.T) {
	own := newServer(t)
	w := worldAt(t, own.address)
	p := newProxy(t, own.address)
	w.Addr = []string{p.addr()}
	sink := w.fresh(t)
	outbox := sinkstest.NewOutbox()
	d := sinks.NewDeliverer(sinks.Config{Sink: sink, Outbox: outbox, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()

	r, o := newRandom(9), newOracle()
	base := minuteAt(2026, 12, 31, 22, 0)
	for round := range 4 {
		for range 30 {
			s := r.seal(base, 6, 200)
			o.add(s)
			outbox.Add(s)
		}
		p.arm(5 + r.IntN(20))
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond) // somewhere in a delivery
		if round%2 == 0 {
			own.do(t, "kill")
			own.do(t, "start")
		}
	}
	for outbox.Waiting(sink.Name()) > 0 {
		time.Sleep(10 * time.Millisecond) // the test's own limit ends it
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	o.check(t, w)
	// All of them again, as after a crash that lost the marks.
	outbox.Forget(sink.Name())
	d = sinks.NewDeliverer(sinks.Config{Sink: w.fresh(t), Outbox: outbox, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel = context.WithCancel(t.Context())
	go func() { ended <- d.Run(ctx) }()
	for outbox.Waiting(sink.Name()) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	o.check(t, w)
}
