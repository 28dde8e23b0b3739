package ingest

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"tidemark/sketches"
	"tidemark/windows"
)

// storedRecords draws records as an Accepter makes them.
func storedRecords(t *rapid.T) stored {
	text := func(label string, least, most int) []byte {
		return rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, label)
	}
	maybe := func(label string, most int) []byte {
		if rapid.Bool().Draw(t, label+" there") {
			return text(label, 1, most)
		}
		return nil
	}
	if rapid.IntRange(0, 9).Draw(t, "malformed") == 0 {
		return stored{reason: text("reason", 1, MaxReason)}
	}
	s := stored{
		item: text("item", 1, 40), typ: text("type", 1, MaxType),
		info: windows.Info{Title: maybe("title", MaxTitle), URL: maybe("url", 40), Image: maybe("image", 40)},
	}
	hash := func(label string, into *uint64) bool {
		if !rapid.Bool().Draw(t, label) {
			return false
		}
		*into = rapid.Uint64().Draw(t, label)
		s.kid = 42
		return true
	}
	if s.hasTime = rapid.Bool().Draw(t, "has time"); s.hasTime {
		s.time = rapid.Int64Range(0, windows.MaxTime-1).Draw(t, "time")
	}
	s.history = rapid.Bool().Draw(t, "history")
	s.hasUser, s.hasID, s.hasOwner = hash("user", &s.user), hash("id", &s.id), hash("owner", &s.owner)
	if s.hasWatched = rapid.Bool().Draw(t, "has watched"); s.hasWatched {
		s.watched = rapid.Float64().Draw(t, "watched")
	}
	if s.botKnown = rapid.Bool().Draw(t, "bot known"); s.botKnown {
		s.bot = rapid.Bool().Draw(t, "bot")
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 20, 64), 0, 4, func(n string) string { return n }).Draw(t, "dimensions") {
		s.dims = append(s.dims, storedDim{[]byte(name), text("value", 1, MaxDimension)})
	}
	if rapid.Bool().Draw(t, "imported") {
		s.imported = Imported{rapid.StringN(1, 30, MaxImport).Draw(t, "import"), rapid.Int64Range(1, math.MaxInt64).Draw(t, "through")}
	}
	return s
}

var storedAlike = cmp.Options{cmp.AllowUnexported(stored{}, storedDim{}), cmpopts.EquateEmpty(), cmpopts.EquateNaNs()}

func TestStoredRoundTrip(t *testing.T) {
	var got stored // used again, as a reader does
	rapid.Check(t, func(t *rapid.T) {
		want := storedRecords(t)
		b := want.append(nil)
		if len(b) > want.size() {
			t.Fatalf("%d bytes, said to be at most %d", len(b), want.size())
		}
		if reason := got.parse(b); reason != "" {
			t.Fatal(reason)
		}
		if d := cmp.Diff(want, got, storedAlike); d != "" {
			t.Fatal(d)
		}
		if again := got.append(nil); !bytes.Equal(again, b) {
			t.Fatalf("%x, written again %x", b, again)
		}
		// What a later build adds is skipped.
		if want.reason == nil {
			tag := rapid.ByteRange(tagImported+1, 127).Draw(t, "tag")
			b = append(append(b, tag, 3), "new"...)
			if reason := got.parse(b); reason != "" {
				t.Fatal(reason)
			}
			if d := cmp.Diff(want, got, storedAlike); d != "" {
				t.Fatal(d)
			}
		}
		// No part of it is another record, unless it ends where what may follow does.
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if got.parse(b[:cut]) == "" && !bytes.Equal(got.append(nil), b[:cut]) {
			t.Fatalf("cut to %d bytes it is another record", cut)
		}
	})
}

const v, noFlags = string(rune(storedVersion)), "\x00"

// notStored are payloads that are no records.
var notStored = []struct{ name, payload, want string }{
	{"nothing", "", reasonStored},
	{"version alone", v, reasonStored},
	{"later version", "\x02\x00", reasonVersion},
	{"version 0", "\x00\x00\x01a\x01v", reasonVersion},
	{"unknown flag", v + "\x40\x01a\x01v", reasonVersion},
	{"no item", v + noFlags, reasonStored},
	{"empty item", v + noFlags + "\x00\x01v", reasonStored},
	{"no type", v + noFlags + "\x01a", reasonStored},
	{"empty type", v + noFlags + "\x01a\x00", reasonStored},
	{"item cut short", v + noFlags + "\x05a", reasonStored},
	{"item too long", v + noFlags + "\x81\x08" + strings.Repeat("a", MaxItem+1) + "\x01v", reasonStored},
	{"type too long", v + noFlags + "\x01a\x41" + strings.Repeat("v", MaxType+1), reasonStored},
	{"length that wraps", v + noFlags + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a\x01v", reasonStored},
	{"length of eleven bytes", v + noFlags + strings.Repeat("\xff", 10) + "\x01a", reasonStored},
	{"time cut short", v + "\x01\x80", reasonStored},
	{"time of 2106", v + "\x01\x80\xf0\xb3\xbd\xf4\x7c\x01a\x01v", reasonStored},
	{"hash without a key", v + "\x02\x01\x02\x03", reasonStored},
	{"hash cut short", v + "\x02" + "12345678" + "1234567", reasonStored},
	{"malformed without a reason", v + "\x10", reasonStored},
	{"malformed for nothing", v + "\x10\x00", reasonStored},
	{"malformed with more", v + "\x10\x01a\x01", reasonStored},
	{"malformed with a user", v + "\x12\x01a", reasonStored},
	{"malformed of history", v + "\x30\x01a", reasonStored},
	{"reason too long", v + "\x10\x81\x02" + strings.Repeat("r", MaxReason+1), reasonStored},
	{"tag without a value", v + noFlags + "\x01a\x01v\x07", reasonStored},
	{"tag cut short", v + noFlags + "\x01a\x01v\x80", reasonStored},
	{"unknown tag cut short", v + noFlags + "\x01a\x01v\x63\x02x", reasonStored},
	{"title twice", v + noFlags + "\x01a\x01v\x01\x01t\x01\x01t", reasonStored},
	{"empty title", v + noFlags + "\x01a\x01v\x01\x00", reasonStored},
	{"title too long", v + noFlags + "\x01a\x01v\x01\x81\x08" + strings.Repeat("t", MaxTitle+1), reasonStored},
	{"watched of 7 bytes", v + noFlags + "\x01a\x01v\x04\x071234567", reasonStored},
	{"watched of 9 bytes", v + noFlags + "\x01a\x01v\x04\x09123456789", reasonStored},
	{"bot of 2", v + noFlags + "\x01a\x01v\x05\x01\x02", reasonStored},
	{"bot twice", v + noFlags + "\x01a\x01v\x05\x01\x00\x05\x01\x01", reasonStored},
	{"dimension without a name", v + noFlags + "\x01a\x01v\x06\x02\x00x", reasonStored},
	{"dimension without a value", v + noFlags + "\x01a\x01v\x06\x02\x01x", reasonStored},
	{"import without a name", v + noFlags + "\x01a\x01v\x0b\x01\x05", reasonStored},
	{"import up to nothing", v + noFlags + "\x01a\x01v\x0b\x02\x00x", reasonStored},
	{"import twice", v + noFlags + "\x01a\x01v\x0b\x02\x05x\x0b\x02\x05x", reasonStored},
	{"dimension twice", v + noFlags + "\x01a\x01v\x06\x03\x01xy\x06\x03\x01xz", reasonStored},
}

func TestWhatIsNoRecord(t *testing.T) {
	for _, tt := range notStored {
		if got := new(stored).parse([]byte(tt.payload)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := new(stored).parse([]byte(v + noFlags + "\x01a\x01v")); got != "" {
		t.Errorf("the smallest record: %s", got)
	}
}

func FuzzStored(f *testing.F) {
	for _, tt := range notStored {
		f.Add([]byte(tt.payload))
	}
	full := stored{
		time: 5, hasTime: true, history: true, kid: sketches.KeyID(7), user: 1, id: 2, owner: 3, hasUser: true, hasID: true, hasOwner: true,
		item: []byte("item"), typ: []byte("view"), info: windows.Info{Title: []byte("t"), URL: []byte("u"), Image: []byte("i")},
		watched: math.Pi, hasWatched: true, bot: true, botKnown: true, dims: []storedDim{{[]byte("country"), []byte("DE")}},
		imported: Imported{"import", 5},
	}
	f.Add(full.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s, again stored
		if s.parse(b) != "" {
			return
		}
		if reason := again.parse(s.append(nil)); reason != "" {
			t.Fatalf("%x, written again: %s", b, reason)
		}
		if d := cmp.Diff(s, again, storedAlike); d != "" {
			t.Fatal(d)
		}
	})
}
