package ingest

import (
	"tidemark/sketches"
	"tidemark/windows"
)

// decoder turns records into events. It is used by one goroutine.
type decoder struct {
	hasher     sketches.Hasher
	typ        []byte // of an event without one
	stamp      int64  // of every record, Unix ms
	partitions uint64
	names      map[string]*field // what the names of JSON mean

	fast   fastJSON
	strict strictJSON
	record record
}

func newDecoder(cfg *FilesConfig) *decoder {
	d := &decoder{
		hasher:     cfg.Hasher,
		typ:        []byte(cfg.Type),
		partitions: uint64(cfg.Partitions),
		names:      fieldNames(cfg.Dimensions),
	}
	d.record.dims = make([][]byte, len(cfg.Dimensions))
	d.fast.init(d.names)
	d.strict.init()
	return d
}

// route returns the partition of a record: by user, so that one place sees all
// that a person does; else by event ID, so that one place sees its duplicates;
// else by number, to spread the load. What is malformed has neither.
func (d *decoder) route(offset int64, user, id uint64, r *record) int {
	switch {
	case r.reason != "":
	case len(r.user) > 0:
		return int(user % d.partitions)
	case len(r.id) > 0:
		return int(id % d.partitions)
	}
	return int(uint64(offset) % d.partitions)
}

// emit puts the record, as the one of number offset, into a chunk.
func (d *decoder) emit(c *chunk, offset int64) {
	r := &d.record
	var user, id uint64
	if r.reason == "" {
		if len(r.user) > 0 {
			user = d.hasher.User(r.user)
		}
		if len(r.id) > 0 {
			id = d.hasher.ID(r.id)
		}
	}
	ev := c.add(d.route(offset, user, id, r))
	if r.reason != "" {
		*ev = windows.Event{Offset: offset, Stamp: d.stamp, Reason: r.reason, Outcome: windows.Malformed}
		return
	}
	*ev = windows.Event{
		Offset: offset, Stamp: d.stamp, Time: d.stamp,
		Item: r.item, Type: r.typ,
		ItemHash: d.hasher.Item(r.item),
		User:     user, HasUser: len(r.user) > 0,
		ID: id, HasID: len(r.id) > 0,
	}
	if r.hasTime {
		ev.Time = r.time
	}
	if len(r.typ) == 0 {
		ev.Type = d.typ
	}
	if r.hasDims {
		ev.Dims = c.keepDims(r.dims)
	}
	if r.hasInfo {
		ev.Info = c.keepInfo(r.info)
	}
}
