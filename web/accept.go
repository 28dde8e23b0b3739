package web

import (
	"mime"
	"strconv"
	"strings"
)

// The types of an answer.
const (
	jsonType   = "application/json"
	csvType    = "text/csv"
	streamType = "text/event-stream"
)

// preferred returns the type that a client asks for (RFC 9110, 12.5.1). JSON is what
// everybody gets who does not say otherwise, and a stream only who names it.
func preferred(accept []string) string {
	best := map[string]float64{}
	rank := map[string]int{jsonType: -1, csvType: -1, streamType: 1}
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		q := 1.0
		if v, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(v, 64); err != nil {
				continue
			}
		}
		for kind := range rank {
			if r := specificity(name, kind); r > rank[kind] {
				best[kind], rank[kind] = q, r
			}
		}
	}
	choice := jsonType
	for _, kind := range []string{csvType, streamType} {
		if q := best[kind]; q > best[choice] || q == best[choice] && q > 0 && rank[kind] > rank[choice] {
			choice = kind
		}
	}
	return choice
}

// specificity returns how narrowly a media range names a type; -1 if it does not.
func specificity(mediaRange, mediaType string) int {
	family, _, _ := strings.Cut(mediaType, "/")
	switch mediaRange {
	case mediaType:
		return 2
	case family + "/*":
		return 1
	case "*/*":
		return 0
	default:
		return -1
	}
}
