package windowstest

import (
	"encoding/binary"
	"hash"

	"tidemark/windows"
)

// WriteSeal writes everything that a seal holds into a hash, in the order in which
// it holds it: two logs that seal the same have the same hash.
func WriteSeal(h hash.Hash, s *windows.Seal) error {
	var b []byte
	b = append(b, s.Log[:]...)
	for _, n := range []int64{int64(s.Partition), int64(s.E), int64(s.To.F), s.To.S, int64(s.From.F), s.From.S, s.R, int64(len(s.Partials))} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	h.Write(b)
	for _, p := range s.Partials {
		if err := writeContent(h, &p.Content); err != nil {
			return err
		}
	}
	return nil
}

func writeContent(h hash.Hash, c *windows.Content) error {
	key := mergedKey{minute: c.Minute()}
	series := c.Series()
	for _, s := range series {
		key.series = s
		writeKey(h, key)
		if s.Dimension != "" {
			continue
		}
		table, heap, ok := c.Sketch(s)
		if !ok {
			continue
		}
		b, err := table.AppendBinary(nil)
		if err != nil {
			return err
		}
		if b, err = heap.AppendBinary(b); err != nil {
			return err
		}
		h.Write(b)
	}
	c.Each(func(s int, r windows.Row) bool {
		key.series, key.kind, key.item = series[s], r.Kind, string(r.Item)
		writeKey(h, key)
		writeSum(h, &mergedSum{r.Events, r.Reached, r.Tokens, r.Registers})
		return true
	})
	for _, o := range c.Outcomes() {
		b := binary.BigEndian.AppendUint64([]byte{byte(o.Outcome)}, o.Records)
		h.Write(append(b, o.Reason...))
	}
	return nil
}
