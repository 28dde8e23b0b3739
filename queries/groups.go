package queries

import (
	"slices"
	"strings"

	"tidemark/windows"
)

// group is what one entry of Counts is about: the series of one type.
type group struct {
	name   string
	index  int // in a tally
	series windows.Series
	// rest are series that can hold events of this one: of the types, or values,
	// that were beyond a window's limit.
	rest []windows.Series
}

// slice says what of all events a question is about: one dimension's value, or
// the rest of its values; no dimension is everything.
type slice struct {
	dimension, value string
	other            windows.Other // OtherValue or 0
}

func sliceOf(s windows.Series) slice {
	return slice{s.Dimension, s.Value, s.Other & windows.OtherValue}
}

// groupsOf returns the series of the types asked for in a slice, among all there are.
func groupsOf(there []windows.Series, types []string, in slice) []group {
	var groups []group
	if slices.Contains(types, AllTypes) {
		for _, s := range there {
			if sliceOf(s) == in {
				groups = append(groups, group{name: typeName(s), series: s})
			}
		}
		slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a.name, b.name) })
	} else {
		for _, t := range types {
			groups = append(groups, group{name: t, series: windows.Series{Type: t, Dimension: in.dimension, Value: in.value, Other: in.other}})
		}
	}
	for i := range groups {
		groups[i].index = i
		for _, s := range there {
			if s != groups[i].series && mayHold(s, groups[i].series) {
				groups[i].rest = append(groups[i].rest, s)
			}
		}
	}
	return groups
}

// mayHold reports whether events of s can be in rest because of a window's limit.
func mayHold(rest, s windows.Series) bool {
	typ := rest.Type == s.Type && rest.Other&windows.OtherType == s.Other&windows.OtherType
	value := rest.Value == s.Value && rest.Other&windows.OtherValue == s.Other&windows.OtherValue
	return rest.Dimension == s.Dimension &&
		(typ || rest.Other&windows.OtherType != 0) && (value || rest.Other&windows.OtherValue != 0)
}

// typeName is how a series' type is shown. A type that an event calls like the
// rest is shown as a name in quotes.
func typeName(s windows.Series) string {
	switch {
	case s.Other&windows.OtherType != 0:
		return windows.OtherName
	case s.Type == windows.OtherName || s.Type == AllTypes:
		return `"` + s.Type + `"`
	default:
		return s.Type
	}
}

// typesOf returns the types asked for, each once, the view types if none.
func (e *Engine) typesOf(asked []string) []string {
	if len(asked) == 0 {
		asked = e.cfg.ViewTypes
	}
	if slices.Contains(asked, AllTypes) {
		return []string{AllTypes}
	}
	var types []string
	for _, t := range asked {
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}
