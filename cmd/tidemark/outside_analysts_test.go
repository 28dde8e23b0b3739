package main_test

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	gocmp "github.com/google/go-cmp/cmp"

	"tidemark/windows/windowstest"
)

// analystQueries returns the queries of docs/analysts.md by name.
func analystQueries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/analysts.md")
	if err != nil {
		t.Fatal(err)
	}
	queries := make(map[string]string)
	for _, part := range strings.Split(string(text), "<!-- query: ")[1:] {
		name, rest, ok := strings.Cut(part, " -->\n```sql\n")
		sql, _, closed := strings.Cut(rest, "```")
		if !ok || !closed {
			t.Fatalf("query %.40q is not followed by its SQL", part)
		}
		queries[name] = sql
	}
	if n := strings.Count(string(text), "```sql"); n != len(queries) {
		t.Fatalf("%d queries have a name, there are %d", len(queries), n)
	}
	return queries
}

// shop is seven months of a shop's sales, each with a country and the goods with a
// title that come from nowhere but their names, and some of them out of order.
type shop struct {
	events  []windowstest.Event // of type sale and cancel, Dims the country
	oracle  *windowstest.Oracle
	path    string
	server  *server
	ch      *clickHouse
	queries map[string]string
	late    uint64
	asked   map[string]bool
}

var countries = []string{"AT", "CH", "DE", "FR", "GB"}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{ch: newClickHouse(t), queries: analystQueries(t), asked: make(map[string]bool)}
	var err error
	if s.events, err = windowstest.ReadFile(filepath.Join("testdata", "online-retail-2010-12_2011-06.events.csv.gz")); err != nil {
		t.Fatal(err)
	}
	for i := range s.events {
		n, _ := strconv.Atoi(s.events[i].User) // 0 where there is none
		s.events[i].Dims = []string{countries[n%len(countries)]}
	}
	for i := 0; i+3000 < len(s.events); i += 100 {
		s.events[i], s.events[i+3000] = s.events[i+3000], s.events[i]
	}
	s.oracle = windowstest.NewOracle(s.events, "country")
	s.path = filepath.Join(t.TempDir(), "shop.csv")
	f, err := os.Create(s.path)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(f)
	w.Write([]string{"item", "type", "time", "user", "country", "title"})
	for _, e := range s.events {
		w.Write([]string{e.Item, e.Type, strconv.FormatInt(e.Time, 10), e.User, e.Dims[0], "Title of " + e.Item})
	}
	w.Flush()
	if err := cmp.Or(w.Error(), f.Close()); err != nil {
		t.Fatal(err)
	}
	data := newFolder(t)
	out := data.replay(t, s.path, "--view-types=sale", "--dimensions=country", "--clickhouse.addr="+s.ch.address)
	if s.late = out.Outcomes["late"]; s.late == 0 {
		t.Error("nothing is late")
	}
	s.server = data.serve(t, "--clickhouse.addr="+s.ch.address)
	return s
}

// query runs a query of the page. Each row is the values of its columns.
func (s *shop) query(t *testing.T, name string, parameters ...string) [][]string {
	t.Helper()
	sql, ok := s.queries[name]
	if !ok {
		t.Fatalf("the page has no query %s", name)
	}
	s.asked[name] = true
	var args []any
	for i := 0; i < len(parameters); i += 2 {
		args = append(args, ch.Named(parameters[i], parameters[i+1]))
	}
	return s.ch.rows(t, sql, args...)
}

func (c *clickHouse) rows(t *testing.T, sql string, args ...any) (out [][]string) {
	t.Helper()
	rows, err := c.Query(t.Context(), "SELECT * APPLY(toString) FROM ("+sql+")", args...)
	if err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	defer rows.Close()
	for rows.Next() {
		row := make([]string, len(rows.Columns()))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	return out
}

func at(text string) time.Time {
	at, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return at
}

// question is one about sales in a range.
func question(since, until string) windowstest.Question {
	return windowstest.Question{From: at(since).UnixMilli(), To: at(until).UnixMilli(), Types: []string{"sale"}}
}

func table(rows ...[]string) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(strings.Join(r, " | ") + "\n")
	}
	return b.String()
}

func same(t *testing.T, name string, want, got [][]string) {
	t.Helper()
	if len(want) == 0 {
		t.Errorf("%s: nothing is expected", name)
	}
	if diff := gocmp.Diff(table(want...), table(got...)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func row(cells ...any) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = fmt.Sprint(c)
	}
	return out
}

// The queries of docs/analysts.md answer what an exact count of the events answers.
func TestAnalystsQueries(t *testing.T) {
	s := newShop(t)
	march := []string{"type", "sale", "since", "2011-03-01 00:00:00", "until", "2011-04-01 00:00:00"}
	inMarch := question("2011-03-01 00:00:00", "2011-04-01 00:00:00")
	week := []string{"type", "sale", "since", "2011-05-02 00:00:00", "until", "2011-05-09 00:00:00"}
	inWeek := question("2011-05-02 00:00:00", "2011-05-09 00:00:00")

	// each yields the sales in a range.
	each := func(q windowstest.Question, yield func(e windowstest.Event, at time.Time)) {
		for _, e := range s.events {
			if e.Type == "sale" && e.Time >= q.From && e.Time < q.To {
				yield(e, time.UnixMilli(e.Time).UTC())
			}
		}
	}
	grouped := func(q windowstest.Question, key func(e windowstest.Event, at time.Time) string) (out [][]string) {
		counts := make(map[string]int)
		each(q, func(e windowstest.Event, at time.Time) { counts[key(e, at)]++ })
		for _, k := range slices.Sorted(maps.Keys(counts)) {
			out = append(out, append(strings.Split(k, "\x00"), strconv.Itoa(counts[k])))
		}
		return out
	}

	same(t, "billing", grouped(inMarch, func(_ windowstest.Event, at time.Time) string { return at.Format(time.DateOnly) }),
		s.query(t, "billing", march...))

	var top [][]string
	for _, country := range countries {
		q := inWeek
		q.Dimension, q.Value = "country", country
		for _, r := range s.oracle.Top(q, windowstest.Views, 10) {
			top = append(top, row(country, r.Item, "Title of "+r.Item, r.Events))
		}
	}
	same(t, "top-by-country", top, s.query(t, "top-by-country", week...))

	items := []string{"85123A", "22423", "47566", "20725"}
	got := s.query(t, "campaign", append(slices.Clone(march), "items", "['"+strings.Join(items, "','")+"']")...)
	var a answer
	s.server.ask(t, "/v1/viewers", url.Values{"item": items, "together": {"true"}, "type": {"sale"}, "from": {"2011-03-01T00:00:00Z"}, "to": {"2011-04-01T00:00:00Z"}}, &a)
	same(t, "campaign", [][]string{row(a.Viewers.Value, a.Viewers.Low, a.Viewers.High)}, got)
	if truth := s.oracle.Together(inMarch, items...).Viewers; truth < a.Viewers.Low || truth > a.Viewers.High {
		t.Errorf("campaign: %d viewers are not in %+v", truth, *a.Viewers)
	}

	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "week", grouped(inMarch, func(_ windowstest.Event, at time.Time) string {
		at = at.In(london)
		return fmt.Sprintf("%d\x00%02d", (int(at.Weekday())+6)%7+1, at.Hour())
	}), padded(s.query(t, "week", append(slices.Clone(march), "zone", "Europe/London")...)))

	got = s.query(t, "reach", append(slices.Clone(week), "item", "22423")...)
	var reach [][]string
	for day := range 7 {
		to := at("2011-05-03 00:00:00").AddDate(0, 0, day)
		var a answer
		s.server.ask(t, "/v1/viewers", url.Values{"item": {"22423"}, "type": {"sale"}, "from": {"2011-05-02T00:00:00Z"}, "to": {to.Format(time.RFC3339)}}, &a)
		n := a.Viewers
		if n.Value > 0 {
			reach = append(reach, row(to.AddDate(0, 0, -1).Format(time.DateOnly), fmt.Sprintf("(%d,%d,%d)", n.Value, n.Low, n.High), n.Value, n.Low, n.High))
		}
	}
	same(t, "reach", reach, got)

	var late, counted uint64
	for _, r := range s.query(t, "late", "since", "2010-01-01 00:00:00", "until", "2012-01-01 00:00:00") {
		l, _ := strconv.ParseUint(r[1], 10, 64)
		n, _ := strconv.ParseUint(r[2], 10, 64)
		late, counted = late+l, counted+n
	}
	if late != s.late || counted != uint64(len(s.events)) {
		t.Errorf("late: %d of %d, want %d of %d", late, counted, s.late, len(s.events))
	}

	var series struct {
		Series []struct {
			Start  time.Time
			Counts map[string]number
		}
	}
	s.server.ask(t, "/v1/counts", url.Values{"item": {"22423"}, "type": {"sale"}, "from": {"2011-05-02T00:00:00Z"}, "to": {"2011-05-09T00:00:00Z"}, "step": {"hour"}}, &series)
	var hours [][]string
	for _, b := range series.Series {
		hours = append(hours, row(b.Start.Format(time.DateTime), b.Counts["sale"].Value))
	}
	same(t, "reconcile", hours, s.query(t, "reconcile", append(slices.Clone(week), "item", "22423")...))

	back := s.query(t, "back", append(slices.Clone(week), "middle", "2011-05-05 00:00:00")...)[0]
	first, second := question("2011-05-02 00:00:00", "2011-05-05 00:00:00"), question("2011-05-05 00:00:00", "2011-05-09 00:00:00")
	for i, want := range []uint64{s.oracle.Site(first).Viewers, s.oracle.Site(second).Viewers, s.oracle.Site(inWeek).Viewers, s.oracle.Site(first).Viewers + s.oracle.Site(second).Viewers - s.oracle.Site(inWeek).Viewers} {
		n, err := strconv.ParseInt(back[i], 10, 64)
		if err != nil || max(n-int64(want), int64(want)-n) > int64(s.oracle.Site(inWeek).Viewers)/50 {
			t.Errorf("back: column %d is %s, want about %d", i, back[i], want)
		}
	}

	growth := make(map[string][2]int)
	each(inWeek, func(e windowstest.Event, at time.Time) {
		g := growth[e.Item]
		if at.Before(time.Date(2011, 5, 5, 0, 0, 0, 0, time.UTC)) {
			g[0]++
		} else {
			g[1]++
		}
		growth[e.Item] = g
	})
	fastest := slices.SortedFunc(maps.Keys(growth), func(a, b string) int {
		return cmp.Or(cmp.Compare(growth[b][1]-growth[b][0], growth[a][1]-growth[a][0]), cmp.Compare(a, b))
	})
	var want [][]string
	for _, item := range fastest[:20] {
		g := growth[item]
		want = append(want, row(item, g[0], g[1], g[1]-g[0]))
	}
	same(t, "growth", want, s.query(t, "growth", append(slices.Clone(week), "middle", "2011-05-05 00:00:00")...))

	moment := []string{"type", "sale", "since", "2011-05-03 11:30:00", "until", "2011-05-03 12:30:00"}
	minutes := make(map[string]int)
	each(question("2011-05-03 11:30:00", "2011-05-03 12:30:00"), func(_ windowstest.Event, at time.Time) {
		minutes[at.Truncate(time.Minute).Format(time.DateTime)]++
	})
	want = nil
	for m := range 60 {
		key := at("2011-05-03 11:30:00").Add(time.Duration(m) * time.Minute).Format(time.DateTime)
		want = append(want, row(key, minutes[key]))
	}
	same(t, "moment", want, s.query(t, "moment", moment...))

	var epochs []string
	for _, r := range s.query(t, "upto") {
		epochs = append(epochs, r[0])
		if closed := at(r[2]); closed.Before(at("2011-06-30 00:00:00")) {
			t.Errorf("upto: partition %s is closed up to %s", r[1], closed)
		}
	}
	s.checkDashboard(t)
	for statement := range strings.SplitSeq(strings.TrimSpace(s.queries["drop"]), ";\n") {
		if err := s.ch.Exec(t.Context(), strings.TrimSuffix(statement, ";"), ch.Named("epochs", "["+strings.Join(epochs, ",")+"]")); err != nil {
			t.Fatalf("%s\n%v", statement, err)
		}
	}
	s.asked["drop"] = true
	if left := s.query(t, "billing", march...); len(left) > 0 {
		t.Errorf("drop: there are rows left: %v", left)
	}
	for name := range s.queries {
		if !s.asked[name] {
			t.Errorf("query %s is tried by nobody", name)
		}
	}
}

// padded writes hours with two digits, so that they sort as text.
func padded(rows [][]string) [][]string {
	for _, r := range rows {
		r[1] = fmt.Sprintf("%02s", r[1])
	}
	return rows
}

// checkDashboard runs the queries of the dashboard as Grafana would send them.
func (s *shop) checkDashboard(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../docs/grafana/tidemark.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ RawSQL string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	values := []string{
		"$__timeFilter(minute)", "minute >= toDateTime(1304208000) AND minute <= toDateTime(1306886400)",
		"$__timeFilter(start)", "start >= toDateTime(1304208000) AND start <= toDateTime(1306886400)",
		"$__timeInterval(minute)", "toStartOfInterval(toDateTime(minute), INTERVAL 3600 second)",
	}
	for variable, want := range map[string]string{"type": "sale", "dimension": "country"} {
		i := slices.IndexFunc(dashboard.Templating.List, func(v struct{ Name, Type, Query string }) bool { return v.Name == variable })
		if choices := s.ch.rows(t, dashboard.Templating.List[i].Query); !slices.ContainsFunc(choices, func(r []string) bool { return r[0] == want }) {
			t.Errorf("variable %s has the choices %v", variable, choices)
		}
		values = append(values, "${"+variable+"}", want)
	}
	inMay := question("2011-05-01 00:00:00", "2011-06-01 00:00:00")
	for _, p := range dashboard.Panels {
		sql := strings.NewReplacer(values...).Replace(p.Targets[0].RawSQL)
		if strings.Contains(sql, "$") {
			t.Errorf("%s: unknown macro in %s", p.Title, sql)
		}
		rows := s.ch.rows(t, sql)
		if len(rows) == 0 {
			t.Errorf("%s: no rows", p.Title)
		}
		switch p.Title {
		case "Top items":
			best := s.oracle.Top(inMay, windowstest.Views, 1)[0]
			same(t, p.Title, [][]string{row(best.Item, "Title of "+best.Item, best.Events)}, rows[:1])
		case "Events":
			var sum uint64
			for _, r := range rows {
				if r[1] == "sale" {
					n, _ := strconv.ParseUint(r[2], 10, 64)
					sum += n
				}
			}
			if want := s.oracle.Site(inMay).Events; sum != want {
				t.Errorf("%s: %d sales, want %d", p.Title, sum, want)
			}
		}
	}
}
