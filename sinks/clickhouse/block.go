package clickhouse

import (
	"tidemark/sinks"
	"tidemark/windows"
)

// key is what a row of items is about, beside its minute.
type key struct {
	windows.Series
	series uint32 // its number, see writer
	kind   windows.Kind
	item   []byte // of kind Item
}

// keyBuffers are the columns that stand for a key: seriesColumns.
type keyBuffers struct {
	typ, dimension, value words
	rest, kind            numbers[int8]
	item                  texts
}

func (b *keyBuffers) add(k key) {
	b.typ.add(b.typ.number(shown(k.Type, k.Other, windows.OtherType)))
	b.dimension.add(b.dimension.number(k.Dimension))
	b.value.add(b.value.number(shown(k.Value, k.Other, windows.OtherValue)))
	b.rest = append(b.rest, int8(k.Other))
	b.kind = append(b.kind, int8(k.kind))
	b.item.add(k.item)
}

// shown returns a part of a series as the column has it: what stands for the rest is
// told by the column rest, and has a name only to be seen.
func shown(name string, other, part windows.Other) string {
	if other&part != 0 {
		return windows.OtherName
	}
	return name
}

func (b *keyBuffers) all() []buffer {
	return []buffer{&b.typ, &b.dimension, &b.value, &b.rest, &b.kind, &b.item}
}

// identityBuffers are the columns of a seal's identity: identityColumns.
type identityBuffers struct {
	epoch     numbers[uint64]
	partition numbers[uint16]
	floor     numbers[int64]
	offset    numbers[int64]
}

func (b *identityBuffers) add(id windows.Identity) {
	b.epoch = append(b.epoch, id.E)
	b.partition = append(b.partition, uint16(id.Partition))
	b.floor = append(b.floor, seconds(id.To.F))
	b.offset = append(b.offset, id.To.S)
}

func (b *identityBuffers) all() []buffer {
	return []buffer{&b.epoch, &b.partition, &b.floor, &b.offset}
}

// seconds is a minute as DateTime has it.
func seconds(m windows.Minute) int64 { return m.UnixMilli() / 1000 }

// minuteBuffers is a block of item_minutes.
type minuteBuffers struct {
	minute    numbers[int64]
	key       keyBuffers
	events    numbers[uint64]
	beyond    numbers[int64]
	epoch     numbers[uint64]
	partition numbers[uint16]
	ahead     numbers[int32]
	offset    numbers[int64]
}

func (b *minuteBuffers) add(id windows.Identity, m windows.Minute, k key, r windows.Row) {
	b.minute = append(b.minute, seconds(m))
	b.key.add(k)
	b.events = append(b.events, r.Events)
	b.beyond = append(b.beyond, int64(r.Reached-r.Events)) // and so added: modulo 2^64
	b.epoch = append(b.epoch, id.E)
	b.partition = append(b.partition, uint16(id.Partition))
	b.ahead = append(b.ahead, int32(id.To.F)-int32(m)) // both are below 2^27
	b.offset = append(b.offset, id.To.S)
}

func (b *minuteBuffers) rows() int { return len(b.minute) }

func (b *minuteBuffers) all() []buffer {
	out := append([]buffer{&b.minute}, b.key.all()...)
	return append(out, &b.events, &b.beyond, &b.epoch, &b.partition, &b.ahead, &b.offset)
}

// viewerBuffers is a block of item_viewers.
type viewerBuffers struct {
	level   numbers[int8]
	start   numbers[int64]
	key     keyBuffers
	viewers numberLists
}

func (b *viewerBuffers) add(l level, start windows.Minute, k key, viewers []uint32) {
	b.level = append(b.level, int8(l))
	b.start = append(b.start, seconds(start))
	b.key.add(k)
	b.viewers.add(viewers)
}

func (b *viewerBuffers) rows() int { return len(b.start) }

func (b *viewerBuffers) all() []buffer {
	out := append([]buffer{&b.level, &b.start}, b.key.all()...)
	return append(out, &b.viewers)
}

// outcomeBuffers is a block of outcomes.
type outcomeBuffers struct {
	minute          numbers[int64]
	outcome, reason words
	records         numbers[uint64]
	identity        identityBuffers
}

func (b *outcomeBuffers) add(id windows.Identity, m windows.Minute, o windows.OutcomeCount) {
	b.minute = append(b.minute, seconds(m))
	b.outcome.add(b.outcome.number(o.Outcome.String()))
	b.reason.add(b.reason.number(o.Reason))
	b.records = append(b.records, o.Records)
	b.identity.add(id)
}

func (b *outcomeBuffers) rows() int { return len(b.minute) }

func (b *outcomeBuffers) all() []buffer {
	return append([]buffer{&b.minute, &b.outcome, &b.reason, &b.records}, b.identity.all()...)
}

// itemBuffers is a block of items.
type itemBuffers struct {
	item              texts
	title, url, image saidTexts
}

func (b *itemBuffers) add(i windows.ItemInfo) {
	b.item.add([]byte(i.Item))
	b.title.add(i.Title)
	b.url.add(i.URL)
	b.image.add(i.Image)
}

func (b *itemBuffers) rows() int { return len(b.item.ends) }

func (b *itemBuffers) all() []buffer { return []buffer{&b.item, &b.title, &b.url, &b.image} }

// sealBuffers is a block of seals.
type sealBuffers struct {
	identity   identityBuffers
	log        texts
	fromFloor  numbers[int64]
	fromOffset numbers[int64]
	replay     numbers[int64]
	settings   texts
	headOffset numbers[int64]
	headHash   numbers[uint64]
	count      numbers[uint64]
}

func (b *sealBuffers) add(s *sinks.Seal, log string, rows uint64) {
	b.identity.add(s.Identity)
	b.log.add([]byte(log))
	b.fromFloor = append(b.fromFloor, seconds(s.From.F))
	b.fromOffset = append(b.fromOffset, s.From.S)
	b.replay = append(b.replay, s.R)
	b.settings.add([]byte(s.Settings))
	b.headOffset = append(b.headOffset, s.H.Offset)
	b.headHash = append(b.headHash, s.H.Hash)
	b.count = append(b.count, rows)
}

func (b *sealBuffers) rows() int { return len(b.count) }

func (b *sealBuffers) all() []buffer {
	return append(b.identity.all(), &b.log, &b.fromFloor, &b.fromOffset, &b.replay, &b.settings, &b.headOffset, &b.headHash, &b.count)
}
