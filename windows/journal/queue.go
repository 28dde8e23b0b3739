package journal

import "sync"

// queue holds the requests that wait for the writer. It is bounded in bytes,
// those included that the writer has taken and not finished.
type queue struct {
	limit   int64
	metrics *Metrics

	mu      sync.Mutex // guards what follows
	filled  sync.Cond
	waiting []*request
	bytes   int64
	refusal error // why nothing is taken at present; nil: it is
	closed  bool
}

func newQueue(limit int64, metrics *Metrics) *queue {
	q := &queue{limit: limit, metrics: metrics}
	q.filled.L = &q.mu
	return q
}

// put adds a request, or says at once why it can't. A group that is larger than
// the queue is taken when there is no other.
func (q *queue) put(r *request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case q.refusal != nil:
		return q.refusal
	case q.bytes > 0 && q.bytes+r.size() > q.limit:
		return ErrFull
	}
	q.bytes += r.size()
	q.metrics.queued(q.bytes)
	q.waiting = append(q.waiting, r)
	q.filled.Signal()
	return nil
}

// take moves what waits to the end of into. It blocks while both are empty, and
// returns false once they are and the queue is closed.
func (q *queue) take(into []*request) ([]*request, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && len(into) == 0 {
		if q.closed {
			return nil, false
		}
		q.filled.Wait()
	}
	into = append(into, q.waiting...)
	clear(q.waiting)
	q.waiting = q.waiting[:0]
	return into, true
}

// finish hands requests their outcome.
func (q *queue) finish(batch []*request, err error) {
	bytes := int64(0)
	for _, r := range batch {
		bytes += r.size()
	}
	q.mu.Lock()
	q.bytes -= bytes
	q.metrics.queued(q.bytes)
	q.mu.Unlock()
	for _, r := range batch {
		r.done <- err
	}
}

// refuse takes nothing more, because of err, and fails what waits.
func (q *queue) refuse(err error) {
	q.mu.Lock()
	q.refusal = err
	rest := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	q.finish(rest, err)
}

// accept ends refuse.
func (q *queue) accept() {
	q.mu.Lock()
	q.refusal = nil
	q.mu.Unlock()
}

// close takes nothing more; what waits is still written.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.filled.Signal()
	q.mu.Unlock()
}
