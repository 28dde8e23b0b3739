package store

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"tidemark/windows"
)

// TestPlan reads testdata/plan.txt: ladders, ranges, and what they are covered by.
// Where the text is not what the plan says, set TIDEMARK_REWRITE and look at the
// difference.
func TestPlan(t *testing.T) {
	const file = "testdata/plan.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var l ladder
	var out strings.Builder
	answering := false
	for scanner := bufio.NewScanner(strings.NewReader(string(text))); scanner.Scan(); {
		line := scanner.Text()
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
			answering = false
		case fields[0] == "plan":
			answering = true
			fmt.Fprintf(&out, "%s\n%s", line, showPlan(&l, fields[1:]))
			continue
		case answering:
			continue
		case fields[0] == "ladder":
			l = parseLadder(t, fields[1:])
		}
		out.WriteString(line + "\n")
	}
	if out.String() == string(text) {
		return
	}
	if os.Getenv("TIDEMARK_REWRITE") != "" {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%s is not what the plan says; it says\n%s", file, out.String())
}

// parseTime reads day/hour:minute, such as 2/10:30.
func parseTime(t *testing.T, text string) windows.Minute {
	t.Helper()
	var day, hour, minute windows.Minute
	if _, err := fmt.Sscanf(text, "%d/%d:%d", &day, &hour, &minute); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return (day*24+hour)*60 + minute
}

func showTime(m windows.Minute) string {
	return fmt.Sprintf("%d/%02d:%02d", m/1440, m/60%24, m%60)
}

// parseLadder reads rolled=LEVEL:TIME[-TIME], floor=LEVEL:TIME, ever=TIME[-TIME], first=TIME.
func parseLadder(t *testing.T, fields []string) (l ladder) {
	t.Helper()
	parseSpan := func(text string, size windows.Minute) (r windows.Range) {
		from, to, ok := strings.Cut(text, "-")
		r.From = parseTime(t, from)
		r.To = r.From + size
		if ok {
			r.To = parseTime(t, to)
		}
		return r
	}
	levelOf := func(name string) windows.Level {
		for i, p := range policy {
			if p.name == name {
				return windows.Level(i)
			}
		}
		t.Fatalf("no level %q", name)
		return 0
	}
	for _, f := range fields {
		what, rest, _ := strings.Cut(f, "=")
		name, times, _ := strings.Cut(rest, ":")
		switch what {
		case "rolled":
			lv := levelOf(name)
			for m, r := windows.Minute(0), parseSpan(times, policy[lv].size); r.From+m < r.To; m += policy[lv].size {
				l.rolled.add(lv, presence{start: r.From + m}, 1)
			}
		case "floor":
			l.floor[levelOf(name)] = parseTime(t, times)
		case "ever":
			l.ever = parseSpan(rest, 1440)
			for m := l.ever.From; m < l.ever.To; m += 1440 {
				l.rolled.add(levelEver, presence{start: m}, 1)
			}
		case "but": // a day that is not in ever
			l.rolled.remove(levelEver, parseTime(t, rest), 1)
		case "first":
			l.first = parseTime(t, rest)
		default:
			t.Fatalf("%q", f)
		}
	}
	return l
}

func showPlan(l *ladder, fields []string) string {
	var edges []windows.Minute
	for _, f := range fields {
		var day, hour, minute windows.Minute
		fmt.Sscanf(f, "%d/%d:%d", &day, &hour, &minute)
		edges = append(edges, (day*24+hour)*60+minute)
	}
	var out strings.Builder
	steps, gone := l.plan(edges)
	for _, s := range steps {
		fmt.Fprintf(&out, "  %-7s %s - %s\n", policy[s.Level].name, showTime(s.From), showTime(s.To))
	}
	for _, g := range gone {
		fmt.Fprintf(&out, "  gone    %s - %s\n", showTime(g.From), showTime(g.To))
	}
	return out.String()
}
