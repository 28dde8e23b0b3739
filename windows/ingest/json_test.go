package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// jsonLines are lines, alone in their file, and what they hold: the fields that
// are there, or the reason.
var jsonLines = []struct{ line, want string }{
	{`{"item":"a"}`, `item=a`},
	{`{"item":"a","type":"view","user":"u","id":"1","time":"2026-01-01T00:00:00Z"}`, `item=a type=view user=u id=1 time=1767225600000`},
	{`{"time":1767225600000.5,"item":"a"}`, `item=a time=1767225600000`},
	{`{"item":42,"user":-7,"id":0,"type":1234567890123456789012345678901234567890}`, `item=42 type=1234567890123456789012345678901234567890 user=-7 id=0`},
	{`{"item":"a","user":-0}`, `item=a user=-0`},
	{`{"item":" a ","user":"\ta"}`, `item= a  user=` + "\t" + `a`},
	{`{"item":"a","user":"","id":"","type":""}`, `item=a`},
	{`{"item":"a","user":null,"id":null,"type":null,"time":null,"bot":null,"watched_ms":null,"title":null,"country":null,"x":null}`, `item=a`},
	{`{"item":"a","bot":true,"watched_ms":1.5e3,"owner":"o","ip":"::1","user_agent":"x","referrer":"y"}`, `item=a`},
	{`{"item":"a","title":"T","url":"U","image":7}`, `item=a title=T url=U image=7`},
	{`{"item":"a","title":"` + strings.Repeat("t", MaxTitle+1) + `","url":"U"}`, `item=a url=U dropped=1`},
	{`{"item":"a","country":"DE","device":"x"}`, `item=a country=DE`},
	{`{"item":"a","country":1.50}`, `item=a country=1.50`},
	{`{"item":"a","country":false}`, `item=a country=false`},
	{`{"item":"a","country":""}`, `item=a`},
	{`{"item":"a","x":[1,{"item":"b"},[]],"y":{"z":{}}}`, `item=a`},
	{`{"item":"\u0061\u00e9\ud83d\ude00\u0000\/\"\\"}`, "item=aé😀\x00/\"\\"},
	{`{"\u0069tem":"a"}`, `item=a`},
	{`{"item":"日本語","x":"é"}`, `item=日本語`},
	{"  { \"item\" :\t\"a\" , \"user\": \"u\" }  \r", `item=a user=u`},
	{`{"item":"` + strings.Repeat("i", MaxItem) + `"}`, `item=` + strings.Repeat("i", MaxItem)},
	{`{"item":"` + strings.Repeat(`\u00e9`, MaxItem/2) + `"}`, `item=` + strings.Repeat("é", MaxItem/2)},
	{`{"Item":"a","item":"b"}`, `item=b`},

	{`{}`, `item: missing or empty`},
	{`{"item":""}`, `item: missing or empty`},
	{`{"item":null}`, `item: missing or empty`},
	{`{"Item":"a"}`, `item: missing or empty`},
	{`{"item":1e3}`, `item: not a string or an integer`},
	{`{"item":1.0}`, `item: not a string or an integer`},
	{`{"item":true}`, `item: not a string or an integer`},
	{`{"item":{"item":"a"}}`, `item: not a string or an integer`},
	{`{"item":["a"]}`, `item: not a string or an integer`},
	{`{"item":"` + strings.Repeat("i", MaxItem+1) + `"}`, `item: longer than 1024 bytes`},
	{`{"item":"` + strings.Repeat(`\u00e9`, MaxItem/2) + `a"}`, `item: longer than 1024 bytes`},
	{`{"item":"a","type":"` + strings.Repeat("t", MaxType+1) + `"}`, `type: longer than 64 bytes`},
	{`{"item":"a","user":"` + strings.Repeat("u", MaxUser+1) + `"}`, `user: longer than 256 bytes`},
	{`{"item":"a","user":1` + strings.Repeat("0", MaxUser) + `}`, `user: longer than 256 bytes`},
	{`{"item":"a","id":"` + strings.Repeat("i", MaxID+1) + `"}`, `id: longer than 256 bytes`},
	{`{"item":"a","country":"` + strings.Repeat("c", MaxDimension+1) + `"}`, `country: longer than 256 bytes`},
	{`{"item":"a","country":[]}`, `country: not a string, a number or a bool`},
	{`{"item":"a","user":1e3}`, `user: not a string or an integer`},
	{`{"item":"a","type":false}`, `type: not a string or an integer`},
	{`{"item":"a","time":true}`, `time: not a string or a number; RFC 3339 with a zone or Unix milliseconds are asked`},
	{`{"item":"a","time":"1767225600000"}`, reasonTimeText},
	{`{"item":"a","time":""}`, reasonTimeText},
	{`{"item":"a","time":1767225600}`, reasonTimeSeconds},
	{`{"item":"a","time":NaN}`, `time: not valid JSON`},
	{`{"item":"a","bot":"true"}`, `bot: not true or false`},
	{`{"item":"a","bot":1}`, `bot: not true or false`},
	{`{"item":"a","watched_ms":"5"}`, `watched_ms: not a number`},
	{`{"item":"a","title":["x"]}`, `title: not a string or an integer`},
	{`{"item":"a","ip":1.5}`, `ip: not a string or an integer`},
	{`{"item":"a","item":"a"}`, `item: stands twice`},
	{`{"item":"a","\u0069tem":"a"}`, `item: stands twice`},
	{`{"item":"a","country":"DE","country":null}`, `country: stands twice`},
	{`{"item":"a","x":1,"x":2}`, `record: a name stands twice in an object`},
	{`{"item":"a","x":{"y":1,"y":2}}`, `record: a name stands twice in an object`},
	{`{"item":"a","x":{"item":1,"item":2}}`, `record: a name stands twice in an object`},
	{"{\"item\":\"\xff\"}", `item: not UTF-8`},
	{"{\"item\":\"a\",\"x\":\"\xc3(\"}", `record: not UTF-8`},
	{"{\"item\":\"a\",\"\xff\":1}", `record: not UTF-8`},
	{"{\"item\":\"a\"}\xff", `record: something after the JSON object`},
	{"\xff", `record: not UTF-8`},
	{"{\"item\":\"a\x00\"}", `item: not valid JSON`},
	{"{\"item\":\"a\tb\"}", `item: not valid JSON`},
	{"{\"item\":\"a\"\x00}", `record: not valid JSON`},
	{`{"item":"\ud83d"}`, `item: not valid JSON`},
	{`{"item":"\x"}`, `item: not valid JSON`},
	{`{"item":01}`, `record: not valid JSON`},
	{`{"item":'a'}`, `item: not valid JSON`},
	{`{"item":"a",}`, `record: not valid JSON`},
	{`{"item":"a" "user":"u"}`, `record: not valid JSON`},
	{`{"item" "a"}`, `item: not valid JSON`},
	{`{item:"a"}`, `record: not valid JSON`},
	{`{"item":"a"`, `record: JSON that ends too early`},
	{`{"item":"a`, `record: JSON that ends too early`},
	{`{`, `record: JSON that ends too early`},
	{`{"item":"a"}}`, `record: something after the JSON object`},
	{`{"item":"a"}{"item":"b"}`, `record: something after the JSON object`},
	{`{"item":"a"},`, `record: something after the JSON object`},
	{`[{"item":"a"}]`, `record: not a JSON object`},
	{`"item"`, `record: not a JSON object`},
	{`null`, `record: not a JSON object`},
	{"\u00a0", `record: not a JSON object`},
	{`{"item":"a","x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, `record: not valid JSON`},
}

// show writes what was read of a record.
func show(r *record) string {
	if r.reason != "" {
		return r.reason
	}
	var b strings.Builder
	for _, f := range []struct {
		name  string
		value []byte
	}{
		{"item", r.item},
		{"type", r.typ},
		{"user", r.user},
		{"id", r.id},
		{"title", r.info.Title},
		{"url", r.info.URL},
		{"image", r.info.Image},
		{"country", r.dims[0]},
	} {
		if f.value != nil {
			fmt.Fprintf(&b, " %s=%s", f.name, f.value)
		}
	}
	if r.hasTime {
		fmt.Fprintf(&b, " time=%d", r.time)
	}
	if r.dropped > 0 {
		fmt.Fprintf(&b, " dropped=%d", r.dropped)
	}
	return b.String()[1:]
}

// padded returns a line as the fast pass wants it: an end of line and slack behind.
func padded(line []byte) []byte {
	return append(append(bytes.Clone(line), '\n'), make([]byte, slack)...)
}

func TestJSONLines(t *testing.T) {
	d := testDecoder("country")
	for round := range 3 { // with names that are known and expected, too
		for _, tt := range jsonLines {
			d.json(padded([]byte(tt.line)), 0, len(tt.line))
			if got := show(&d.record); got != tt.want {
				t.Errorf("round %d: %.200s\n got %.200s\nwant %.200s", round, tt.line, got, tt.want)
			}
		}
	}
}

// agree fails if the fast pass accepts a line that the strict library does not, or
// reads other fields, or if the library accepts what encoding/json does not.
func agree(t interface{ Fatalf(string, ...any) }, d *decoder, line []byte) (fast bool) {
	buf := padded(line)
	next, fast := d.fast.decode(buf, 0, &d.record)
	got := ""
	if fast {
		if got = show(&d.record); next != len(line)+1 {
			t.Fatalf("%q: the fast pass ends at %d of %d", line, next, len(line))
		}
	}
	d.record.arena = d.record.arena[:0]
	d.strictly(line)
	want := show(&d.record)
	if fast && got != want {
		t.Fatalf("%q:\n  fast %q\nstrict %q", line, got, want)
	}
	if d.record.reason == "" {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(line, &m); err != nil || !utf8.Valid(line) {
			t.Fatalf("%q: taken as %q; encoding/json: %v", line, want, err)
		}
		var item any
		if err := json.Unmarshal(m["item"], &item); err != nil {
			t.Fatalf("%q: no item for encoding/json: %v", line, err)
		}
		if s, ok := item.(string); ok && s != string(d.record.item) {
			t.Fatalf("%q: item %q; encoding/json: %q", line, d.record.item, s)
		}
	}
	return fast
}

func FuzzJSON(f *testing.F) {
	var all []string
	for _, tt := range jsonLines {
		if len(tt.line) < 1000 {
			f.Add([]byte(tt.line + "\n" + tt.line))
			all = append(all, tt.line)
		}
	}
	f.Add([]byte(strings.Join(all, "\n")))
	f.Add(plainEvents()[:2000])
	f.Add([]byte("{\"a\":1,\"item\":2}\n{\"item\":1}\n{\"a\":1{\"item\":2}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := testDecoder("country")
		for range 2 {
			for line := range bytes.SplitSeq(data, []byte{'\n'}) {
				agree(t, d, line)
			}
		}
	})
}

// Lines put together of pieces, in changing orders and with changing white space,
// most of them right, are read alike by both, whatever the fast pass expects.
func TestFastAndStrictAgree(t *testing.T) {
	plain := rapid.SampledFrom([]string{
		`"a"`, `"b c"`, `"` + strings.Repeat("long ", 10) + `"`, `"é"`, `7`, `-12`, `"2026-01-01T00:00:00Z"`, `null`,
	})
	odd := rapid.SampledFrom([]string{
		`""`, "\"\xff\"", `"\n"`, "\"\t\"", `1`, `-1.5e7`, `01`, `1767225600000`, `1767225600`, `"2026-01-02T00:00:00.5+01:00"`,
		`true`, `false`, `nul`, `{}`, `[1,"]",{"y":[]}]`, `[1,2`, `{"y":1,"y":2}`, `"\u00e9\""`, `"\`, `"a\`, ``, `"a" 1`, `"a":1`, `"`, "\n", `"a",`, `"a"{"x":1`, `1,`, `"\ud800"`,
	})
	names := rapid.SampledFrom([]string{"user", "id", "type", "country", "title", "x", "y", "a longer name than sixteen bytes", "é"})
	others := rapid.SampledFrom([]string{"item", "time", "bot", `\u0078`, "", `"`, "user", "x"})
	spaces := rapid.SampledFrom([]string{"", " ", "\t ", "\r"})
	fasts, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := testDecoder("country")
		var shape []string
		space := ""
		for i := range rapid.IntRange(1, 12).Draw(t, "lines") {
			if i == 0 || rapid.IntRange(0, 3).Draw(t, "other shape") == 0 {
				shape = append(rapid.SliceOfNDistinct(names, 0, 5, rapid.ID).Draw(t, "shape"), "item")
				shape = rapid.Permutation(shape).Draw(t, "order")
				space = spaces.Draw(t, "space")
			}
			flaw := rapid.IntRange(-8, len(shape)-1).Draw(t, "flaw")
			var line strings.Builder
			line.WriteString(space + "{")
			for i, name := range shape {
				value := plain.Draw(t, "value")
				if name == "title" && value == "null" {
					value = `"T"`
				}
				if i == flaw {
					value = odd.Draw(t, "odd value")
					if rapid.Bool().Draw(t, "other name") {
						name = others.Draw(t, "name")
					}
				}
				if i > 0 {
					line.WriteString("," + space)
				}
				line.WriteString(`"` + name + `"` + space + ":" + space + value)
			}
			line.WriteString(space + "}")
			if all++; agree(t, d, []byte(line.String())) {
				fasts++
			}
		}
	})
	if t.Logf("the fast pass took %d of %d lines", fasts, all); fasts*3 < all {
		t.Error("too few to compare")
	}
}

// The fast pass must take what is plain: else it is no pass but a detour.
func TestFastPassTakesPlainLines(t *testing.T) {
	d := testDecoder("country")
	lines := plainEvents()
	lines = append(lines, `{"item":42, "user": -7, "time": 1767225600000, "bot": false, "x": null, "y": 1.5e3, "country": "DE"}
{ "item" : "日本語" , "user" : "u" }
{"a rather long name that nobody has asked for, but that many records may have": "x", "item": "a"}
{"item":"\u00e9\ud83d\ude00\\", "x":"\/", "user":"\""}
{"item":"a","x":[1,{"y":"]\""},[]],"z":{}}
`...)
	for line := range bytes.Lines(lines) {
		for range 2 {
			if _, ok := d.fast.decode(padded(line[:len(line)-1]), 0, &d.record); !ok {
				t.Fatalf("not taken: %s", line)
			}
		}
	}
}

// Names that come once each do not spoil the fast pass for what comes after.
func TestFastPassForgets(t *testing.T) {
	d := testDecoder("country")
	for i := range 1000 {
		agree(t, d, fmt.Appendf(nil, `{"item":"a","name %d":1}`, i))
	}
	for range 2 {
		if !agree(t, d, []byte(`{"item":"a","user":"u","other":1}`)) && d.fast.known > 3 {
			t.Fatal("not taken, though there is room in the table")
		}
	}
	var wide strings.Builder
	wide.WriteString(`{"item":"a"`)
	for i := range 100 {
		fmt.Fprintf(&wide, `,"name %d":%d`, i, i)
	}
	for range 3 {
		d.json(padded([]byte(wide.String()+"}")), 0, wide.Len()+1)
		if d.record.reason != "" || string(d.record.item) != "a" {
			t.Fatal(show(&d.record))
		}
	}
	twice := wide.String() + `,"name 3":1}`
	d.json(padded([]byte(twice)), 0, len(twice))
	if diff := cmp.Diff(reasonTwice, d.record.reason); diff != "" {
		t.Fatal(diff)
	}
}
