package queries

import (
	"cmp"
	"slices"

	"tidemark/windows"
)

// breakDown adds the values of the question's dimension to an answer: the highest
// count first, equal ones in byte order of the values.
func (a *asking) breakDown(answer *Answer, keys []key) error {
	type valueTotal struct {
		Value
		total count
	}
	var values []valueTotal
	parts := slicesOf(a.there, a.q.Dimension)
	for _, in := range parts {
		groups := groupsOf(a.there, a.types, in)
		total, series, err := a.numbers(keys, groups)
		if err != nil {
			return err
		}
		if total.total.high == 0 {
			continue
		}
		values = append(values, valueTotal{total: total.total, Value: Value{
			Value:   in.name(),
			Other:   in.other != 0,
			Viewers: a.viewersOf(total),
			Counts:  total.counts(a.shown(total, groups), a.several()),
			Series:  series,
		}})
	}
	slices.SortFunc(values, func(x, y valueTotal) int {
		return cmp.Or(y.total.compare(x.total), cmp.Compare(x.Value.Value, y.Value.Value))
	})
	for _, v := range values[:min(len(values), MaxValues)] {
		answer.Values = append(answer.Values, v.Value)
	}
	return nil
}

// slicesOf returns what a dimension divides the events into.
func slicesOf(there []windows.Series, dimension string) []slice {
	seen := make(map[slice]bool)
	var parts []slice
	for _, s := range there {
		if in := sliceOf(s); s.Dimension == dimension && !seen[in] {
			seen[in] = true
			parts = append(parts, in)
		}
	}
	return parts
}

func (s slice) name() string {
	if s.other != 0 {
		return windows.OtherName
	}
	return s.value
}
