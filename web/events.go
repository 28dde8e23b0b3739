package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/web/keys"
)

// Acceptor takes events in.
type Acceptor interface {
	// Accept returns once the events are durable: all of them or, with an error, none.
	// A *Refusal is what the client is told; any other error is ours.
	Accept(ctx context.Context, e Events) (Receipt, error)
	// Unavailable says in words for a client why events cannot be taken now; "" if
	// they can.
	Unavailable() string
}

// Events is a body of events, plain, gzip or zstd.
type Events struct {
	Body io.Reader
	Size int64 // as announced, bytes; -1 if it is not
	Form Form
	// History lifts the limit on lateness.
	History bool
	// Import says which batch of an import it is; without a name it is none.
	Import Import
}

// Import is a batch of the records of an import, which are numbered from 1. It is taken
// only if it follows on the one taken last: so each is taken once.
type Import struct {
	Name           string // at most 128 bytes
	After, Through int64  // the records behind After up to Through
}

// Form is what a body says that it is.
type Form uint8

// The forms.
const (
	AnyForm Form = iota // its first byte tells
	JSON
	NDJSON
	CSV
)

// Receipt says what became of the records of a body.
type Receipt struct {
	Accepted int         `json:"accepted"`
	Rejected int         `json:"rejected"`
	Errors   []Rejection `json:"errors"` // the first 100
}

// Rejection is a record that is no event.
type Rejection struct {
	Line   int64  `json:"line"` // of the body where it begins, from 1
	Reason string `json:"reason"`
}

// Refusal is why a body was not taken.
type Refusal struct {
	Status     int
	Detail     string
	RetryAfter time.Duration // 0: it is not worth trying again
	Taken      *int64        // of a batch that is not the next one of its import: how far that is
}

// Error returns the detail.
func (r *Refusal) Error() string { return r.Detail }

// bodyTimeout is how long a body may take to arrive: 16 MiB at 2 Mbit/s.
const bodyTimeout = 70 * time.Second

// events takes a POST /v1/events.
func (a *api) events(w http.ResponseWriter, r *http.Request) error {
	if err := a.sender(r); err != nil {
		return err
	}
	history, batch, err := eventParameters(r)
	if err != nil {
		return err
	}
	who := visitorOf(r)
	if history && !who.may(keys.Admin) {
		return forbidden("scope", "history: events of any age need a key that may admin")
	}
	if err := a.limits.beforeEvents(who); err != nil {
		return err
	}
	form, err := formOf(r.Header)
	if err != nil {
		return err
	}
	if why := a.Events.Unavailable(); why != "" {
		return unavailable(why)
	}
	deadlines := http.NewResponseController(w)
	now := time.Now()
	if err := errors.Join(deadlines.SetReadDeadline(now.Add(bodyTimeout)), deadlines.SetWriteDeadline(now.Add(bodyTimeout+writeTimeout))); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	receipt, err := a.Events.Accept(r.Context(), Events{Body: r.Body, Size: r.ContentLength, Form: form, History: history, Import: batch})
	if err != nil {
		return err
	}
	a.limits.events(who, receipt.Accepted+receipt.Rejected)
	status := http.StatusOK
	if receipt.Accepted == 0 {
		status = http.StatusUnprocessableEntity
	}
	if receipt.Errors == nil {
		receipt.Errors = []Rejection{}
	}
	body, err := json.Marshal(receipt)
	if err != nil {
		return err
	}
	send(w, status, "application/json", append(body, '\n'))
	return nil
}

// unavailable refuses what cannot be made durable now.
func unavailable(why string) error {
	return &problem{Status: http.StatusServiceUnavailable, Detail: "events cannot be taken now: " + why, retryAfter: time.Second}
}

// eventParameters reads whether events may be of any age, and of which import they are.
func eventParameters(r *http.Request) (history bool, batch Import, err error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return false, batch, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("the query string is malformed: %v", err)}
	}
	wrong := func(name, detail string) error {
		return &problem{Status: http.StatusBadRequest, Detail: name + ": " + detail, Parameter: name}
	}
	for name, given := range values {
		if len(given) > 1 {
			return false, batch, wrong(name, "stands twice")
		}
		var err error
		switch value := given[0]; name {
		case "history":
			if history = value == "true"; !history && value != "false" {
				return false, batch, wrong(name, "must be true or false")
			}
		case "import":
			if batch.Name = value; value == "" || len(value) > maxImport || !utf8.ValidString(value) {
				return false, batch, wrong(name, fmt.Sprintf("must have 1 to %d bytes of UTF-8", maxImport))
			}
		case "after":
			batch.After, err = strconv.ParseInt(value, 10, 64)
		case "through":
			batch.Through, err = strconv.ParseInt(value, 10, 64)
		default:
			return false, batch, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%.80q: unknown parameter; there are history, import, after and through", name), Parameter: name}
		}
		if err != nil {
			return false, batch, wrong(name, "must be the number of a record")
		}
	}
	switch {
	case batch == Import{}:
	case batch.Name == "" || !history:
		return false, batch, wrong("import", "a batch of an import has import, after, through and history=true")
	case batch.After < 0 || batch.Through <= batch.After:
		return false, batch, wrong("through", "must be more than after, which must not be negative")
	}
	return history, batch, nil
}

// maxImport is how long the name of an import may be in bytes.
const maxImport = 128

// forms is what content types say, in small letters.
var forms = map[string]Form{
	"":                                  AnyForm,
	"text/plain":                        AnyForm,
	"application/x-www-form-urlencoded": AnyForm, // what curl says when it is not told
	"application/json":                  JSON,
	"application/x-ndjson":              NDJSON,
	"application/ndjson":                NDJSON,
	"application/jsonl":                 NDJSON,
	"text/csv":                          CSV,
}

// formOf tells the form of a body, or refuses it.
func formOf(h http.Header) (Form, error) {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "", "identity", "gzip", "x-gzip", "zstd": // the bytes tell which
		default:
			return 0, &problem{Status: http.StatusUnsupportedMediaType, Detail: fmt.Sprintf("Content-Encoding %.80q: gzip, zstd or none is asked", coding)}
		}
	}
	given := h.Get("Content-Type")
	kind, params, err := "", map[string]string(nil), error(nil)
	if given != "" {
		kind, params, err = mime.ParseMediaType(given)
	}
	form, known := forms[kind]
	charset := params["charset"]
	if err != nil || !known || charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return 0, &problem{Status: http.StatusUnsupportedMediaType, Detail: fmt.Sprintf("Content-Type %.80q: application/json, application/x-ndjson or text/csv is asked, in UTF-8", given)}
	}
	return form, nil
}

// ingestReady says whether events can be taken.
func (a *api) ingestReady(w http.ResponseWriter, _ *http.Request) error {
	if why := a.Events.Unavailable(); why != "" {
		return unavailable(why)
	}
	return sendJSON(w, state{"ready"})
}
