package main

import (
	"strings"
	"testing"

	"tidemark/queries"
)

func TestPrintTable(t *testing.T) {
	var out strings.Builder
	err := printTable(&out, queries.Table{
		Columns: []string{"item", "from", "viewers", "viewers_low", "viewers_high", "viewers_method", "Play", "Play_low", "Play_high", "Play_method"},
		Rows: [][]string{
			{"a", "2026-01-01T00:00:00Z", "812", "801", "823", "hll", "1904", "1904", "1904", "exact"},
			{"two\nlines\x1b[2J", "", "0", "0", "0", "exact", "1234567", "0", "1234567", "count-min"},
			{"ü 中", "", "12", "12", "12", "exact", "", "", "", ""},
		},
	})
	want := `item                  from                   viewers              Play
a                     2026-01-01T00:00:00Z   812 (801–823, hll)   1,904
"two\nlines\x1b[2J"                          0                    1,234,567 (0–1,234,567, count-min)
ü 中                                          12                   
`
	if err != nil || out.String() != want {
		t.Errorf("%v, got:\n%s\nwant:\n%s", err, out.String(), want)
	}
}

func TestPrintAnswer(t *testing.T) {
	const extent = `"from":"2026-01-01T00:00:00Z","to":"2026-01-01T00:05:00Z","final":false,"watermark":null,`
	for _, test := range []struct{ name, path, body, want string }{
		{
			"a ranking that is not certain", "top",
			`{"by":"views","type":"view",` + extent + `"complete":false,"certified":false,"hint":"an import is unfinished","items":[
				{"rank":1,"item":"a","views":{"value":5,"low":5,"high":5,"method":"exact"},"viewers":{"value":3,"low":3,"high":3,"method":"exact"}}]}`,
			"2026-01-01T00:00:00Z to 2026-01-01T00:05:00Z, not complete\n" +
				"rank   item   views   viewers\n1      a      5       3\n(the last places are not certain)\n(an import is unfinished)\n",
		},
		{
			"several items", "counts",
			`{"items":[
				{"item":"a","type":"view",` + extent + `"complete":true,"hint":"no view in this range","counts":{"view":{"value":0,"low":0,"high":0,"method":"exact"}}},
				{"item":"b","type":"view",` + extent + `"complete":true,"hint":"no view in this range","counts":{"view":{"value":0,"low":0,"high":0,"method":"exact"}}}]}`,
			"item   from                   to                     complete   view\n" +
				"a      2026-01-01T00:00:00Z   2026-01-01T00:05:00Z   true       0\n" +
				"b      2026-01-01T00:00:00Z   2026-01-01T00:05:00Z   true       0\n(no view in this range)\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := printAnswer(&out, test.path, []byte(test.body)); err != nil || out.String() != test.want {
				t.Errorf("%v, got:\n%s\nwant:\n%s", err, out.String(), test.want)
			}
		})
	}
	for _, path := range []string{"top", "viewers"} {
		if err := printAnswer(new(strings.Builder), path, []byte(`"x"`)); err == nil {
			t.Errorf("%s: what is no answer was printed", path)
		}
	}
}

func TestGrouped(t *testing.T) {
	for in, want := range map[string]string{"": "", "0": "0", "999": "999", "1000": "1,000", "1234567": "1,234,567"} {
		if got := grouped(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
