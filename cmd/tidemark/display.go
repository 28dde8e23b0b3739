package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"tidemark/queries"
)

// printAnswer prints an answer, given as JSON, for a person: a table, below the
// range where its rows do not name it, above what is surprising about it.
func printAnswer(w io.Writer, path string, body []byte) error {
	var hints []string
	var table queries.Table
	if path == "top" {
		var a queries.TopAnswer
		if err := json.Unmarshal(body, &a); err != nil {
			return fmt.Errorf("not a ranking: %w", err)
		}
		fmt.Fprintln(w, extent(a.Extent))
		if !a.Certified {
			hints = append(hints, "the last places are not certain")
		}
		table, hints = withTitles(&a), append(hints, a.Hint)
	} else {
		var all queries.Answers
		if err := json.Unmarshal(body, &all); err != nil {
			return fmt.Errorf("not an answer: %w", err)
		}
		for _, a := range all {
			hints = append(hints, a.Hint)
		}
		table = all.Table()
	}
	if err := printTable(w, table); err != nil {
		return err
	}
	last := ""
	for _, h := range hints {
		if h != last {
			fmt.Fprintf(w, "(%s)\n", h)
			last = h
		}
	}
	return nil
}

// withTitles returns the table of a ranking, with a column of titles if there are any.
func withTitles(a *queries.TopAnswer) queries.Table {
	t := a.Table()
	if !slices.ContainsFunc(a.Items, func(r queries.Ranked) bool { return r.Title != "" }) {
		return t
	}
	t.Columns = append(t.Columns, "title")
	for i, r := range a.Items {
		t.Rows[i] = append(t.Rows[i], r.Title)
	}
	return t
}

func extent(e queries.Extent) string {
	s := fmt.Sprintf("%s to %s", e.From.Format(time.RFC3339), e.To.Format(time.RFC3339))
	if e.Clipped {
		s += ", all that is kept of the range"
	}
	if !e.Complete {
		s += ", not complete"
	}
	return s
}

// printTable prints a table with its numbers in one column each: "812 (801–823, hll)".
func printTable(w io.Writer, t queries.Table) error {
	isNumber := make([]bool, len(t.Columns)) // with its bounds and method in the next three
	for i, name := range t.Columns {
		isNumber[i] = i+3 < len(t.Columns) && t.Columns[i+1] == name+"_low" && t.Columns[i+3] == name+"_method"
	}
	out := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	line := func(cell func(i int) string) {
		var cells []string
		for i := 0; i < len(t.Columns); i++ {
			cells = append(cells, cell(i))
			if isNumber[i] {
				i += 3
			}
		}
		fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	line(func(i int) string { return oneLine(t.Columns[i]) })
	for _, row := range t.Rows {
		line(func(i int) string {
			if !isNumber[i] {
				return oneLine(row[i])
			}
			value, low, high, method := row[i], row[i+1], row[i+2], row[i+3]
			if low == high {
				return grouped(value)
			}
			return fmt.Sprintf("%s (%s–%s, %s)", grouped(value), grouped(low), grouped(high), method)
		})
	}
	return out.Flush()
}

// isTerminal reports whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// grouped returns a number's digits with its thousands apart: 1,234,567.
func grouped(digits string) string {
	out := make([]byte, 0, len(digits)*4/3+1)
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}

// count is grouped for a number that is not negative.
func count[N int | int64 | uint64](n N) string { return grouped(fmt.Sprint(n)) }

// perSecond returns how many of n there were a second.
func perSecond(n int64, took time.Duration) int64 {
	return int64(float64(n) / max(took.Seconds(), 1e-6))
}

// oneLine keeps control characters, which a name may hold, from moving the cursor
// or the columns.
func oneLine(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
