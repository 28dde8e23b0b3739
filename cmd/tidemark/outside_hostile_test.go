package main_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// mostMemory is a server's under attack: 256 MiB of bodies under way, twice that until
// the collector has run, and what it has besides.
const mostMemory = 900 << 20

// checkServed sends an event and asks for it, as one of those who mean well do.
func checkServed(t *testing.T, p *process, item string) {
	t.Helper()
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(p.url+"/v1/events", "application/json", strings.NewReader(fmt.Sprintf(`{"item":%q,"user":"u"}`, item)))
	if err != nil {
		t.Fatalf("%s: %v", item, err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %d", item, resp.StatusCode)
	}
	for {
		resp, err := client.Get(p.url + "/v1/counts?item=" + item)
		if err != nil {
			t.Fatalf("%s: %v", item, err)
		}
		var a answer
		err = json.NewDecoder(resp.Body).Decode(&a)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", item, resp.StatusCode, err)
		}
		if a.Counts["view"].Value == 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (p *process) checkMemory(t *testing.T, after string) {
	t.Helper()
	peak := highWater(p.cmd.Process.Pid)
	t.Logf("after %s: at most %d MiB", after, peak>>20)
	if peak > mostMemory {
		t.Errorf("after %s the server had %d MiB", after, peak>>20)
	}
}

// Clients that send a byte a second, ten thousand connections that send nothing,
// bodies that unpack to 10 GB, and headers without an end: the limits hold, and
// everybody else is served.
func TestHostileClients(t *testing.T) {
	p := newFolder(t).start(t)
	address := strings.TrimPrefix(p.url, "http://")
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	idle := min(10_200, int(files.Cur)-1000)

	// Slow ones: half of them in the header, half in the body.
	var slow sync.WaitGroup
	stop, headers := make(chan struct{}), make(chan time.Duration, 50)
	for i := range 100 {
		c, begun := dial(), time.Now()
		slow.Go(func() {
			text := "GET /v1/top HTTP/1.1\r\nHost: x\r\nX-Long: "
			if i%2 == 0 {
				text = "POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
			}
			_, _ = io.WriteString(c, text)
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
				}
				if _, err := c.Write([]byte{'a'}); err != nil { // it was closed
					if i%2 == 1 {
						headers <- time.Since(begun)
					}
					return
				}
			}
		})
	}
	checkServed(t, p, "beside-slow")

	for range idle {
		dial()
	}
	checkServed(t, p, "beside-idle")
	p.checkMemory(t, fmt.Sprint(idle, " idle connections"))
	_, metrics := p.get(t, "/metrics")
	cut := idle + 100 - 10_000
	if open := metric(t, metrics, "tidemark_http_connections"); open > 10_000 {
		t.Errorf("%v connections are open", open)
	}
	if got := metric(t, metrics, "tidemark_http_connections_cut_total"); cut > 0 && got < float64(cut) {
		t.Errorf("%v connections were closed to make room, of %d too many", got, cut)
	}

	var floods sync.WaitGroup
	for i := range 20 {
		c := dial()
		floods.Go(func() {
			line := []byte("X-Flood: " + strings.Repeat("f", 4000) + "\r\n")
			if i%2 == 0 {
				line = bytes.ReplaceAll(line, []byte("\r\n"), nil) // one header without an end
			}
			_, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n")
			for n := 0; err == nil && n < 16<<20; n += len(line) {
				_, err = c.Write(line)
			}
			if resp, rerr := http.ReadResponse(bufio.NewReader(c), nil); rerr == nil {
				if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
					t.Errorf("a header of 16 MiB: %d", resp.StatusCode)
				}
				resp.Body.Close()
			} else if err == nil {
				t.Error("16 MiB of header were taken")
			}
		})
	}
	checkServed(t, p, "beside-floods")
	floods.Wait()

	var bombs sync.WaitGroup
	for _, b := range newBombs(t) {
		for range 8 {
			bombs.Go(func() {
				resp, err := http.Post(p.url+"/v1/events", "application/x-ndjson", bytes.NewReader(b))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				text, _ := io.ReadAll(resp.Body) // only for the message
				if resp.StatusCode != http.StatusRequestEntityTooLarge && resp.StatusCode != http.StatusTooManyRequests {
					t.Errorf("10 GB in %d bytes: %d %s", len(b), resp.StatusCode, text)
				}
			})
		}
	}
	checkServed(t, p, "beside-bombs")
	bombs.Wait()
	p.checkMemory(t, "bombs")

	for range 50 { // who is slow with a header is gone after some seconds
		select {
		case <-headers:
		case <-time.After(time.Minute):
			t.Fatal("a header may be sent for ever")
		}
	}
	close(stop)
	slow.Wait()
	checkServed(t, p, "afterwards")
	if s := p.end(t, syscall.SIGTERM); s != 0 {
		t.Errorf("exit status %d\n%s", s, p.log)
	}
}

// newBombs are bodies of some MiB that unpack to 10 GB: of blanks, and of one line
// without an end.
func newBombs(t *testing.T) [][]byte {
	t.Helper()
	const part, parts = 64 << 20, 160
	var bombs [][]byte
	for _, fill := range []string{"\n", `"`} {
		content := []byte(strings.Repeat(fill, part))
		var zipped, z bytes.Buffer
		w := gzip.NewWriter(&zipped)
		_, err := w.Write(content)
		e, zerr := zstd.NewWriter(&z, zstd.WithWindowSize(1<<20), zstd.WithEncoderConcurrency(1))
		if err = errors.Join(err, w.Close(), zerr); err == nil {
			_, err = e.Write(content)
			err = errors.Join(err, e.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		bombs = append(bombs, bytes.Repeat(zipped.Bytes(), parts), bytes.Repeat(z.Bytes(), parts))
	}
	return bombs
}

// metric returns a metric without labels.
func metric(t *testing.T, text, name string) (v float64) {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// Far more comes in than the server takes: what it does not take is refused whole,
// what it takes is counted once, memory stays bounded, and questions are answered.
func TestOverload(t *testing.T) {
	const senders, each, events = 64, 1, 6_000
	data := newFolder(t)
	p := data.startAs(t, call{env: []string{"GOMEMLIMIT=600MiB"}, args: data.args("serve", "--listen=127.0.0.1:0", "--window-memory=64MiB")})
	var lines bytes.Buffer
	pad := strings.Repeat("x", 700)
	for i := range events {
		fmt.Fprintf(&lines, `{"item":"i%d","user":"u%d","title":%q}`+"\n", i%500, i, pad)
	}
	body := lines.Bytes() // 4.5 MB
	latency := func(n int) (worst time.Duration) {
		for range n {
			begun := time.Now()
			p.get(t, "/v1/top?last=5m&limit=10")
			worst = max(worst, time.Since(begun))
		}
		return worst
	}
	quiet := latency(5)
	var taken, refused atomic.Int64
	var sending sync.WaitGroup
	for range senders {
		sending.Go(func() {
			for n := 0; n < each; {
				resp, err := http.Post(p.url+"/v1/events", "application/x-ndjson", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				text, _ := io.ReadAll(resp.Body) // only for the message
				resp.Body.Close()
				switch resp.StatusCode {
				case http.StatusOK:
					taken.Add(events)
					n++
				case http.StatusTooManyRequests:
					refused.Add(1)
					if resp.Header.Get("Retry-After") == "" {
						t.Error("429 without Retry-After")
					}
					time.Sleep(200 * time.Millisecond) // sooner than it was told
				default:
					t.Errorf("%d %s", resp.StatusCode, text)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { sending.Wait(); close(done) }()
	asked, worst := 0, time.Duration(0)
	for open := true; open; asked++ {
		worst = max(worst, latency(1))
		select {
		case <-done:
			open = false
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Logf("%d bodies were taken, %d refused; of %d questions meanwhile the slowest took %v, before %v", senders*each, refused.Load(), asked, worst, quiet)
	if refused.Load() == 0 {
		t.Error("nothing was refused: it was no overload")
	}
	if worst > 20*time.Second {
		t.Errorf("a question took %v", worst)
	}
	p.checkMemory(t, "the overload")
	settled(t, p.server, int(taken.Load()))
}

// An event without a time has that of its arrival; sent again in another minute it
// has another one, and is found by its ID.
func TestSentAgainInAnotherMinute(t *testing.T) {
	p := newFolder(t).start(t)
	// The clock can't be set, so the first event says the time of a minute ago, and
	// what is sent again says none.
	first := time.Now().Add(-time.Minute).UnixMilli()
	for _, body := range []string{
		fmt.Sprintf(`{"item":"a","user":"u","id":"e","time":%d}`, first), `{"item":"a","user":"u","id":"e"}`, `{"item":"a","user":"u","id":"e"}`, `{"item":"a","user":"u","id":"f"}`,
	} {
		if status, text := p.with(t, "", "POST", "/v1/events", body); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	settled(t, p.server, 2)
	var status struct {
		Logs []struct {
			Partitions []struct{ Position, Lag int64 }
		}
	}
	p.ask(t, "/v1/status", nil, &status)
	read := int64(0)
	for _, partition := range status.Logs[0].Partitions {
		if read += partition.Position; partition.Lag != 0 {
			t.Errorf("%+v", partition)
		}
	}
	if read != 4 {
		t.Errorf("%d records were read", read)
	}
	var a answer
	p.ask(t, "/v1/counts", url.Values{"item": {"a"}, "last": {"2m"}, "step": {"minute"}}, &a)
	if a.Counts["view"].Value != 2 {
		t.Errorf("%+v", a)
	}
}
