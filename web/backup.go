package web

import (
	"errors"
	"net/http"
	"time"
)

// streamTimeout is how long a client may take to take what is written at a time.
const streamTimeout = time.Minute

// backup sends a copy of the data. It is too large to be made whole before its first
// byte is sent, so where it fails later the connection is cut off.
func (a *api) backup(w http.ResponseWriter, r *http.Request) error {
	if r.URL.RawQuery != "" {
		return &problem{Status: http.StatusBadRequest, Detail: "a backup has no parameters"}
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err // it would end the request while the answer is written
	}
	s := &stream{w: w, control: control}
	err := a.Backup(r.Context(), s)
	if err != nil && s.begun {
		a.Logger.ErrorContext(r.Context(), "a backup broke off", "err", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

// stream is the body of an answer that is sent while it is made.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

// Write implements io.Writer.
func (s *stream) Write(b []byte) (int, error) {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "application/x-tar")
		s.w.Header().Set("Cache-Control", "no-store")
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(streamTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return s.w.Write(b)
}
