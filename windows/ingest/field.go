package ingest

import "strconv"

// fieldKind is what a field is for.
type fieldKind uint8

const (
	ignored fieldKind = iota
	itemField
	typeField
	userField
	idField
	timeField
	botField
	watchedField
	ownerField
	titleField
	urlField
	imageField
	textField // a string that only has to be one
	dimensionField
)

// field is what a name in a record stands for.
type field struct {
	kind      fieldKind
	dimension int  // index of a declared dimension
	max       int  // bytes of a text
	optional  bool // left out if it is longer

	// Reasons: a wrong type, a text that is too long, a name that stands twice,
	// a value that is not UTF-8, one that is not JSON.
	wrong, long, twice, utf8, invalid string
}

// ignoredField is what a name stands for that nobody asked for.
var ignoredField = &field{twice: reasonTwice, utf8: reasonUTF8, invalid: reasonJSON}

func newField(name string, kind fieldKind, maxBytes int, wrong string) *field {
	return &field{
		kind:    kind,
		max:     maxBytes,
		wrong:   name + ": " + wrong,
		long:    name + ": longer than " + strconv.Itoa(maxBytes) + " bytes",
		twice:   name + ": stands twice",
		utf8:    name + ": not UTF-8",
		invalid: name + ": not valid JSON",
	}
}

// fieldNames returns what each name stands for. A dimension of the name of a
// field of an event would never get a value: CheckDimensions refuses it.
func fieldNames(dimensions []string) map[string]*field {
	names := make(map[string]*field)
	text := func(name string, kind fieldKind, maxBytes int) {
		names[name] = newField(name, kind, maxBytes, "not a string or an integer")
	}
	text("item", itemField, MaxItem)
	text("type", typeField, MaxType)
	text("user", userField, MaxUser)
	text("id", idField, MaxID)
	text("title", titleField, MaxTitle)
	text("url", urlField, MaxURL)
	text("image", imageField, MaxImage)
	for _, name := range []string{"title", "url", "image"} {
		names[name].optional = true
	}
	text("owner", ownerField, MaxRecord)
	for _, name := range []string{"ip", "user_agent", "referrer"} {
		text(name, textField, MaxRecord)
	}
	names["time"] = newField("time", timeField, 0, "not a string or a number; RFC 3339 with a zone or Unix milliseconds are asked")
	names["bot"] = newField("bot", botField, 0, "not true or false")
	names["watched_ms"] = newField("watched_ms", watchedField, 0, "not a number")
	for i, name := range dimensions {
		if names[name] == nil {
			names[name] = newField(name, dimensionField, MaxDimension, "not a string, a number or a bool")
			names[name].dimension = i
		}
	}
	return names
}

func fieldOf(names map[string]*field, name []byte) *field {
	if f := names[string(name)]; f != nil {
		return f
	}
	return ignoredField
}
