package journal

import "context"

// Append adds the records to the log as one group, and returns once it is synced;
// then each record has its Offset and Stamp. Payloads are copied at once: they may
// be used again when Append returns. It is safe for concurrent use.
//
// The error wraps ErrFull, ErrUnavailable, ErrTooLarge, ErrReadOnly or ErrClosed;
// nothing was taken then, but for ErrUnavailable, which says more. A ctx that ends
// ends the wait alone: the group may be taken, whole.
func (j *Journal) Append(ctx context.Context, records []Record) error {
	if j.opts.ReadOnly {
		return ErrReadOnly
	}
	if len(records) == 0 {
		return nil
	}
	r := j.requests.get()
	if err := r.encode(records, j.partitions, j.salt); err != nil {
		j.requests.put(r)
		return err
	}
	if err := j.queue.put(r); err != nil {
		j.requests.put(r)
		j.opts.Metrics.failed(err)
		return err
	}
	select {
	case err := <-r.done:
		if err == nil {
			r.answer(records)
		}
		j.opts.Metrics.failed(err)
		j.requests.put(r)
		return err
	case <-ctx.Done():
		return ctx.Err() // the writer has the request
	}
}
