package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAskServer(t *testing.T) {
	for _, test := range []struct {
		name, kind, body string
		code             int
		status           int
		stdout, stderr   string
	}{
		{"an answer", "application/json", `{"some": "answer"}` + "\n", 200, exitDone, `{"some": "answer"}` + "\n", ""},
		{"a wrong question", "application/problem+json", `{"title": "Bad Request", "status": 400, "detail": "limit: too high"}`, 400, exitUsage, "", "limit: too high"},
		{"a refused question", "application/problem+json; charset=utf-8", `{"title": "x", "status": 422, "detail": "range: gone"}`, 422, exitUsage, "", "range: gone"},
		{"a failure", "application/problem+json", `{"title": "Internal Server Error", "status": 500}`, 500, exitFailed, "", "Internal Server Error"},
		{"too busy", "application/problem+json", `{"title": "x", "status": 503, "detail": "come again"}`, 503, exitFailed, "", "come again"},
		{"another kind of server", "text/html", "<h1>Not found</h1>", 404, exitFailed, "", "404 Not Found"},
		{"no problem document", "application/problem+json", "<", 400, exitFailed, "", "400 Bad Request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if want := "/under/v1/counts?item=a+b&item=%C3%BC&together=true&type=%2A"; r.URL.String() != want {
					t.Errorf("asked for %s, want %s", r.URL, want)
				}
				w.Header().Set("Content-Type", test.kind)
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			status, out, errs := call(t, nil, "counts", "--server", server.URL+"/under/", "--item=a b", "--together", "--type=*", "ü")
			if status != test.status || out != test.stdout || !strings.Contains(errs, test.stderr) {
				t.Errorf("exit status %d, want %d\nstdout: %q\nstderr: %s", status, test.status, out, errs)
			}
		})
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	refused(t, "connection refused", "top", "--server", server.URL)
}
