package queries

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Table is an answer in rows, for a terminal or a spreadsheet: what the JSON says
// of its subjects, buckets, values or ranks. Each number is spread over four
// columns.
type Table struct {
	Columns []string
	Rows    [][]string
}

// numberColumns are the columns of a number.
func numberColumns(name string) []string {
	return []string{name, name + "_low", name + "_high", name + "_method"}
}

func numberCells(n Number) []string {
	u := func(n uint64) string { return strconv.FormatUint(n, 10) }
	return []string{u(n.Value), u(n.Low), u(n.High), string(n.Method)}
}

// Table has a row for each item; with a series, for each of its buckets; with a
// breakdown, for each value, and before those the whole.
func (a Answers) Table() Table {
	var t Table
	first := a[0]
	item, values, series, viewers := first.Item != "", len(first.Values) > 0, first.Step != "", first.Viewers != nil
	var types []string // that any row has
	for _, answer := range a {
		for name := range answer.Counts {
			if !slices.Contains(types, name) {
				types = append(types, name)
			}
		}
	}
	slices.Sort(types)
	if item {
		t.Columns = append(t.Columns, "item")
	}
	if values {
		t.Columns = append(t.Columns, first.Dimension)
	}
	t.Columns = append(t.Columns, "from", "to", "complete")
	if viewers {
		t.Columns = append(t.Columns, numberColumns("viewers")...)
	}
	for _, name := range types {
		t.Columns = append(t.Columns, numberColumns(name)...)
	}

	row := func(item, value []string, from, to time.Time, complete bool, n *Number, counts Counts) {
		r := slices.Concat(item, value, []string{from.Format(time.RFC3339), to.Format(time.RFC3339), strconv.FormatBool(complete)})
		if n != nil {
			r = append(r, numberCells(*n)...)
		}
		for _, name := range types {
			if c, ok := counts[name]; ok {
				r = append(r, numberCells(c)...)
			} else {
				r = append(r, "", "", "", "")
			}
		}
		t.Rows = append(t.Rows, r)
	}
	for _, answer := range a {
		var name []string
		if item {
			name = []string{answer.Item}
		}
		rows := func(value []string, n *Number, counts Counts, buckets []Bucket) {
			if !series {
				row(name, value, answer.From, answer.To, answer.Complete, n, counts)
			}
			for _, b := range buckets {
				row(name, value, b.Start, b.End, b.Complete, b.Viewers, b.Counts)
			}
		}
		if !values {
			rows(nil, answer.Viewers, answer.Counts, answer.Series)
			continue
		}
		rows([]string{""}, answer.Viewers, answer.Counts, answer.Series)
		for _, v := range answer.Values {
			rows([]string{v.Value}, v.Viewers, v.Counts, v.Series)
		}
	}
	return t
}

// Table has a row for each place.
func (a *TopAnswer) Table() Table {
	t := Table{Columns: []string{"rank", a.subject()}}
	rising := a.By == ByRising
	if rising {
		t.Columns = append(t.Columns, "score", "expected", "expected_low", "expected_high")
	}
	t.Columns = append(t.Columns, numberColumns("views")...)
	viewers := len(a.Items) == 0 || a.Items[0].Viewers != Number{}
	if viewers {
		t.Columns = append(t.Columns, numberColumns("viewers")...)
	}
	for _, r := range a.Items {
		name := r.Item
		if r.Value != nil {
			name = *r.Value
		}
		row := []string{strconv.Itoa(r.Rank), name}
		if rising {
			for _, x := range []float64{*r.Score, r.Expected.Value, r.Expected.Low, r.Expected.High} {
				row = append(row, strconv.FormatFloat(x, 'f', 1, 64))
			}
		}
		row = append(row, numberCells(r.Views)...)
		if viewers {
			row = append(row, numberCells(r.Viewers)...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// subject is what is ranked: items, or a dimension's values.
func (a *TopAnswer) subject() string {
	if a.Dimension != "" && a.Value == nil {
		return a.Dimension
	}
	return "item"
}

// Table has a row for each outcome and reason, of each item.
func (a OutcomesAnswers) Table() Table {
	t := Table{Columns: append([]string{"item", "outcome", "reason"}, numberColumns("records")...)}
	for _, answer := range a {
		for _, o := range answer.Outcomes {
			t.Rows = append(t.Rows, append([]string{answer.Item, o.Outcome, o.Reason}, numberCells(o.Records)...))
		}
	}
	return t
}

// Table has a row for each item.
func (a *ItemsAnswer) Table() Table {
	t := Table{Columns: []string{"item", "title", "url", "image"}}
	for _, i := range a.Items {
		t.Rows = append(t.Rows, []string{i.Item, i.Title, i.URL, i.Image})
	}
	return t
}

// Table has a row for each partition of each log.
func (a *StatusAnswer) Table() Table {
	t := Table{Columns: []string{"log", "done", "reading", "partition", "position", "lag", "sealed", "watermark", "open_windows"}}
	for _, l := range a.Logs {
		of := []string{strings.Join(l.Names, " "), strconv.FormatBool(l.Done), strconv.FormatBool(l.Reading)}
		if len(l.Partitions) == 0 {
			t.Rows = append(t.Rows, append(of, "", "", "", "", "", ""))
		}
		for _, p := range l.Partitions {
			watermark := ""
			if p.Watermark != nil {
				watermark = p.Watermark.Format(time.RFC3339)
			}
			t.Rows = append(t.Rows, append(slices.Clone(of), strconv.Itoa(p.Partition),
				strconv.FormatInt(p.Position, 10), strconv.FormatInt(p.Lag, 10), strconv.FormatInt(p.Sealed, 10), watermark, strconv.Itoa(p.OpenWindows)))
		}
	}
	return t
}
