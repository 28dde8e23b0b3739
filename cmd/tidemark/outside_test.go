package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tidemark/sketches"
	"tidemark/windows/windowstest"
)

// The tests of this package look at the program from outside: they build it, run
// it as a process, and compare its answers with the oracle's.

// built is the folder of the programs that the tests build.
var built string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tidemark-test-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	return m.Run()
}

// program returns the path of the program.
var program = sync.OnceValues(func() (string, error) { return build("tidemark") })

// crashingProgram returns the path of the program that kills itself where
// TIDEMARK_CRASH says, see windows/store/FORMAT.md.
var crashingProgram = sync.OnceValues(func() (string, error) { return build("tidemark-crashing", "-tags", "failpoint") })

func build(name string, flags ...string) (string, error) {
	path := filepath.Join(built, name)
	args := append([]string{"build", "-o", path}, flags...)
	out, err := exec.Command("go", append(args, ".")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// call is one run of the program.
type call struct {
	args  []string
	env   []string  // beside PATH and HOME
	stdin io.Reader // nil: empty
	crash bool      // the program with failpoints
}

// result is how it ended.
type result struct {
	status         int // exit status, or minus the signal that ended it
	stdout, stderr string
}

// command prepares a run. The environment is bare: TIDEMARK_DATA is the tests'
// folder of data and would be the program's --data.
func (c call) command(t testing.TB) *exec.Cmd {
	t.Helper()
	make := program
	if c.crash {
		make = crashingProgram
	}
	path, err := make()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, c.args...)
	// The streams of these tests are years long, and asked for by the minute.
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TIDEMARK_RETENTION_MINUTE=forever"}, c.env...)
	cmd.Stdin = c.stdin
	return cmd
}

// run runs it to its end.
func (c call) run(t *testing.T) result {
	t.Helper()
	cmd := c.command(t)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return result{exitStatus(cmd.ProcessState), out.String(), errs.String()}
}

func exitStatus(s *os.ProcessState) int {
	if w := s.Sys().(syscall.WaitStatus); w.Signaled() {
		return -int(w.Signal())
	}
	return s.ExitCode()
}

// tidemark runs the program and fails the test unless it ends well.
func tidemark(t *testing.T, args ...string) string {
	t.Helper()
	r := call{args: args}.run(t)
	if r.status != 0 {
		t.Fatalf("tidemark %q: exit status %d\n%s%s", args, r.status, r.stdout, r.stderr)
	}
	return r.stdout
}

// folder is a --data folder with a hash key that is the same in every test, so
// that what a sketch estimates is too.
type folder struct{ dir, key string }

// testKey is that key. One deployment in twenty may have a user base that an
// estimate is unlucky with; this one is as good as any.
var testKey = sketches.Key{0x74, 0x69, 0x64, 0x65, 0x6d, 0x61, 0x72, 0x6b, 1, 2, 3, 4, 5, 6, 7, 8}

func newFolder(t testing.TB) folder {
	t.Helper()
	dir := t.TempDir()
	f := folder{dir: filepath.Join(dir, "data"), key: filepath.Join(dir, "hash.key")}
	if err := os.WriteFile(f.key, []byte(testKey.Hex()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// args are the flags that name it. Imports and servers keep every minute: what
// retention does is tested elsewhere.
func (f folder) args(args ...string) []string {
	all := append(slices.Clone(args), "--data", f.dir, "--hash-key-file", f.key)
	if args[0] == "replay" || args[0] == "serve" {
		all = append(all, "--retention.minute=forever", "--retention.quarter=forever", "--retention.hour=forever")
	}
	return all
}

// replay imports files and returns the outcomes.
func (f folder) replay(t *testing.T, args ...string) outcomes {
	t.Helper()
	return parseOutcomes(t, tidemark(t, f.args(append([]string{"replay", "--json"}, args...)...)...))
}

// outcomes is what replay --json prints, as far as the tests ask.
type outcomes struct {
	Records  uint64            `json:"records"`
	Outcomes map[string]uint64 `json:"outcomes"`
	Reasons  map[string]uint64 `json:"reasons"`
}

// counted returns how many records are in the counts.
func (o outcomes) counted() uint64 { return o.Outcomes["counted"] + o.Outcomes["late"] }

// checkSum checks that the outcomes sum to the lines read.
func (o outcomes) checkSum(t *testing.T, lines int) {
	t.Helper()
	var sum uint64
	for _, n := range o.Outcomes {
		sum += n
	}
	if sum != uint64(lines) || o.Records != uint64(lines) {
		t.Errorf("%d lines: the outcomes sum to %d, %d records are said to be read: %v", lines, sum, o.Records, o.Outcomes)
	}
}

func parseOutcomes(t *testing.T, text string) outcomes {
	t.Helper()
	var o outcomes
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("replay --json printed no JSON: %v\n%s", err, text)
	}
	return o
}

// number, answer and ranking are shapes of the HTTP API.
type number struct {
	Value, Low, High uint64
	Method           string
}

type answer struct {
	Item      *string
	Type      string
	From, To  time.Time
	Complete  bool
	Final     bool
	Watermark *time.Time
	Hint      string
	Viewers   *number
	Counts    map[string]number
	Items     []answer
}

type ranking struct {
	By, Type  string
	From, To  time.Time
	Complete  bool
	Final     bool
	Certified bool
	Hint      string
	Items     []struct {
		Rank           int
		Item           string
		Views, Viewers number
	}
}

// asker answers a question of the API.
type asker interface {
	// ask decodes the answer to GET path?query.
	ask(t *testing.T, path string, query url.Values, into any)
}

// ask asks the folder by the command that is named like the path: /v1/top.
func (f folder) ask(t *testing.T, path string, query url.Values, into any) {
	t.Helper()
	args := []string{strings.TrimPrefix(path, "/v1/"), "--json"}
	for name, values := range query {
		for _, v := range values {
			args = append(args, "--"+name+"="+v)
		}
	}
	decode(t, tidemark(t, f.args(args...)...), into)
}

func decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("not an answer: %v\n%s", err, text)
	}
}

// server is a running `tidemark serve`.
type server struct {
	url string
	cmd *exec.Cmd
	log *bytes.Buffer
}

// addressPattern is the server's own address: there are others in its log.
var addressPattern = regexp.MustCompile(`http://(127\.0\.0\.1|\[::\]):[1-9]\d*`)

// serve starts the server on the folder. It is ended with the test, and must then
// end well.
func (f folder) serve(t *testing.T, args ...string) *server {
	t.Helper()
	return serveWith(t, f.args(append([]string{"serve"}, args...)...)[1:]...)
}

// serveWith is serve with these flags alone.
func serveWith(t *testing.T, args ...string) *server {
	t.Helper()
	cmd := call{args: append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)}.command(t)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{cmd: cmd, log: new(bytes.Buffer)}
	var mu sync.Mutex
	address := make(chan string, 1)
	var readers sync.WaitGroup
	for _, r := range []io.Reader{out, stdout} {
		readers.Go(func() {
			lines := bufio.NewScanner(r)
			for lines.Scan() {
				mu.Lock()
				fmt.Fprintln(s.log, lines.Text())
				mu.Unlock()
				if a := addressPattern.FindString(lines.Text()); a != "" {
					select {
					case address <- a:
					default:
					}
				}
			}
		})
	}
	gone := make(chan struct{})
	go func() {
		readers.Wait()
		close(gone)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait tells
		<-gone
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve: %v\n%s", err, s.log)
		}
	})
	select {
	case a := <-address:
		s.url = a
	case <-gone:
		t.Fatalf("serve ended without an address:\n%s", s.log)
	}
	for { // an address is printed before or after it can be asked
		resp, err := http.Get(s.url + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s
			}
		}
		select {
		case <-gone:
			t.Fatalf("serve ended:\n%s", s.log)
		case <-t.Context().Done():
			t.Fatal("not ready")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *server) ask(t *testing.T, path string, query url.Values, into any) {
	t.Helper()
	status, body := s.get(t, path+"?"+query.Encode())
	if status != http.StatusOK {
		t.Fatalf("GET %s?%s: %d\n%s", path, query.Encode(), status, body)
	}
	decode(t, body, into)
}

func (s *server) get(t *testing.T, target string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(s.url + target)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	return resp.StatusCode, string(text)
}

// writeEvents writes a file of events into the test's folder: CSV, or NDJSON
// where the name ends so.
func writeEvents(t *testing.T, name string, events []windowstest.Event, dims ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	write := windowstest.WriteCSV
	if strings.HasSuffix(name, ".ndjson") {
		write = windowstest.WriteNDJSON
	}
	if err := errors.Join(write(f, events, dims...), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// soak reports whether there are hours to spend: `make soak`.
func soak() bool { return os.Getenv("TIDEMARK_SOAK") != "" }
