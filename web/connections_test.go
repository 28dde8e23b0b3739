package web_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"tidemark/web"
)

// Where there are too many connections the one goes that has waited longest, and who
// comes is served: also one that is at work while all others wait.
func TestConnectionsMakeRoom(t *testing.T) {
	l := serveLiveAs(t, web.Config{Questions: new(changing), Live: plenty, MaxConnections: 3})
	address := strings.TrimPrefix(l.url, "http://")
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	ask := func(c net.Conn) {
		t.Helper()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _ = body(t, resp); resp.StatusCode != http.StatusOK {
			t.Errorf("%d", resp.StatusCode)
		}
	}
	ended := func(c net.Conn) {
		t.Helper()
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("a connection that waited longest is still there")
		} else if e, ok := err.(net.Error); ok && e.Timeout() { //nolint:errorlint // it comes from the connection itself
			t.Error("a connection that waited longest is still open")
		}
	}
	first, second := dial(), dial()
	ask(first) // which waits for a shorter time now than the second
	ask(dial())
	third := dial()
	ask(third)
	ended(second)
	ask(first)
	ask(third)
	for range 20 {
		ask(dial())
	}
	ended(first)
	ended(third)
	if err := testutil.GatherAndCompare(l.registry, strings.NewReader(`# HELP tidemark_http_connections_cut_total Connections that were closed to make room for new ones. If it grows, raise --max-connections, or look who holds so many.
# TYPE tidemark_http_connections_cut_total counter
tidemark_http_connections_cut_total 21
`), "tidemark_http_connections_cut_total"); err != nil {
		t.Error(err)
	}
}
