package main_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/windows/windowstest"
)

// fault is a line of the file of faults, and what must become of it.
type fault struct {
	name    string
	line    string
	outcome string
	reason  string // what the reason of a malformed line begins with
}

// jsonFaults are lines that are, or look, wrong. Those that count are for the item
// "good".
var jsonFaults = []fault{
	{"nothing but an item", `{"item":"good"}`, "counted", ""},
	{"no UTF-8", "{\"item\":\"a\xff\"}", "malformed", "item"},
	{"no UTF-8 in a field that nobody asks for", "{\"item\":\"good\",\"x\":\"\xc3\x28\"}", "malformed", ""},
	{"half a surrogate pair", `{"item":"a\ud800"}`, "malformed", "item"},
	{"item of a wrong type", `{"item":["a"]}`, "malformed", "item"},
	{"item is an object", `{"item":{"name":"a"}}`, "malformed", "item"},
	{"item is a bool", `{"item":true}`, "malformed", "item"},
	{"item is a fraction", `{"item":1.5}`, "malformed", "item"},
	{"item is null", `{"item":null}`, "malformed", "item"},
	{"no item", `{"user":"u"}`, "malformed", "item"},
	{"empty item", `{"item":""}`, "malformed", "item"},
	{"2 MB item", `{"item":"` + strings.Repeat("a", 2<<20) + `"}`, "malformed", ""},
	{"item of 1,025 bytes", `{"item":"` + strings.Repeat("é", 512) + `a"}`, "malformed", "item"},
	{"type of 65 bytes", `{"item":"a","type":"` + strings.Repeat("t", 65) + `"}`, "malformed", "type"},
	{"user of 257 bytes", `{"item":"a","user":"` + strings.Repeat("u", 257) + `"}`, "malformed", "user"},
	{"ID of 257 bytes", `{"item":"a","id":"` + strings.Repeat("i", 257) + `"}`, "malformed", "id"},
	{"user of a wrong type", `{"item":"a","user":{}}`, "malformed", "user"},
	{"user as a whole number", `{"item":"good","user":42}`, "counted", ""},
	{"empty user", `{"item":"good","user":""}`, "counted", ""},
	{"bot of a wrong type", `{"item":"a","bot":"yes"}`, "malformed", "bot"},
	{"watch time of a wrong type", `{"item":"a","watched_ms":"long"}`, "malformed", "watched_ms"},
	{"title of a wrong type", `{"item":"a","title":1.5e3}`, "malformed", "title"},
	{"time without a zone", `{"item":"a","time":"2026-01-01T00:00:00"}`, "malformed", "time"},
	{"time that is no time", `{"item":"a","time":"yesterday"}`, "malformed", "time"},
	{"30 February", `{"item":"a","time":"2026-02-30T00:00:00Z"}`, "malformed", "time"},
	{"seconds for milliseconds", `{"item":"a","time":1767225600}`, "malformed", "time"},
	{"milliseconds", `{"item":"good","time":1767225600000}`, "counted", ""},
	{"a leap day with a zone", `{"item":"good","time":"2024-02-29T23:59:59.999+05:30"}`, "counted", ""},
	{"before 1970", `{"item":"a","time":-1}`, "malformed", "time"},
	{"year 0", `{"item":"a","time":"0000-01-01T00:00:00Z"}`, "malformed", "time"},
	{"year 9999", `{"item":"a","time":"9999-12-31T23:59:59Z"}`, "malformed", "time"},
	{"year 9999 in milliseconds", `{"item":"a","time":253402300799000}`, "malformed", "time"},
	{"year 2100", `{"item":"a","time":"2100-01-01T00:00:00Z"}`, "future", ""},
	{"time is not a number", `{"item":"a","time":NaN}`, "malformed", ""},
	{"time is infinite", `{"item":"a","time":1e400}`, "malformed", "time"},
	{"nested objects that nobody asks for", `{"item":"good","x":{"item":["a",{"item":"b"}]}}`, "counted", ""},
	{"nested without end", `{"item":"good","x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, "malformed", ""},
	{"a dimension that is an object", `{"item":"a","country":{"code":"DE"}}`, "malformed", "country"},
	{"a dimension", `{"item":"good","country":"DE"}`, "counted", ""},
	{"the same key twice", `{"item":"a","item":"b"}`, "malformed", "item"},
	{"the same key twice, written otherwise", `{"item":"a","it\u0065m":"b"}`, "malformed", "item"},
	{"the same key twice where nobody asks", `{"item":"a","x":1,"x":2}`, "malformed", ""},
	{"cut line", `{"item":"a","us`, "malformed", ""},
	{"two on a line", `{"item":"a"}{"item":"b"}`, "malformed", ""},
	{"a comma too many", `{"item":"a",}`, "malformed", ""},
	{"no object", `"item"`, "malformed", ""},
	{"nothing that is JSON", `item=a`, "malformed", ""},
	{"a null byte", "{\"item\":\"a\x00\"}", "malformed", ""},
	{"spaces around", "  {\"item\" : \"good\" }\t\r", "counted", ""},
	{"escapes", `{"\u0069tem":"g\u006fod","user":"\ud83d\ude00"}`, "counted", ""},
	{"the first of an ID", `{"item":"good","id":"once"}`, "counted", ""},
	{"the ID again", `{"item":"other","id":"once"}`, "duplicate", ""},
}

// csvFaults stand below the header item,time,user,type,bot,country.
var csvFaults = []fault{
	{"good", `good,1767225600000,u,view,0,DE`, "counted", ""},
	{"quoted", `"good","2026-01-01T00:00:00Z","u, v",view,true,`, "counted", ""},
	{"empty item", `,1767225600000,u,view,0,DE`, "malformed", "item"},
	{"no UTF-8", "a\xff,1767225600000,u,view,0,DE", "malformed", "item"},
	{"time that is no time", `a,noon,u,view,0,DE`, "malformed", "time"},
	{"seconds for milliseconds", `a,1767225600,u,view,0,DE`, "malformed", "time"},
	{"bot that is neither", `a,1767225600000,u,view,maybe,DE`, "malformed", "bot"},
	{"too few columns", `a,1767225600000`, "malformed", ""},
	{"too many columns", `a,1767225600000,u,view,0,DE,x`, "malformed", ""},
	{"a quote in the middle", `a"b,1767225600000,u,view,0,DE`, "malformed", ""},
	{"text behind a quote", `"a"b,1767225600000,u,view,0,DE`, "malformed", ""},
	{"item of 1,025 bytes", strings.Repeat("a", 1025) + `,1767225600000,u,view,0,DE`, "malformed", "item"},
	{"2 MB item", strings.Repeat("a", 2<<20) + `,1767225600000,u,view,0,DE`, "malformed", ""},
	{"no user, type, country", `good,1767225600000,,,,`, "counted", ""},
}

// Each line of a file of faults gets its outcome and its reason, all others count,
// and the outcomes sum to the lines.
func TestEachFaultGetsItsOutcome(t *testing.T) {
	for _, file := range []struct {
		name, header string
		faults       []fault
	}{{"faults.ndjson", "", jsonFaults}, {"faults.csv", "item,time,user,type,bot,country\n", csvFaults}} {
		t.Run(file.name, func(t *testing.T) {
			var all strings.Builder
			all.WriteString(file.header)
			want := make(map[string]uint64)
			good := uint64(0)
			for _, f := range file.faults {
				all.WriteString(f.line + "\n")
				want[f.outcome]++
				if f.outcome == "counted" {
					good++
				}
				if f.outcome == "duplicate" {
					continue // of a line before it: alone it is none
				}
				t.Run(f.name, func(t *testing.T) { // alone, so that it is this line that has the outcome
					out := replayText(t, file.name, file.header+f.line+"\n")
					out.checkSum(t, 1)
					got := f.outcome
					if got == "counted" && out.Outcomes["late"] == 1 {
						got = "late"
					}
					if out.Outcomes[got] != 1 {
						t.Errorf("outcome %v, it must be %s", out.Outcomes, f.outcome)
					}
					if f.outcome != "malformed" {
						return
					}
					for reason := range out.Reasons {
						if !strings.HasPrefix(reason, f.reason) || len(reason) < 10 || strings.Contains(reason, "\n") {
							t.Errorf("the reason is %q, it must be about %q", reason, f.reason)
						}
					}
					if len(out.Reasons) != 1 {
						t.Errorf("reasons %v", out.Reasons)
					}
				})
			}
			data := newFolder(t)
			path := filepath.Join(t.TempDir(), file.name)
			if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			out := data.replay(t, "--dimensions=country", path)
			out.checkSum(t, len(file.faults))
			for outcome, n := range want {
				got := out.Outcomes[outcome]
				if outcome == "counted" {
					got += out.Outcomes["late"]
				}
				if got != n {
					t.Errorf("%s: %d records, it must be %d: %v", outcome, got, n, out.Outcomes)
				}
			}
			var reasons uint64
			for _, n := range out.Reasons {
				reasons += n
			}
			if reasons != out.Outcomes["malformed"] {
				t.Errorf("%d records are malformed, and %d have a reason", out.Outcomes["malformed"], reasons)
			}
			var a answer
			data.ask(t, "/v1/counts", map[string][]string{"item": {"good"}}, &a)
			if got := a.Counts["view"]; got != (number{good, good, good, "exact"}) {
				t.Errorf("the good lines are counted %+v, there are %d", got, good)
			}
		})
	}
}

func replayText(t *testing.T, name, text string) outcomes {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return newFolder(t).replay(t, "--dimensions=country", path)
}

// What can be read of a compressed file that was cut short counts; one record more
// says that it was.
func TestATruncatedFileCountsWhatItHas(t *testing.T) {
	var plain, packed bytes.Buffer
	lines := 20_000
	for i := range lines {
		fmt.Fprintf(&plain, "{\"item\":\"item-%d\",\"time\":%d}\n", i%97, manyStart+int64(i)*7919%86_400_000)
	}
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, keep := range []int{packed.Len() / 2, packed.Len() - 1} {
		path := filepath.Join(t.TempDir(), "cut.ndjson.gz")
		if err := os.WriteFile(path, packed.Bytes()[:keep], 0o600); err != nil {
			t.Fatal(err)
		}
		out := newFolder(t).replay(t, path)
		n := int(out.counted())
		out.checkSum(t, n+int(out.Outcomes["malformed"]))
		if n == 0 || n > lines || keep == packed.Len()-1 && n != lines {
			t.Errorf("%d of %d bytes: %d of %d lines count", keep, packed.Len(), n, lines)
		}
		cut := false
		for reason := range out.Reasons {
			cut = cut || strings.HasPrefix(reason, "file: ")
		}
		if !cut {
			t.Errorf("%d of %d bytes: no record says that the file was cut: %v", keep, packed.Len(), out.Reasons)
		}
	}
}

// A CSV file without a column for items is refused as a whole, and nothing is kept
// of it.
func TestAWrongHeaderIsRefused(t *testing.T) {
	data := newFolder(t)
	path := filepath.Join(t.TempDir(), "wrong.csv")
	if err := os.WriteFile(path, []byte("ts,visitor,thing\n1767225600000,u,a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := call{args: data.args("replay", path)}.run(t)
	if r.status != 1 || !strings.Contains(r.stderr, "item") || !strings.Contains(r.stderr, "wrong.csv") {
		t.Errorf("exit status %d\n%s", r.status, r.stderr)
	}
	// The same folder takes the file once it is mended.
	good := writeEvents(t, "good.csv", []windowstest.Event{{Time: manyStart, Item: "a", Type: "view"}})
	data.replay(t, good).checkSum(t, 1)
}
