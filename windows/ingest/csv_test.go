package ingest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func rowsOf(t interface{ Fatalf(string, ...any) }, header string) *rows {
	f, _, _, err := newRows([]byte(header+"\n"), true, sharedDecoder().names)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return f
}

func TestRows(t *testing.T) {
	const header = "item,time,user,type,bot,watched_ms,country,x"
	for _, tt := range []struct {
		data string
		want []string
	}{
		{"a,,,,,,,\n", []string{"item=a"}},
		{"a,,,,,,,", []string{"item=a"}},
		{"a,,,,,,,\r\n\r\n\nb,,,,,,,\r", []string{"item=a", "item=b"}},
		{"a,1767225600000,u,view,0,1.5,DE,x\n", []string{"item=a type=view user=u country=DE time=1767225600000"}},
		{"a,2026-01-01T00:00:00Z,u,view,true,12,DE,x\n", []string{"item=a type=view user=u country=DE time=1767225600000"}},
		{" a ,,\t,,,,,\n", []string{"item= a  user=\t"}},
		{"日本語,,é,,,,,\n", []string{"item=日本語 user=é"}},
		{`"a","1767225600000","u","view","1","1","DE","x"` + "\n", []string{"item=a type=view user=u country=DE time=1767225600000"}},
		{`"a,b","","u ""v""","""","false","","",""` + "\r\nb,,,,,,,\n", []string{`item=a,b type=" user=u "v"`, "item=b"}},
		{"\"a\nb\",,\"\r\n\",,,,,\nb,,,,,,,\n", []string{"item=a\nb user=\r\n", "item=b"}},
		{"a\x00b,,,,,,,\n", []string{"item=a\x00b"}},
		{"a\rb,,,,,,,\n", []string{"item=a\rb"}},

		{",,,,,,,\n", []string{reasonItemMissing}},
		{`"",,,,,,,`, []string{reasonItemMissing}},
		{"a,,,,,,\nb,,,,,,,\na,,,,,,,,\n", []string{reasonColumns, "item=b", reasonColumns}},
		{"a\nb,,,,,,,\n", []string{reasonColumns, "item=b"}},
		{"a\xff,,,,,,,\nb,,,,,,,\n", []string{"item: not UTF-8", "item=b"}},
		{"a,,,,,,,\xff\n", []string{reasonUTF8}},
		{"a,,,,,,,,\xff\n", []string{reasonUTF8}},
		{"a,NaN,,,,,,\n", []string{reasonTimeText}},
		{"a, 1767225600000,,,,,,\n", []string{reasonTimeText}},
		{"a,1767225600,,,,,,\n", []string{reasonTimeSeconds}},
		{"a,2026-01-01T00:00:00,,,,,,\n", []string{reasonTimeZone}},
		{"a,,,,yes,,,\n", []string{"bot: not true or false"}},
		{"a,,,,True,,,\n", []string{"bot: not true or false"}},
		{"a,,,,,long,,\n", []string{"watched_ms: not a number"}},
		{strings.Repeat("i", MaxItem+1) + ",,,,,,,\n", []string{"item: longer than 1024 bytes"}},
		{"a,,,,,," + strings.Repeat("c", MaxDimension+1) + ",\n", []string{"country: longer than 256 bytes"}},
		{"a\"b,,,,,,,\nb,,,,,,,\n", []string{reasonQuote, "item=b"}},
		{"\"a\"b,,,,,,,\nb,,,,,,,\n", []string{reasonQuote, "item=b"}},
		{"\"a\" ,,,,,,,\nb,,,,,,,\n", []string{reasonQuote, "item=b"}},
		{"\"a\"\rb,,,,,,,\nb,,,,,,,\n", []string{reasonQuote, "item=b"}},
		{"a,,\"u,,,,,\nb,,,,,,,\nc,,,,,,,", []string{reasonQuote, "item=b", "item=c"}},
		{"a,,\"u,,,,,\nb,,,,,,,\nc,,\"x\",,,,,\n", []string{reasonQuote, "item=b", "item=c user=x"}},
		{`"a`, []string{reasonQuote}},
		{`"a""`, []string{reasonQuote}},
	} {
		got := checkRows(t, header, []byte(tt.data))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.data, diff)
		}
	}
}

// A quote that is not closed within MaxRecord spoils its line, and no other.
func TestOpenQuote(t *testing.T) {
	row := strings.Repeat("c", MaxItem-1)
	const rows = MaxRecord/MaxItem + 1
	data := []byte("a\n\"b\n" + strings.Repeat(row+"\n", rows) + "\"d\"\n")
	want := append(append([]string{"item=a", reasonQuote}, slices.Repeat([]string{"item=" + row}, rows)...), "item=d")
	for _, piece := range []int{len(data), 100_000} {
		if diff := cmp.Diff(want, readAll(t, rowsOf(t, "item"), data, func() int { return piece })); diff != "" {
			t.Error(diff)
		}
	}
}

func TestHeaders(t *testing.T) {
	names := fieldNames([]string{"country"})
	for _, tt := range []struct {
		header string
		item   bool
		err    string
	}{
		{"item", true, ""},
		{"\"item\",\"time\"\r\n", true, ""},
		{"\n\nitem,time\n", true, ""},
		{"ts_ms,user,item,type,event_id,bot\n", true, ""},
		{"Item,time\n", false, ""},
		{" item\n", false, ""},
		{"item;time\n", false, ""},
		{"\"item\n", false, ""},
		{"item\xff,x\n", false, ""},
		{"", false, ""},
		{"item,x,x,,\n", true, ""},
		{"item,item\n", true, `columns "item" and "item" of the header are the same`},
		{"item,time,ts_ms\n", true, `columns "time" and "ts_ms" of the header are the same`},
		{"id,item,event_id\n", true, `columns "id" and "event_id" of the header are the same`},
		{"item,country,country\n", true, `columns "country" and "country" of the header are the same`},
	} {
		_, _, item, err := newRows([]byte(tt.header), true, names)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if item != tt.item || text != tt.err {
			t.Errorf("%q: item %v, error %q; want %v, %q", tt.header, item, text, tt.item, tt.err)
		}
	}
}

// carefully reads rows without the pass for plain ones.
type carefully struct{ *rows }

func (t carefully) next(d *decoder, b []byte, pos, end int, eof, wanted bool) piece {
	p := t.split(b[:end], pos, eof)
	if wanted && p.found == aRecord {
		t.decode(d, b[p.from:p.to])
	}
	return p
}

// checkRows reads CSV at once and in pieces, with and without the pass for plain
// rows.
func checkRows(t interface{ Fatalf(string, ...any) }, header string, data []byte) []string {
	got := anyhow(t, func() format { return rowsOf(t, header) }, data)
	want := readAll(t, carefully{rowsOf(t, header)}, data, func() int { return len(data) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q: plain rows are read otherwise: %s", data, diff)
	}
	return got
}

// FuzzRows reads anything as CSV, and compares it with what encoding/csv makes of it
// up to its first error.
func FuzzRows(f *testing.F) {
	for _, s := range []string{
		"a,b\nc,d\n", "\"a\",\"b\"\r\n\"c\"\"\",d", "a\n\n\r\n\"\"\n", "\"a\nb\",c\n", "\"a\r\nb\",c\r\n", "a\"b\nc\n", "\"a\"b\nc\n", "\"a\nb", "a\r", "\"a\"\r", "\"a\"\rb", "\xff,b\n",
		"\r\n", "a,\"b\r", ",\n", ",,\"\",\n", "\"\"\"\"\"\"\n", "a,\"b\nc\nd,\"e\"\n",
		"a,,1767225600000\r\n\r\nb,é,2026-01-01T00:00:00Z\nc,\xff,\nd,,1767225600\n,,\ne,\ne,,,\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkRows(t, "item,x,time", data)

		var got [][]string
		table := &rows{}
		for pos := 0; ; {
			p := table.split(data, pos, true)
			pos = p.next
			if p.found == more || p.found == aFault {
				break
			}
			if p.found == nothing {
				continue
			}
			var row []string
			eachCell(data[p.from:p.to], nil, func(_ int, cell []byte) {
				row = append(row, strings.ReplaceAll(string(cell), "\r\n", "\n")) // which encoding/csv does inside quotes
			})
			got = append(got, row)
		}
		r := csv.NewReader(bytes.NewReader(data))
		r.FieldsPerRecord = -1
		var want [][]string
		for {
			row, err := r.Read()
			if err == io.EOF {
				break
			}
			if err != nil {
				if !errors.Is(err, csv.ErrQuote) && !errors.Is(err, csv.ErrBareQuote) {
					t.Fatal(err)
				}
				break
			}
			want = append(want, row)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: %s", data, diff)
		}
	})
}
