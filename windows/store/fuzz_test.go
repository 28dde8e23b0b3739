package store

import (
	"bytes"
	"fmt"
	"testing"

	"tidemark/sketches"
	"tidemark/windows"
)

// values are the kinds of values there are. decode reads one and writes it again:
// nil where it is refused.
var values = []struct {
	name   string
	decode func(value []byte) []byte
	good   [][]byte
}{
	{"block", recode, blockSeeds()},
	{"list", func(v []byte) []byte {
		var l topList
		if !parseTopList(v, &l) {
			return nil
		}
		return appendTopList(nil, &l)
	}, [][]byte{
		appendTopList(nil, &topList{}),
		appendTopList(nil, &topList{items: []topItem{{2, 9, 9, false}, {5, 9, 3, true}, {4, 1, 1, false}}, maxEvents: 1, maxReached: 7}),
	}},
	{"part", func(v []byte) []byte {
		p, err := parsePart(partKey(7), v)
		if err != nil {
			return nil
		}
		return p.append(nil)
	}, partSeeds()},
	{"position", func(v []byte) []byte {
		p, err := parsePosition(positionKey(testLog, 1), v)
		if err != nil {
			return nil
		}
		return p.append(nil)
	}, [][]byte{
		(&position{}).append(nil),
		(&position{Position: windows.Position{E: 5, To: windows.Pair{F: 3, S: 8}, R: 2, H: windows.Mark{Offset: 7, Hash: 9}}, seq: 4, part: 9, outcomes: []windows.OutcomeCount{{Outcome: windows.Counted, Records: 5}, {Outcome: windows.Malformed, Reason: "x", Records: 1}}}).append(nil),
	}},
	{"log", func(v []byte) []byte {
		l, err := parseLog(logKey(testLog), v)
		if err != nil {
			return nil
		}
		return l.append(nil)
	}, [][]byte{(&Log{}).append(nil), (&Log{Names: []string{"a", ""}, Contents: []string{"c", "d"}, Settings: "x=1", Started: 7, E: []uint64{1, 2}, Done: true}).append(nil)}},
	{"meta", func(v []byte) []byte {
		m, err := parseMeta([]byte{prefixMeta}, v)
		if err != nil {
			return nil
		}
		return m.append(nil)
	}, [][]byte{(&Meta{Format: formatVersion, KeyID: 5, Partitions: 4, ViewTypes: []string{"view"}, Dimensions: []string{"a", "b"}}).append(nil)}},
	{"mark", func(v []byte) []byte {
		j, err := parseJob(markKey(3), v)
		if err != nil {
			return nil
		}
		return j.append(nil)
	}, [][]byte{(&job{level: levelHour, periods: []windows.Minute{0, 60, 180}}).append(nil)}},
	{"waiting seal", func(v []byte) []byte {
		var w Waiting
		if !parseWaiting(v, &w) {
			return nil
		}
		return w.text(panicker{})
	}, [][]byte{waitingSeed()}},
	{"waiting head", func(v []byte) []byte {
		h, err := parseWaitingHead(outboxKey(outboxAt{}, 1, 0), v)
		if err != nil {
			return nil
		}
		return h.append(nil)
	}, [][]byte{(&waitingHead{e: 7, from: windows.Pair{F: 1, S: 2}, to: windows.Pair{F: 3, S: 4}, r: 1, h: windows.Mark{Offset: 3, Hash: 5}, settings: "x", pieces: 2, bytes: 900}).append(nil)}},
	{"delivered", func(v []byte) []byte {
		m, err := parseDelivered(sinkKey("a"), v)
		if err != nil {
			return nil
		}
		return m.append(nil)
	}, [][]byte{delivered{3, 9, windows.Pair{F: 4, S: 8}}.append(nil)}},
	{"texts", func(v []byte) []byte {
		var i windows.ItemInfo
		if parseTexts(textKey(2), v, &i) != nil {
			return nil
		}
		return appendTexts(nil, &i)
	}, [][]byte{appendTexts(nil, &windows.ItemInfo{}), appendTexts(nil, &windows.ItemInfo{Title: windows.Text{At: 5, Value: "t"}, Image: windows.Text{Value: "i"}})}},
	{"series", func(v []byte) []byte {
		s, ok := parseSeries(v)
		if !ok {
			return nil
		}
		return appendSeries(nil, s)
	}, [][]byte{appendSeries(nil, windows.Series{}), appendSeries(nil, windows.Series{Type: "view", Dimension: "country", Value: "DE", Other: windows.OtherType})}},
	{"key", func(v []byte) []byte {
		k, err := parseBlockKey(v)
		if err != nil {
			return nil
		}
		return k.append(nil)
	}, [][]byte{blockKey{level: 3, start: 5, part: 6, row: makeRowKey(7, 8)}.append(nil)}},
}

// recode reads a block and writes its rows again, as one block whatever its size.
func recode(v []byte) []byte {
	b := newBlockReader(v)
	var w blockWriter
	var r record
	for {
		ok, err := b.next(&r)
		if err != nil {
			return nil
		}
		if !ok {
			return w.buf
		}
		n := len(r.tokens) / 4
		if r.dense != nil {
			n = denseShape
		}
		w.head(r.key, r.events, r.reached, r.short, n)
		w.buf = append(append(w.buf, r.tokens...), r.dense...)
	}
}

func blockSeeds() (seeds [][]byte) {
	w := blockWriter{emit: func(_ rowKey, block []byte) error {
		seeds = append(seeds, bytes.Clone(block))
		return nil
	}}
	w.putTokens(makeRowKey(seriesOutcomes, 5<<24), 3, 3, false, nil)
	w.putTokens(makeRowKey(1, itemSite), 1000, 900, false, []uint32{1, 2, 3})
	w.putTokens(makeRowKey(1, 7), 1, 1, true, []uint32{9})
	w.putTokens(makeRowKey(3, 7), 1<<60, 5, false, []uint32{9, 10})
	w.flush()
	w.put(&record{key: makeRowKey(1, 2), events: 5000, reached: 5000, dense: make([]byte, sketches.RegisterCount)})
	w.flush()
	return seeds
}

// panicker is a testing.TB for where there is none.
type panicker struct{ testing.TB }

func (panicker) Helper()           {}
func (panicker) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func waitingSeed() (seed []byte) {
	f := newFeeder(0, feederConfig{dims: []string{"country"}, limits: windows.Limits{Items: 4, Values: 1}})
	for i := range int64(20) {
		e := recordOf(i, windows.Minute(100+i/10), "view", fmt.Sprint(i%7), int(i), fmt.Sprint(i%3))
		e.Info = &windows.Info{Title: []byte("t")}
		f.add(panicker{}, []windows.Event{e})
	}
	f.end(panicker{}, 20)
	return sealText(panicker{}, f.seals[0])
}

func partSeeds() [][]byte {
	roll := part{kind: partRoll, key: 5}
	roll.starts[2] = []presence{{60, 17}}
	seal := part{kind: partSeal, key: 5, seal: sealed{
		Identity: windows.Identity{Log: testLog, Partition: 3, E: 4, To: windows.Pair{F: 9, S: 8}},
		seq:      2, from: windows.Pair{F: 5, S: 8}, r: 1,
	}}
	seal.starts[0] = []presence{{0, 0}, {1, 1}, {70_000_000, 31}}
	seal.starts[4] = []presence{{0, 5}}
	return [][]byte{roll.append(nil), seal.append(nil), (&part{}).append(nil)}
}

// malformed are values that nobody wrote: the good ones cut, lengthened, and with
// each byte changed.
func malformed(good []byte) [][]byte {
	out := [][]byte{nil, {}, append(bytes.Clone(good), 0), bytes.Repeat([]byte{0xff}, 40)}
	for i := range min(len(good), 200) {
		out = append(out, good[:i])
		for _, x := range []byte{0xff, 0x80, 1, good[i] + 1} {
			bad := bytes.Clone(good)
			bad[i] = x
			out = append(out, bad)
		}
	}
	return out
}

// What is read is either refused, or the one encoding of what it says.
func TestValuesHaveOneEncoding(t *testing.T) {
	for _, v := range values {
		t.Run(v.name, func(t *testing.T) {
			for _, good := range v.good {
				if got := v.decode(good); !bytes.Equal(got, good) {
					t.Errorf("%x: read as %x", good, got)
				}
				for _, bad := range malformed(good) {
					if got := v.decode(bad); got != nil && !bytes.Equal(got, bad) {
						t.Errorf("%x: taken for %x", bad, got)
					}
				}
			}
		})
	}
}

func FuzzValues(f *testing.F) {
	for kind, v := range values {
		for _, good := range v.good {
			f.Add(byte(kind), good)
			for i, bad := range malformed(good) {
				if i%7 == 0 {
					f.Add(byte(kind), bad)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, value []byte) {
		v := values[int(kind)%len(values)]
		if got := v.decode(value); got != nil && !bytes.Equal(got, value) {
			t.Errorf("%s %x: taken for %x", v.name, value, got)
		}
	})
}
