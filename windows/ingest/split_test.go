package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sharedDecoder is made once, since fuzzing would do little else.
var sharedDecoder = sync.OnceValue(func() *decoder { return testDecoder("country") })

// readAll reads the records of data, which comes in pieces of the sizes that size
// returns. What is not there yet is full of quotes.
func readAll(t interface{ Fatalf(string, ...any) }, f format, data []byte, size func() int) (records []string) {
	d := sharedDecoder()
	d.record.arena = nil
	buf := bytes.Repeat([]byte{'"'}, len(data)+2*slack)
	pos, end := 0, 0
	for steps := 0; ; steps++ {
		if steps > 3*len(data)+10 {
			t.Fatalf("no end: at %d of %d after %q", pos, len(data), records)
		}
		buf[end] = 0
		eof := end == len(data)
		p := f.next(d, buf, pos, end, eof, true)
		if p.next < pos || p.next > end {
			t.Fatalf("from %d to %d of %d", pos, p.next, end)
		}
		pos = p.next
		switch p.found {
		case aRecord:
			records = append(records, show(&d.record))
		case aFault:
			records = append(records, p.reason)
		case more:
			if eof {
				return records
			}
			n := min(max(size(), 1), len(data)-end)
			copy(buf[end:], data[end:end+n])
			end += n
		default:
		}
	}
}

// anyhow reads the records of data at once and in pieces, and fails if that makes
// a difference.
func anyhow(t interface{ Fatalf(string, ...any) }, f func() format, data []byte) []string {
	whole := readAll(t, f(), data, func() int { return len(data) })
	r := rand.New(rand.NewPCG(uint64(len(data)), 0))
	for _, size := range []func() int{
		func() int { return 1 },
		func() int { return 1 + r.IntN(7) },
		func() int { return 1 + r.IntN(1+len(data)) },
	} {
		if diff := cmp.Diff(whole, readAll(t, f(), data, size)); diff != "" {
			t.Fatalf("%q: pieces make a difference: %s", data, diff)
		}
	}
	return whole
}

var valueFiles = []struct {
	name, data string
	array      bool
	want       []string
}{
	{"none", `[]`, true, nil},
	{"none, with spaces", " [ \n ] \n", true, nil},
	{"two", `[{"item":"a"},{"item":"b"}]`, true, []string{"item=a", "item=b"}},
	{"a line each", "[\n {\"item\":\"a\"},\n {\"item\":\"b\"}\n]\n", true, []string{"item=a", "item=b"}},
	{"over lines", "[{\n\"item\"\n:\n\"a\"\n}\n]", true, []string{"item=a"}},
	{"brackets in strings", `[{"item":"],[{\"}"},{"item":"\\"},{"item":"b"}]`, true, []string{`item=],[{"}`, `item=\`, "item=b"}},
	{"nested", `[{"item":"a","x":[1,[2,{"y":"]"}],3]},{"item":"b"}]`, true, []string{"item=a", "item=b"}},
	{"no objects", `[1,"a,b",null,[2,3],{"item":"b"}]`, true, []string{reasonNotObject, reasonNotObject, reasonNotObject, reasonNotObject, "item=b"}},
	{"holes", `[,{"item":"a"},,{"item":"b"},]`, true, []string{reasonNotObject, "item=a", reasonNotObject, "item=b", reasonNotObject}},
	{"wrong brackets", `[{"item":"a"]},{"item":"b"}]`, true, []string{reasonJSON, "item=b"}},
	{"closed once too often", `[{"item":"a"}},{"item":"b"}]`, true, []string{reasonAfter, "item=b"}},
	{"not closed", `[{"item":"a"},{"item":"b"}`, true, []string{"item=a", reasonArrayCut}},
	{"cut in a string", `[{"item":"a"},{"item":"b`, true, []string{"item=a", reasonArrayCut}},
	{"cut after a comma", `[{"item":"a"},`, true, []string{"item=a", reasonArrayCut}},
	{"cut at once", `[`, true, []string{reasonArrayCut}},
	{"two arrays", "[{\"item\":\"a\"}]\n[{\"item\":\"b\"}]", true, []string{"item=a", "item=b"}},
	{"lines behind", "[{\"item\":\"a\"}]\n{\"item\":\"b\"}\n\n[\n", true, []string{"item=a", "item=b", reasonNotObject}},
	{"something behind", `[{"item":"a"}],{"item":"b"}`, true, []string{"item=a", reasonNotObject}},

	{"one over lines", "{\n  \"item\": \"a\"\n}\n", false, []string{"item=a"}},
	{"several", "{\n\"item\": \"a\"}\n{\n\"item\":\n\"b\"}{\n\"item\":\"c\"\n}", false, []string{"item=a", "item=b", "item=c"}},
	{"braces in strings", "{\n\"item\": \"}{\\\"\"}\n{\n\"item\":\"b\"}", false, []string{`item=}{"`, "item=b"}},
	{"cut", "{\n\"item\": \"a\"}\n{\n\"item\":\"b\"", false, []string{"item=a", reasonCut}},
	{"lines in between", "{\n\"item\": \"a\"}\nfoo\n{\n\"item\":\"b\"}\n,\n{\"item\":\"c\"}", false, []string{"item=a", reasonNotObject, "item=b", reasonNotObject, "item=c"}},
}

func TestValues(t *testing.T) {
	for _, tt := range valueFiles {
		got := anyhow(t, func() format { return &values{array: tt.array} }, []byte(tt.data))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s: %s", tt.name, tt.data, diff)
		}
	}
}

func TestLines(t *testing.T) {
	data := "{\"item\":\"a\"}\n\n  \t\r\n{\"item\":\"b\"}\r\n\x00\x00\n{\"item\":\"c\"}\n{\"item\":\"d\""
	want := []string{"item=a", "item=b", reasonNotObject, "item=c", reasonCut}
	if diff := cmp.Diff(want, anyhow(t, func() format { return &lines{} }, []byte(data))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"item=d"}, anyhow(t, func() format { return &lines{} }, []byte(`{"item":"d"}`))); diff != "" {
		t.Error(diff)
	}
}

// A record of one byte more than MaxRecord is malformed, whatever the format and
// however it comes, and the ones around it count.
func TestLongRecords(t *testing.T) {
	object := func(size int) string {
		const begin, end = `{"item":"long","x":"`, `"}`
		return begin + strings.Repeat("x", size-len(begin)-len(end)) + end
	}
	cell := func(size int) string { return "long," + strings.Repeat("x", size-len("long,")) }
	header := func() format {
		f, _, _, err := newRows([]byte("item,x\n"), true, fieldNames(nil))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, tt := range []struct {
		name   string
		format func() format
		data   string
		record func(size int) string
	}{
		{"lines", func() format { return &lines{} }, "{\"item\":\"a\"}\n%s\n{\"item\":\"b\"}\n", object},
		{"array", func() format { return &values{array: true} }, `[{"item":"a"},%s,{"item":"b"}]`, object},
		{"objects", func() format { return &values{} }, "{\n\"item\":\"a\"}\n%s\n{\"item\":\"b\"}", object},
		{"rows", header, "a,\n%s\nb,\n", cell},
	} {
		for size, want := range map[int]string{MaxRecord: "item=long", MaxRecord + 1: reasonLong, 3 * MaxRecord: reasonLong} {
			data := fmt.Appendf(nil, tt.data, tt.record(size))
			for _, piece := range []int{len(data), 1 << 20, 100_000} {
				got := readAll(t, tt.format(), data, func() int { return piece })
				if diff := cmp.Diff([]string{"item=a", want, "item=b"}, got); diff != "" {
					t.Errorf("%s of %d bytes in pieces of %d: %s", tt.name, size, piece, diff)
				}
			}
		}
	}
}

// FuzzValues reads anything as an array and as objects, at once and in pieces.
// The elements of what is an array of JSON are those that encoding/json finds.
func FuzzValues(f *testing.F) {
	for _, tt := range valueFiles {
		f.Add([]byte(tt.data), tt.array)
	}
	f.Add([]byte("null"), true)
	f.Fuzz(func(t *testing.T, data []byte, array bool) {
		got := anyhow(t, func() format { return &values{array: array} }, data)
		var elements []json.RawMessage
		if !array || json.Unmarshal(data, &elements) != nil || elements == nil { // null is no array
			return
		}
		var want []string
		d := testDecoder("country")
		for _, e := range elements {
			d.strictly(e)
			want = append(want, show(&d.record))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: %s", data, diff)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"item\":\"a\"}\n\n{\"item\":\"b\",\"x\":\"\\n\"}\n{\"item\":\"c\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var want []string
		d := testDecoder("country")
		for line := range bytes.SplitSeq(data, []byte{'\n'}) {
			if len(bytes.Trim(line, " \t\r")) > 0 {
				d.strictly(line)
				want = append(want, show(&d.record))
			}
		}
		if diff := cmp.Diff(want, anyhow(t, func() format { return &lines{} }, data)); diff != "" {
			t.Fatalf("%q: %s", data, diff)
		}
	})
}
