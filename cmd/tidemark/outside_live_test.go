package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidemark/windows/windowstest"
)

// process is a server that is ended by hand.
type process struct {
	*server
	gone chan struct{}
}

// start starts a server that may be killed, and waits until it is ready.
func (f folder) start(t testing.TB, args ...string) *process {
	t.Helper()
	return f.startAs(t, call{args: f.args(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)})
}

// startAs starts it by a call of its own.
func (folder) startAs(t testing.TB, c call) *process {
	t.Helper()
	cmd := c.command(t)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{&server{cmd: cmd, log: new(bytes.Buffer)}, make(chan struct{})}
	address := make(chan string, 1)
	go func() {
		defer close(p.gone)
		for lines := bufio.NewScanner(errs); lines.Scan(); {
			fmt.Fprintln(p.log, lines.Text())
			if a := addressPattern.FindString(lines.Text()); a != "" && len(address) == 0 {
				address <- a
			}
		}
		_ = cmd.Wait() // whoever ends it looks at how
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-p.gone
	})
	select {
	case a := <-address:
		p.url = a
	case <-p.gone:
		t.Fatalf("serve ended:\n%s", p.log)
	}
	for {
		if status, err := p.try("/readyz"); err == nil && status == http.StatusOK {
			return p
		}
		select {
		case <-p.gone:
			t.Fatalf("serve ended:\n%s", p.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *server) try(path string) (status int, err error) {
	resp, err := http.Get(s.url + path)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// end sends a signal and returns how the process ended.
func (p *process) end(t *testing.T, s syscall.Signal) int {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	<-p.gone
	return exitStatus(p.cmd.ProcessState)
}

// send posts events as NDJSON.
func send(base string, events []windowstest.Event) (status int, body string, err error) {
	var b bytes.Buffer
	for _, e := range events {
		line := map[string]any{"item": e.Item, "type": e.Type}
		if e.Time > 0 {
			line["time"] = e.Time
		}
		if e.User != "" {
			line["user"] = e.User
		}
		if e.ID != "" {
			line["id"] = e.ID
		}
		text, err := json.Marshal(line)
		if err != nil {
			return 0, "", err
		}
		b.Write(append(text, '\n'))
	}
	resp, err := http.Post(base+"/v1/events", "application/x-ndjson", &b)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// liveEvents are of the last minutes, each with an ID, unless a few without a time.
func liveEvents(seed uint64, n int) []windowstest.Event {
	const span = 5 * time.Minute
	events := windowstest.Shape{
		Seed: seed, Events: n, Items: 300, Users: 4000, Start: time.Now().Add(-span), Span: span,
		NoUser: 0.1, IDs: true, Types: []string{"view", "like"},
	}.Stream()
	for i := range events {
		events[i].ID = fmt.Sprintf("%d-%d", seed, i)
	}
	return events
}

// settled waits until the server has counted what it was sent, and checks outcomes.
func settled(t *testing.T, s *server, counted int) {
	t.Helper()
	var o struct{ Counts map[string]number }
	for {
		s.ask(t, "/v1/counts", url.Values{"type": {"*"}, "last": {"all"}}, &o)
		if got := o.Counts["*"].Value; got >= uint64(counted) {
			if got > uint64(counted) {
				t.Errorf("%d events are counted, %d were sent", got, counted)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A server is killed again and again while a client sends, and sends again what got
// no answer. Then every event counts once.
func TestKilledServerLosesNothing(t *testing.T) {
	kills := 20
	if soak() {
		kills = 200
	}
	data := newFolder(t)
	events := liveEvents(1, 400*kills)
	const batch = 40
	var base atomic.Pointer[string]
	p := data.start(t, "--lateness=1s")
	base.Store(&p.url)

	sent := make(chan error, 1)
	var at, again atomic.Int64
	go func() {
		for from := 0; from < len(events); {
			part := events[from:min(from+batch, len(events))]
			status, body, err := send(*base.Load(), part)
			switch {
			case err != nil || status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
				again.Add(1)
				time.Sleep(2 * time.Millisecond)
			case status != http.StatusOK:
				sent <- fmt.Errorf("%d %s", status, body)
				return
			default:
				from += len(part)
				at.Store(int64(from))
			}
		}
		sent <- nil
	}()
	r := rand.New(rand.NewPCG(3, 1))
	for n := range kills {
		target := int64(n*len(events)/kills) + r.Int64N(int64(len(events)/kills))
		for at.Load() < target-batch {
			select {
			case err := <-sent:
				t.Fatalf("the client has ended: %v", err)
			case <-time.After(200 * time.Microsecond):
			}
		}
		time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
		if s := p.end(t, syscall.SIGKILL); s != -int(syscall.SIGKILL) {
			t.Fatalf("exit status %d\n%s", s, p.log)
		}
		p = data.start(t, "--lateness=1s")
		base.Store(&p.url)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	t.Logf("killed %d times; %d batches were sent again", kills, again.Load())
	settled(t, p.server, len(events))
	e := newExaminer(p.server, windowstest.NewOracle(events), 1)
	e.live = true
	e.examine(t, 20)
	e.verdict(t)

	// SIGTERM, and all is there again.
	if s := p.end(t, syscall.SIGTERM); s != 0 {
		t.Errorf("SIGTERM: exit status %d\n%s", s, p.log)
	}
	p = data.start(t, "--lateness=1s")
	settled(t, p.server, len(events))
	e = newExaminer(p.server, windowstest.NewOracle(events), 2)
	e.live = true
	e.examine(t, 5)
	e.verdict(t)
}

// What tells who somebody is does not get into the data folder.
func TestNothingOfAPersonIsKept(t *testing.T) {
	data := newFolder(t)
	p := data.start(t)
	secrets := []string{"secret-user", "secret-owner", "secret-id", "192.0.2.77", "secret-agent", "secret-referrer", "secret-else", "secret-broken"}
	lines := `{"item":"seen","user":"secret-user","owner":"secret-owner","id":"secret-id","ip":"192.0.2.77","user_agent":"secret-agent","referrer":"secret-referrer","secret-else":"secret-else"}
{"item":"seen","user":"secret-broken","time":"secret-broken"}
{"item":"seen","secret-broken`
	resp, err := http.Post(p.url+"/v1/events", "", strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), `{"accepted":1,"rejected":2,`) {
		t.Fatalf("%d %s %v", resp.StatusCode, body, err)
	}
	settled(t, p.server, 1)
	if s := p.end(t, syscall.SIGTERM); s != 0 {
		t.Errorf("exit status %d\n%s", s, p.log)
	}
	seen := false
	look := func(what string, content []byte) {
		for _, s := range secrets {
			if bytes.Contains(content, []byte(s)) {
				t.Errorf("%s has %s", what, s)
			}
		}
		seen = seen || bytes.Contains(content, []byte("seen"))
	}
	look("the answer", body)
	look("the log", p.log.Bytes())
	err = filepath.WalkDir(data.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		look(path, content)
		return err
	})
	if err != nil || !seen {
		t.Errorf("the item stands nowhere: nothing was looked at (%v)", err)
	}
}

// A folder that was filled by replay goes on live; other settings hold from then on;
// and a store does not go on with another journal.
func TestHistoryThenLive(t *testing.T) {
	data := newFolder(t)
	history := windowstest.Shape{Seed: 5, Events: 2000, Items: 100, Users: 500, Start: time.Now().Add(-48 * time.Hour), Span: time.Hour, Types: []string{"view", "like"}}.Stream()
	data.replay(t, writeEvents(t, "history.csv", history))
	events := liveEvents(9, 3000)
	p := data.start(t)
	for i, flags := range [][]string{{}, {"--dedup-events=1000"}, {"--lateness=5s", "--max-items-per-window=100000"}} {
		if i > 0 {
			if s := p.end(t, syscall.SIGKILL); s != -int(syscall.SIGKILL) {
				t.Fatalf("exit status %d\n%s", s, p.log)
			}
			p = data.start(t, flags...)
		}
		part := events[i*1000 : (i+1)*1000]
		if status, body, err := send(p.url, part); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s %v", status, body, err)
		}
		all := append(append([]windowstest.Event{}, history...), events[:(i+1)*1000]...)
		settled(t, p.server, len(all))
		e := newExaminer(p.server, windowstest.NewOracle(all), uint64(i))
		e.live = true
		e.examine(t, 5)
		e.verdict(t)
	}
	if status, err := p.try("/readyz/ingest"); err != nil || status != http.StatusOK {
		t.Errorf("/readyz/ingest: %d %v", status, err)
	}
	if s := p.end(t, syscall.SIGTERM); s != 0 {
		t.Errorf("exit status %d\n%s", s, p.log)
	}
	if err := os.Rename(filepath.Join(data.dir, "journal"), filepath.Join(data.dir, "moved")); err != nil {
		t.Fatal(err)
	}
	r := call{args: data.args("serve", "--listen", "127.0.0.1:0")}.run(t)
	if r.status != 1 || !strings.Contains(r.stderr, "does not belong to the journal") {
		t.Errorf("another journal: exit status %d\n%s", r.status, r.stderr)
	}
}

// A folder whose server has ended answers with all that was accepted, and says so; one
// whose server was killed says that there may be more.
func TestFolderOfAnEndedServer(t *testing.T) {
	data := newFolder(t)
	events := liveEvents(21, 3000)
	p := data.start(t)
	for i, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		if i > 0 {
			p = data.start(t)
		}
		if status, body, err := send(p.url, events[i*1000:(i+1)*1000]); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s %v", status, body, err)
		}
		if s := p.end(t, signal); signal == syscall.SIGTERM && s != 0 {
			t.Fatalf("exit status %d\n%s", s, p.log)
		}
		past := url.Values{"from": {"2020-01-01"}, "to": {fmt.Sprint(time.Now().Add(-2 * time.Minute).UnixMilli())}, "type": {"*"}}
		var a answer
		data.ask(t, "/v1/counts", past, &a)
		if signal == syscall.SIGKILL {
			if a.Complete || !strings.Contains(a.Hint, "`tidemark serve` counts them") {
				t.Errorf("after kill -9: complete %v, hint %q", a.Complete, a.Hint)
			}
			continue
		}
		if !a.Complete || a.Final || a.Hint != "" {
			t.Errorf("complete %v, final %v, hint %q; events may come late until a day has passed", a.Complete, a.Final, a.Hint)
		}
		data.ask(t, "/v1/counts", url.Values{"to": {"2021-01-01"}}, &a)
		if !a.Complete || !a.Final {
			t.Errorf("years ago: complete %v, final %v", a.Complete, a.Final)
		}
		e := newExaminer(data, windowstest.NewOracle(events[:(i+1)*1000]), 1)
		e.live = true
		e.examine(t, 2)
		e.verdict(t)
	}
}
