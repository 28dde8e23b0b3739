package web

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"

	"tidemark/queries"
)

// Questions answers questions: a queries.Engine.
type Questions interface {
	// Ask answers the question that a path below /v1/ and its parameters make. A
	// *queries.Fault is the client's; any other error is ours.
	Ask(ctx context.Context, path string, values url.Values, now time.Time) (queries.Reply, error)
}

// Config is what a handler needs.
type Config struct {
	Questions Questions
	// Ready says why questions cannot be answered, if they can't.
	Ready func(context.Context) error
	// Events takes events in. It may be nil: then there is nobody to take them.
	Events Acceptor
	// Backup writes a copy of the data as a tar. It may be nil: then there is none to be had.
	Backup func(ctx context.Context, w io.Writer) error
	// Metrics serves /metrics; Requests measures what is asked. Either may be nil.
	Metrics  http.Handler
	Requests *Metrics
	Logger   *slog.Logger
}

const (
	// questionTimeout is how long a question may take, its waiting included.
	questionTimeout = 30 * time.Second
	// perCPU is how many questions run at once for each processor: more than one,
	// since they wait for the disk.
	perCPU = 4
)

// New returns the handler of all paths.
func New(cfg Config) http.Handler {
	a := &api{Config: cfg, running: make(chan struct{}, perCPU*runtime.GOMAXPROCS(0))}
	mux := http.NewServeMux()
	for _, path := range queries.Paths {
		a.serve(mux, "/v1/"+path, func(w http.ResponseWriter, r *http.Request) error { return a.question(w, r, path) })
	}
	a.serve(mux, "/healthz", func(w http.ResponseWriter, _ *http.Request) error { return sendJSON(w, state{"alive"}) })
	a.serve(mux, "/readyz", a.ready)
	a.serve(mux, "/openapi.json", sendDocument)
	if cfg.Metrics != nil {
		a.serve(mux, "/metrics", func(w http.ResponseWriter, r *http.Request) error {
			cfg.Metrics.ServeHTTP(w, r)
			return nil
		})
	}
	if cfg.Backup != nil {
		a.paths = append(a.paths, "/v1/backup")
		mux.Handle("/v1/backup", a.handle("/v1/backup", []string{http.MethodGet}, a.backup))
	}
	if cfg.Events != nil {
		a.sameOrigin = http.NewCrossOriginProtection()
		a.serve(mux, "/readyz/ingest", a.ingestReady)
		a.paths = append(a.paths, "/v1/events")
		mux.Handle("/v1/events", a.handle("/v1/events", []string{http.MethodPost}, a.events))
	}
	mux.Handle("/", a.handle("", reading, a.nowhere))
	return mux
}

// serve handles a path.
func (a *api) serve(mux *http.ServeMux, path string, h func(http.ResponseWriter, *http.Request) error) {
	a.paths = append(a.paths, path)
	mux.Handle(path, a.handle(path, reading, h))
}

// reading is the methods of what changes nothing.
var reading = []string{http.MethodGet, http.MethodHead}

type api struct {
	Config
	running chan struct{} // holds one for each question under way
	paths   []string      // that there are

	// sameOrigin keeps web pages of others from sending events in the name of whoever
	// looks at them.
	sameOrigin *http.CrossOriginProtection
}

// question answers GET /v1/PATH.
func (a *api) question(w http.ResponseWriter, r *http.Request, path string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("the query string is malformed: %v", err)}
	}
	ctx, cancel := context.WithTimeout(r.Context(), questionTimeout)
	defer cancel()
	select {
	case a.running <- struct{}{}:
		defer func() { <-a.running }()
	case <-ctx.Done():
		return ctx.Err()
	}
	reply, err := a.Questions.Ask(ctx, path, values, time.Now())
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if prefersCSV(r.Header.Values("Accept")) {
		return sendCSV(w, reply.Table())
	}
	return sendJSON(w, reply)
}

// state is the answer of the health checks.
type state struct {
	Status string `json:"status"`
}

func (a *api) ready(w http.ResponseWriter, r *http.Request) error {
	if err := a.Ready(r.Context()); err != nil {
		return &problem{Status: http.StatusServiceUnavailable, Detail: "questions cannot be answered now", cause: err, retryAfter: time.Second}
	}
	return sendJSON(w, state{"ready"})
}

// nowhere answers what no path matches.
func (a *api) nowhere(_ http.ResponseWriter, r *http.Request) error {
	detail := "no such path."
	if nearest := queries.Nearest(r.URL.Path, a.paths); nearest != "" {
		detail = "no such path; did you mean " + nearest + "?"
	}
	return &problem{Status: http.StatusNotFound, Detail: detail + " There are " + strings.Join(a.paths, ", ")}
}
