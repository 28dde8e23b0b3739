package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"tidemark/queries"
)

// question is what a URL asks. Two are the same if their keys are.
type question struct {
	path   string // below /v1/
	values url.Values
	key    string // path and parameters in one order
}

// newQuestion reads a query string.
func newQuestion(path, query string) (question, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return question{}, &problem{Status: 400, Detail: fmt.Sprintf("the query string is malformed: %v", err)}
	}
	return question{path: path, values: values, key: path + "?" + values.Encode()}, nil
}

// questionOf reads the URL of a question: /v1/top?last=5m.
func questionOf(target string) (question, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return question{}, &problem{Status: 400, Detail: "url: the path and parameters of a question are asked, such as /v1/top?last=5m", Parameter: "url"}
	}
	for _, path := range queries.Paths {
		if u.Path == "/v1/"+path {
			return newQuestion(path, u.RawQuery)
		}
	}
	paths := make([]string, len(queries.Paths))
	for i, path := range queries.Paths {
		paths[i] = "/v1/" + path
	}
	return question{}, &problem{Status: 404, Detail: "url: " + noSuchPath(u.Path, paths), Parameter: "url"}
}

// maxAge is how old an answer may be that is given again: who asks the same at the
// same time shares one. It begins when the answer does, so that whoever asks later
// than that sees all that was counted before.
const maxAge = 100 * time.Millisecond

// answers asks the questions.
type answers struct {
	ask     func(ctx context.Context, path string, values url.Values, now time.Time) (queries.Reply, error)
	running chan struct{} // holds one for each question under way
	logger  *slog.Logger

	mu     sync.Mutex
	recent map[string]*answer // by the question's key: those that are young enough
}

// answer is one that is being made, or was.
type answer struct {
	began   time.Time
	cancel  context.CancelFunc
	waiting int           // who wants it; guarded by answers.mu
	done    chan struct{} // closed once it is made

	reply queries.Reply
	err   error
	json  func() ([]byte, error) // encoded once
}

func newAnswers(q Questions, running int, logger *slog.Logger) *answers {
	a := &answers{running: make(chan struct{}, running), logger: logger, recent: make(map[string]*answer)}
	if q != nil {
		a.ask = q.Ask
	}
	return a
}

// get returns an answer that is at most maxAge old. It is stopped when nobody waits
// for it any more.
func (a *answers) get(ctx context.Context, q question) (*answer, error) {
	x := a.join(ctx, q)
	defer a.leave(q, x)
	select {
	case <-x.done:
		return x, x.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *answers) join(ctx context.Context, q question) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.recent[q.key]; x != nil && time.Since(x.began) <= maxAge {
		x.waiting++
		return x
	}
	x := &answer{began: time.Now(), waiting: 1, done: make(chan struct{})}
	ctx, x.cancel = context.WithTimeout(context.WithoutCancel(ctx), questionTimeout)
	a.recent[q.key] = x
	go a.make(ctx, q, x)
	return x
}

func (a *answers) leave(q question, x *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x.waiting--; x.waiting > 0 {
		return
	}
	x.cancel()
	select {
	case <-x.done:
	default:
		a.forget(q, x) // it ends unmade
	}
}

// forget takes an answer out of the recent ones; mu is held.
func (a *answers) forget(q question, x *answer) {
	if a.recent[q.key] == x {
		delete(a.recent, q.key)
	}
}

func (a *answers) make(ctx context.Context, q question, x *answer) {
	defer x.cancel()
	x.reply, x.err = a.reply(ctx, q)
	x.json = sync.OnceValues(func() ([]byte, error) { return json.Marshal(x.reply) })
	close(x.done)
	time.AfterFunc(maxAge-time.Since(x.began), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.forget(q, x)
	})
}

var errPanic = errors.New("a question panicked")

func (a *answers) reply(ctx context.Context, q question) (reply queries.Reply, err error) {
	defer func() {
		if x := recover(); x != nil {
			a.logger.ErrorContext(ctx, "question panicked", "question", q.key, "panic", x, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	select {
	case a.running <- struct{}{}:
		defer func() { <-a.running }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return a.ask(ctx, q.path, q.values, time.Now())
}
