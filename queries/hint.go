package queries

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/windows"
)

// hint says why an answer that is right may surprise.
func (a *asking) hint(answer *Answer, keys []key, total *tally) error {
	var hints []string
	if total.total.high == 0 {
		h, err := a.nothing(keys)
		if err != nil {
			return err
		}
		hints = append(hints, h)
	}
	if len(answer.Values) == MaxValues {
		hints = append(hints, fmt.Sprintf("the %d values with the highest counts; there may be more", MaxValues))
	}
	answer.Hint = joinHints(append(hints, a.unwrittenHint()))
	return nil
}

// nothing says what there is instead of what was asked for, of which there is nothing.
func (a *asking) nothing(keys []key) (string, error) {
	if h := a.outside(a.span); h != "" {
		return h, nil
	}
	groups := groupsOf(a.there, []string{AllTypes}, slice{})
	tallies, err := a.gather(a.ctx, a.span.whole(), keys, groups, false)
	if err != nil {
		return "", err
	}
	t := newTally(len(groups), a.hasher.KeyID(), false)
	for _, more := range tallies {
		if err := t.merge(more[0]); err != nil {
			return "", err
		}
	}
	what := strings.Join(a.types, " or ")
	if a.all() {
		what = "event"
	}
	if a.q.HasValue {
		what += fmt.Sprintf(" with %s %q", a.q.Dimension, a.q.Value)
	}
	if keys[0].kind == windows.Item {
		what += " of " + plural(len(keys), "this item", "these items")
	}
	h := "no " + what + " in this range"
	if types := typesHere(t, groups); types != "" {
		h += "; types here: " + types
	}
	return h, nil
}

// outside says that a range lies beside everything that is kept, if it does.
func (v *view) outside(s *span) string {
	switch {
	case v.kept.Empty():
		return "there is no event yet"
	case s.To <= v.kept.From || s.From >= v.kept.To:
		return fmt.Sprintf("no event in this range; there are events from %s to %s",
			s.at(v.kept.From).Format(time.RFC3339), s.at(v.kept.To).Format(time.RFC3339))
	default:
		return ""
	}
}

// typesHere lists the types that have events, the most first: at most ten.
func typesHere(t *tally, groups []group) string {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g group) bool { return t.types[g.index].high == 0 })
	slices.SortStableFunc(groups, func(x, y group) int { return t.types[y.index].compare(t.types[x.index]) })
	var names []string
	for i, g := range groups {
		if i == 10 {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", g.name, thousands(t.types[g.index].value)))
	}
	return strings.Join(names, ", ")
}

// unwrittenHint says that more is to come whatever the range.
func (v *view) unwrittenHint() string {
	switch {
	case v.brokenOff != "":
		return fmt.Sprintf("the import of %s was not finished; the same replay again goes on with it", v.brokenOff)
	case v.uncounted != "":
		return fmt.Sprintf("the %s may have events that are not counted yet: `tidemark serve` counts them, also if it is ended at once", v.uncounted)
	case v.unwritten:
		return "an import of history is under way"
	default:
		return ""
	}
}

func joinHints(hints []string) string {
	return strings.Join(slices.DeleteFunc(hints, func(h string) bool { return h == "" }), ". ")
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// thousands writes 241409 as 241,409.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
