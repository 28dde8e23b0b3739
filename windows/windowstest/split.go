package windowstest

import (
	"tidemark/sketches"
	"tidemark/windows"
)

// Split makes the records of a log of the events: record i has offset i and the
// given timestamp, and goes to a partition by its user, without one by its ID,
// without either by its offset.
func Split(h sketches.Hasher, events []Event, partitions int, stamp int64) [][]windows.Event {
	split := make([][]windows.Event, partitions)
	for i, e := range events {
		record := windows.Event{
			Offset: int64(i), Stamp: stamp, Time: e.Time,
			Item: []byte(e.Item), Type: []byte(e.Type), ItemHash: h.Item([]byte(e.Item)),
			HasUser: e.User != "", HasID: e.ID != "",
		}
		route := uint64(i)
		if record.HasID {
			record.ID = h.ID([]byte(e.ID))
			route = record.ID
		}
		if record.HasUser {
			record.User = h.User([]byte(e.User))
			route = record.User
		}
		for _, v := range e.Dims {
			var value []byte
			if v != "" {
				value = []byte(v)
			}
			record.Dims = append(record.Dims, value)
		}
		p := int(route % uint64(partitions))
		split[p] = append(split[p], record)
	}
	return split
}
