package windows

import (
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"tidemark/sketches"
)

// Info is what an event says of its item beside being counted: nil where it says
// nothing. The slices are borrowed like those of the Event.
type Info struct{ Title, URL, Image []byte }

// Text is a title, an url or the address of an image, with the event time (Unix
// ms) at which it was said last.
type Text struct {
	At    int64
	Value string
}

// Before reports whether o holds instead of t: it is later, or of two of one time
// the one with the higher bytes. So texts can be merged in any order.
func (t Text) Before(o Text) bool {
	if t.At != o.At {
		return t.At < o.At
	}
	return t.Value < o.Value
}

// ItemInfo is the latest that was said of an item.
type ItemInfo struct {
	Item              string
	Title, URL, Image Text
}

// Merge takes what o says later, field by field. Both are of one item.
func (i *ItemInfo) Merge(o ItemInfo) {
	for _, f := range []struct {
		have *Text
		more Text
	}{{&i.Title, o.Title}, {&i.URL, o.URL}, {&i.Image, o.Image}} {
		if f.have.Before(f.more) {
			*f.have = f.more
		}
	}
}

// infos gathers what the events of a partition say of items between two cuts.
// Most events say what the one before said: those cost a look-up and nothing in
// the seal. What they lose is only that the text was said again, so a text that
// another partition saw in between can win over it.
type infos struct {
	changed map[string]*ItemInfo
	known   map[sketches.Hash128]knownInfo
}

// knownInfo is what was said of an item last.
type knownInfo [3]struct {
	text uint64 // hash
	at   int64
}

// maxKnown bounds the items whose texts are remembered; then all are forgotten,
// and each is sealed once more when it is said again.
const maxKnown = 1 << 16

// observe takes what an event says of its item, and returns the memory that took.
func (f *infos) observe(ev *Event) (bytes int) {
	if f.known == nil || len(f.known) >= maxKnown {
		f.known = make(map[sketches.Hash128]knownInfo)
	}
	known := f.known[ev.ItemHash]
	defer func() { f.known[ev.ItemHash] = known }()
	for i, text := range [...][]byte{ev.Info.Title, ev.Info.URL, ev.Info.Image} {
		if text == nil {
			continue
		}
		k, hash := &known[i], xxh3.Hash(text)
		switch {
		case k.text == hash:
			k.at = max(k.at, ev.Time)
			continue
		case ev.Time < k.at:
			continue
		}
		k.text, k.at = hash, ev.Time
		bytes += f.change(ev, i, text)
	}
	return bytes
}

func (f *infos) change(ev *Event, field int, text []byte) (bytes int) {
	info := f.changed[string(ev.Item)]
	if info == nil {
		if f.changed == nil {
			f.changed = make(map[string]*ItemInfo)
		}
		info = &ItemInfo{Item: string(ev.Item)}
		f.changed[info.Item] = info
		bytes = infoBytes + len(info.Item)
	}
	said := Text{At: ev.Time, Value: string(text)}
	have := [...]*Text{&info.Title, &info.URL, &info.Image}[field]
	if have.Before(said) {
		*have = said
	}
	return bytes + len(text)
}

// infoBytes is what an item takes among the changed ones, beside its texts.
const infoBytes = 192

// take returns what has changed, by item, and forgets it.
func (f *infos) take() []ItemInfo {
	out := make([]ItemInfo, 0, len(f.changed))
	for _, info := range f.changed {
		out = append(out, *info)
	}
	slices.SortFunc(out, func(a, b ItemInfo) int { return strings.Compare(a.Item, b.Item) })
	f.changed = nil
	return out
}
