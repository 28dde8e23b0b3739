package web

import (
	"mime"
	"strconv"
	"strings"
)

// prefersCSV reports whether a client asks for CSV rather than for JSON (RFC 9110,
// 12.5.1). JSON is what everybody gets who does not say otherwise.
func prefersCSV(accept []string) bool {
	csv, json := 0.0, 0.0
	csvRank, jsonRank := -1, -1
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
		if rank := specificity(name, "text/csv"); rank > csvRank {
			csv, csvRank = q, rank
		}
		if rank := specificity(name, "application/json"); rank > jsonRank {
			json, jsonRank = q, rank
		}
	}
	return csv > json || csv == json && csv > 0 && csvRank > jsonRank
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
