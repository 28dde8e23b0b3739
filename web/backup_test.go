package web_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidemark/web"
)

func backupHandler(backup func(context.Context, io.Writer) error) http.Handler {
	return web.New(web.Config{Backup: backup, Logger: slog.New(slog.DiscardHandler)})
}

// TestBackup is a stream that is as declared, and refused as everything else is.
func TestBackup(t *testing.T) {
	h := backupHandler(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "a tar")
		return err
	})
	if got := body(t, get(t, h, "/v1/backup")); got != "a tar" {
		t.Errorf("%q", got)
	}
	problem(t, get(t, h, "/v1/backup?x=1"), http.StatusBadRequest)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/v1/backup", http.NoBody))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("HEAD: %d", w.Code)
	}
	for _, c := range []struct {
		err    error
		status int
	}{
		{errors.New("secret of the inside"), 500},
		{&web.Refusal{Status: 503, Detail: "another one is being made"}, 503},
	} {
		h := backupHandler(func(context.Context, io.Writer) error { return c.err })
		if detail := problem(t, get(t, h, "/v1/backup"), c.status); strings.Contains(detail, "secret") {
			t.Error(detail)
		}
	}
}

// TestBackupThatBreaksOff is never an answer that is whole.
func TestBackupThatBreaksOff(t *testing.T) {
	s := httptest.NewServer(backupHandler(func(_ context.Context, w io.Writer) error {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return err
		}
		return errors.New("the disk")
	}))
	defer s.Close()
	resp, err := s.Client().Get(s.URL + "/v1/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, then %v", n, err)
	}
}
