package web

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"tidemark/queries"
	"tidemark/web/keys"
)

// Questions answers questions: a queries.Engine.
type Questions interface {
	// Ask answers the question that a path below /v1/ and its parameters make. A
	// *queries.Fault is the client's; any other error is ours.
	Ask(ctx context.Context, path string, values url.Values, now time.Time) (queries.Reply, error)
	// Watermark is how far the logs have been read, nil before the first event.
	Watermark() *time.Time
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
	// Live bounds what is watched.
	Live LiveLimits
	// Keys are those of who may do what. It may be nil: then everybody may do all.
	Keys *keys.Ring
	// Origins are those of the web pages of others that may ask and send.
	Origins Origins
	// Proxies are those that are believed whom a request came from.
	Proxies Proxies
	// Limits are those of each client.
	Limits Limits
	// MaxConnections is how many there may be, 0: no limit.
	MaxConnections int
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

// Handler is the handler of all paths.
type Handler struct {
	http.Handler
	live        *hub
	connections *connections
}

// New returns a handler.
func New(cfg Config) *Handler {
	a := &api{
		Config: cfg, answers: newAnswers(cfg.Questions, perCPU*runtime.GOMAXPROCS(0), cfg.Logger),
		limits: newClients(cfg.Limits), refusals: refusals{metrics: cfg.Requests, logger: cfg.Logger, logged: rate.Sometimes{Interval: time.Second}},
		sameOrigin: http.NewCrossOriginProtection(),
	}
	a.live = newHub(a)
	mux := http.NewServeMux()
	for _, path := range queries.Paths {
		a.serve(mux, "/v1/"+path, reading, keys.Read, func(w http.ResponseWriter, r *http.Request) error { return a.question(w, r, path) })
	}
	a.serve(mux, livePath, getting, keys.Read, a.live.socket)
	a.serve(mux, "/healthz", reading, anybody, func(w http.ResponseWriter, _ *http.Request) error { return sendJSON(w, state{"alive"}) })
	a.serve(mux, "/readyz", reading, anybody, a.ready)
	a.serve(mux, "/openapi.json", reading, anybody, sendDocument)
	if cfg.Metrics != nil {
		a.serve(mux, "/metrics", reading, keys.Read, func(w http.ResponseWriter, r *http.Request) error {
			cfg.Metrics.ServeHTTP(w, r)
			return nil
		})
	}
	if cfg.Backup != nil {
		a.serve(mux, "/v1/backup", getting, keys.Admin, a.backup)
	}
	if cfg.Events != nil {
		a.serve(mux, "/readyz/ingest", reading, anybody, a.ingestReady)
		a.serve(mux, "/v1/events", []string{http.MethodPost}, keys.Ingest, a.events)
	}
	a.pages(mux)
	mux.Handle("/", a.handle("", nil, anybody, a.nowhere))
	return &Handler{mux, a.live, newConnections(cfg.MaxConnections, cfg.Requests)}
}

// serve handles a path, for those who have the scope that it needs.
func (a *api) serve(mux *http.ServeMux, path string, methods []string, needs keys.Scope, h func(http.ResponseWriter, *http.Request) error) {
	a.paths = append(a.paths, path)
	mux.Handle(path, a.handle(path, methods, needs, h))
}

// Methods of what changes nothing.
var (
	reading = []string{http.MethodGet, http.MethodHead}
	getting = []string{http.MethodGet}
)

type api struct {
	Config
	answers *answers
	live    *hub
	paths   []string // that there are

	limits   *clients
	refusals refusals

	// sameOrigin keeps web pages of others from sending events in the name of whoever
	// looks at them.
	sameOrigin *http.CrossOriginProtection
}

// question answers GET /v1/PATH, once or as a stream.
func (a *api) question(w http.ResponseWriter, r *http.Request, path string) error {
	q, err := newQuestion(path, r.URL.RawQuery)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	form := preferred(r.Header.Values("Accept"))
	if form == streamType && r.Method == http.MethodGet {
		return a.live.stream(w, r, q)
	}
	x, err := a.answers.get(r.Context(), q)
	if err != nil {
		return err
	}
	if form == csvType {
		return sendCSV(w, x.reply.Table())
	}
	body, err := x.json()
	if err != nil {
		return err
	}
	send(w, http.StatusOK, jsonType, append(slices.Clip(body), '\n'))
	return nil
}

// state is the answer of the health checks.
type state struct {
	Status string `json:"status"`
}

func (a *api) ready(w http.ResponseWriter, r *http.Request) error {
	if err := a.Ready(r.Context()); err != nil {
		return notReady(err)
	}
	return sendJSON(w, state{"ready"})
}

func notReady(cause error) error {
	return &problem{Status: http.StatusServiceUnavailable, Detail: "questions cannot be answered now", cause: cause, retryAfter: time.Second}
}

// nowhere answers what no path matches.
func (a *api) nowhere(_ http.ResponseWriter, r *http.Request) error {
	return &problem{Status: http.StatusNotFound, Detail: noSuchPath(r.URL.Path, a.paths)}
}

func noSuchPath(path string, paths []string) string {
	detail := "no such path."
	if nearest := queries.Nearest(path, paths); nearest != "" {
		detail = "no such path; did you mean " + nearest + "?"
	}
	return detail + " There are " + strings.Join(paths, ", ")
}
