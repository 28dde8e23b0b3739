package windowstest

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// WriteCSV writes the events in the shape that Read reads, dims naming the
// further columns.
func WriteCSV(w io.Writer, events []Event, dims ...string) error {
	out := csv.NewWriter(w)
	if err := out.Write(append([]string{"ts_ms", "user", "item", "type", "event_id", "bot"}, dims...)); err != nil {
		return err
	}
	for _, e := range events {
		record := []string{strconv.FormatInt(e.Time, 10), e.User, e.Item, e.Type, e.ID, e.Bot}
		for i := range dims {
			value := ""
			if i < len(e.Dims) {
				value = e.Dims[i]
			}
			record = append(record, value)
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteNDJSON writes the events as one JSON object a line: every other one with
// the time as RFC 3339 in some zone, the fields in an order of their own, and
// names escaped as the standard library escapes them.
func WriteNDJSON(w io.Writer, events []Event, dims ...string) error {
	out := bufio.NewWriterSize(w, 1<<16)
	encode := json.NewEncoder(out)
	for i, e := range events {
		encode.SetEscapeHTML(i%3 == 0)
		object := make(map[string]any, 8) // the encoder sorts the keys
		object["item"], object["type"] = e.Item, e.Type
		if i%2 == 0 {
			object["time"] = e.Time
		} else {
			zone := time.FixedZone("", (i%29-14)*1800)
			object["time"] = time.UnixMilli(e.Time).In(zone).Format("2006-01-02T15:04:05.000Z07:00")
		}
		if e.User != "" {
			object["user"] = e.User
		}
		if e.ID != "" {
			object["id"] = e.ID
		}
		for d, name := range dims {
			if d < len(e.Dims) && e.Dims[d] != "" {
				object[name] = e.Dims[d]
			}
		}
		if err := encode.Encode(object); err != nil {
			return err
		}
	}
	return out.Flush()
}
