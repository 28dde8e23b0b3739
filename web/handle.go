package web

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/queries"
	"tidemark/web/keys"
)

// problem is a refusal, as RFC 9457 has it, and the error that it is sent for.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Parameter string `json:"parameter,omitempty"`
	Taken     *int64 `json:"taken,omitempty"` // of a batch that is not the next one of its import

	cause      error         // for the log
	retryAfter time.Duration // not 0: when it is worth coming again
	refused    string        // for the metrics: why who sent it may not; "" if it is not that
	challenge  string        // of a 401: WWW-Authenticate
}

func (p *problem) Error() string { return p.Detail }

func (p *problem) Unwrap() error { return p.cause }

// problemOf maps an error to what the client is told. gone is whether nobody is
// there to be told anything.
func problemOf(err error, gone bool) *problem {
	var p *problem
	var fault *queries.Fault
	var refusal *Refusal
	switch {
	case errors.As(err, &p):
	case errors.As(err, &fault):
		p = &problem{Status: http.StatusBadRequest, Detail: fault.Error(), Parameter: fault.Parameter}
		if fault.Refused {
			p.Status = http.StatusUnprocessableEntity
		}
	case errors.As(err, &refusal):
		p = &problem{Status: refusal.Status, Detail: refusal.Detail, Taken: refusal.Taken, retryAfter: refusal.RetryAfter}
	case gone:
		p = &problem{Status: http.StatusServiceUnavailable, Detail: "the client has gone"}
	case errors.Is(err, context.DeadlineExceeded):
		p = &problem{
			Status:     http.StatusServiceUnavailable,
			Detail:     "the answer would have taken longer than " + questionTimeout.String() + "; come again, or ask for a shorter range",
			cause:      err,
			retryAfter: time.Second,
		}
	default:
		p = &problem{Status: http.StatusInternalServerError, Detail: "the server failed; its log says why", cause: err}
	}
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	return p
}

// handle makes the handler of a path, for those who have the scope that it needs,
// from a function that returns an error (H1).
func (a *api) handle(path string, methods []string, needs keys.Scope, serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w := &response{ResponseWriter: to, status: http.StatusOK}
		defer a.Requests.measure(path, w, time.Now())
		w.Header().Set("X-Content-Type-Options", "nosniff")
		defer func() {
			if x := recover(); x != nil {
				if err, ok := x.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(x)
				}
				a.Logger.ErrorContext(r.Context(), "handler panicked", "path", r.URL.Path, "panic", x, "stack", string(debug.Stack()))
				a.refuse(w, r, errPanic)
			}
		}()
		a.Origins.share(w, r)
		if isPreflight(r) {
			if err := a.Origins.preflight(w, r, methods); err != nil {
				a.refuse(w, r, err)
			}
			return
		}
		if methods != nil && !slices.Contains(methods, r.Method) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			a.refuse(w, r, &problem{Status: http.StatusMethodNotAllowed, Detail: r.Method + " is not allowed here; " + methods[0] + " is"})
			return
		}
		r, err := a.admit(r, needs)
		if err == nil {
			err = serve(w, r)
		}
		if err != nil {
			a.refuse(w, r, err)
		}
	})
}

// refuse sends a problem document, and logs what is ours.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err, r.Context().Err() != nil)
	if p.cause != nil {
		a.Logger.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "query", r.URL.RawQuery, "status", p.Status, "err", p.cause)
	}
	if p.refused != "" {
		a.refusals.count(r, p)
	}
	if p.challenge != "" {
		w.Header().Set("WWW-Authenticate", p.challenge)
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.retryAfter.Seconds())))
	}
	send(w, p.Status, "application/problem+json", append(p.text(), '\n'))
}

// text is the document.
func (p *problem) text() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has only strings and a number
	}
	return text
}

func sendJSON(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	send(w, http.StatusOK, jsonType, append(body, '\n'))
	return nil
}

// sendCSV sends a table as RFC 4180 has it.
func sendCSV(w http.ResponseWriter, t queries.Table) error {
	var b bytes.Buffer
	c := csv.NewWriter(&b)
	c.UseCRLF = true
	if err := c.Write(t.Columns); err != nil {
		return err
	}
	if err := c.WriteAll(t.Rows); err != nil {
		return err
	}
	send(w, http.StatusOK, "text/csv; charset=utf-8; header=present", b.Bytes())
	return nil
}

// send writes a whole response. What goes wrong from here on is the connection's,
// and nobody can be told.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store") // the next second has another answer
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
