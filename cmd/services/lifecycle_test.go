package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// Each test has instances of its own, at the same time as the others (V2).

func up(t *testing.T, args ...string) (dir string, r report) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "instance")
	t.Cleanup(func() {
		// The test's own context is over in a cleanup.
		if status, err := call(context.Background(), []string{"down", "--dir", dir}, io.Discard, io.Discard); status != exitDone {
			t.Error(err)
		}
	})
	return dir, reportOf(t, append([]string{"up", "--json", "--dir", dir}, args...)...)
}

func reportOf(t *testing.T, args ...string) (r report) {
	t.Helper()
	status, stdout, stderr := callProgram(t, args...)
	if status != exitDone {
		t.Fatalf("%q: status %d: %s", args, status, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%q: %v in %s", args, err, stdout)
	}
	return r
}

func do(t *testing.T, args ...string) {
	t.Helper()
	if status, _, stderr := callProgram(t, args...); status != exitDone {
		t.Fatalf("%q: status %d: %s", args, status, stderr)
	}
}

func sql(t *testing.T, s status, query string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Others["http"]+"/", strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", query, body, err)
	}
	return strings.TrimSpace(string(body))
}

func exists(pid int) bool {
	_, ended, err := readStat(pid)
	return err == nil && !ended
}

// V3, V4, V5 of ClickHouse.
func TestClickHouse(t *testing.T) {
	t.Parallel()
	dir, r := up(t, "clickhouse")
	server := r.Services[0]
	sql(t, server, "CREATE TABLE t (x UInt64) ENGINE = MergeTree ORDER BY x")
	sql(t, server, "INSERT INTO t VALUES (7)")
	sql(t, server, "CREATE FUNCTION twice AS (x) -> 2 * x")

	if again := reportOf(t, "up", "--json", "--dir", dir, "clickhouse"); again.Services[0].PID != server.PID {
		t.Errorf("up of what is up: process %d, then %d", server.PID, again.Services[0].PID)
	}
	for _, end := range []string{"kill", "stop"} {
		do(t, end, "--dir", dir, "clickhouse")
		if exists(server.PID) {
			t.Errorf("%s: process %d is still there", end, server.PID)
		}
		if s := reportOf(t, "status", "--json", "--dir", dir).Services[0]; s.Running || s.Address != server.Address {
			t.Errorf("status after %s: %+v", end, s)
		}
		do(t, "start", "--dir", dir, "clickhouse")
		s := reportOf(t, "status", "--json", "--dir", dir).Services[0]
		if !s.Running || s.Address != server.Address {
			t.Errorf("status after start: %+v", s)
		}
		if got := sql(t, s, "SELECT twice(x) FROM t"); got != "14" {
			t.Errorf("after %s and start: %q, want 14", end, got)
		}
		server = s
	}
	if status, _, stderr := callProgram(t, "start", "--dir", dir, "kafka"); status != exitFailed || !strings.Contains(stderr, "never up") {
		t.Errorf("start of what was never up: status %d: %s", status, stderr)
	}
	do(t, "down", "--dir", dir)
	if _, err := os.Stat(dir); !os.IsNotExist(err) || exists(server.PID) {
		t.Errorf("after down: folder %v, process there: %v", err, exists(server.PID))
	}
}

// V3, V4, V5 of Kafka: what was acknowledged is there after a kill, and a group
// can commit at once after up.
func TestKafka(t *testing.T) {
	t.Parallel()
	dir, r := up(t, "kafka")
	broker := r.Services[0]
	ctx := t.Context()
	client := &kafkago.Client{Addr: kafkago.TCP(broker.Address), Timeout: 10 * time.Second}
	made, err := client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{{Topic: "t", NumPartitions: 1, ReplicationFactor: 1}}})
	if err != nil || made.Errors["t"] != nil {
		t.Fatal(err, made)
	}
	commits := map[string][]kafkago.OffsetCommit{"t": {{Partition: 0, Offset: 1, Metadata: "m"}}}
	committed, err := client.OffsetCommit(ctx, &kafkago.OffsetCommitRequest{GroupID: "g", GenerationID: -1, Topics: commits})
	if err != nil || committed.Topics["t"][0].Error != nil {
		t.Fatal(err, committed)
	}
	w := kafkago.Writer{Addr: client.Addr, Topic: "t", RequiredAcks: kafkago.RequireAll, BatchTimeout: time.Millisecond}
	if err := w.WriteMessages(ctx, kafkago.Message{Value: []byte("kept")}); err != nil {
		t.Fatal(err)
	}
	w.Close()

	do(t, "kill", "--dir", dir, "kafka")
	do(t, "start", "--dir", dir, "kafka")
	conn, err := kafkago.DialLeader(ctx, "tcp", broker.Address, "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if m, err := conn.ReadMessage(1 << 10); err != nil || string(m.Value) != "kept" {
		t.Errorf("%q, %v", m.Value, err)
	}
	client.Transport = &kafkago.Transport{} // the old one has a connection to the broker that was
	offsets, err := client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{GroupID: "g", Topics: map[string][]int{"t": {0}}})
	if err != nil || offsets.Error != nil || offsets.Topics["t"][0].Metadata != "m" {
		t.Errorf("%+v, %v", offsets, err)
	}
	pid := reportOf(t, "status", "--json", "--dir", dir).Services[0].PID
	do(t, "down", "--dir", dir)
	if _, err := os.Stat(dir); !os.IsNotExist(err) || exists(pid) {
		t.Errorf("after down: folder %v, process there: %v", err, exists(pid))
	}
}

// program is the program as a process of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// V5: run's command gets the addresses and gives its status, and nothing stays.
func TestRunCommand(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	cmd := program(t, "run", "clickhouse", "--", "sh", "-c",
		`"$TIDEMARK_TEST_SERVICES" status --json --dir "$(echo $TMPDIR/*)"; echo "$TIDEMARK_TEST_CLICKHOUSE$TIDEMARK_TEST_KAFKA" >"$TMPDIR.address"; exit 3`)
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
		t.Fatalf("ended with %v, want the command's status 3", err)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	address, err := os.ReadFile(temp + ".address")
	if err != nil || strings.TrimSpace(string(address)) != r.Services[0].Address {
		t.Errorf("address in the environment: %q, %v; want %s", address, err, r.Services[0].Address)
	}
	if !r.Services[0].Running || exists(r.Services[0].PID) {
		t.Errorf("service during the command: %+v; after it: %v", r.Services[0], exists(r.Services[0].PID))
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// V5: without a command run ends with its standard input, and then nothing stays;
// killed, it leaves no process.
func TestRunUntilEndOfInput(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run("killed="+strconv.FormatBool(killed), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "instance")
			cmd := program(t, "run", "--json", "--dir", dir, "clickhouse")
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
			var r report
			if err := json.NewDecoder(out).Decode(&r); err != nil {
				t.Fatal(err)
			}
			pid := r.Services[0].PID
			if !exists(pid) {
				t.Fatalf("process %d is not there", pid)
			}
			if killed {
				cmd.Process.Kill()
				cmd.Wait()
				for exists(pid) {
					time.Sleep(time.Millisecond) // the test's own limit ends it
				}
				return
			}
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) || exists(pid) {
				t.Errorf("after run: folder %v, process there: %v", err, exists(pid))
			}
		})
	}
}

// A service that cannot start says so with the end of its log, and leaves no process.
func TestStartFails(t *testing.T) {
	t.Parallel()
	dir, r := up(t, "clickhouse")
	do(t, "stop", "--dir", dir, "clickhouse")
	squatter, err := net.Listen("tcp", r.Services[0].Others["http"])
	if err != nil {
		t.Fatal(err)
	}
	status, _, stderr := callProgram(t, "start", "--dir", dir, "clickhouse")
	for _, want := range []string{"start clickhouse", "before it answered", "its log ends", "Address already in use"} {
		if status != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("status %d: %s; want %q in it", status, stderr, want)
		}
	}
	if s := reportOf(t, "status", "--json", "--dir", dir).Services[0]; s.Running || s.Address != r.Services[0].Address {
		t.Errorf("%+v", s)
	}
	squatter.Close()
	do(t, "start", "--dir", dir, "clickhouse")
}

func TestPrintForPeople(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := report{Dir: "/somewhere", Services: []status{
		{Name: "clickhouse", Running: true, PID: 12, Address: "127.0.0.1:20001", Others: map[string]string{"http": "127.0.0.1:20002"}},
		{Name: "kafka", Address: "127.0.0.1:20003"},
	}}
	if err := (printer{&b, false}).print(r); err != nil {
		t.Fatal(err)
	}
	want := `clickhouse  127.0.0.1:20001  process 12
  http      127.0.0.1:20002
kafka       127.0.0.1:20003  not running
folder      /somewhere
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
