package queries

import (
	"context"
	"errors"
	"maps"
	"slices"

	"tidemark/sketches"
	"tidemark/windows"
)

// steps returns what of the store covers a span, its buckets kept apart.
func (v *view) steps(in *span) []windows.Stretch {
	if in.steps == nil {
		in.steps, _ = v.snap.Plan(in.buckets)
	}
	return in.steps
}

// rows yields the rows of a key in a series, one for each part that has it.
func (v *view) rows(in *span, s windows.Series, k key, yield func(windows.Part, windows.Row) error) error {
	id, err := v.id(k)
	if err != nil {
		return err
	}
	if id.stored {
		for _, at := range v.steps(in) {
			if err := v.snap.Rows(at, s, k.kind, id.id, yield); err != nil {
				return err
			}
		}
	}
	return v.liveRows(in, s, k, yield)
}

func (v *view) liveRows(in *span, s windows.Series, k key, yield func(windows.Part, windows.Row) error) error {
	for _, f := range v.live {
		if !in.Contains(f.part.Start) {
			continue
		}
		if row, ok := f.find(s, k); ok {
			if err := yield(f.part, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// read yields the rows of some keys in a series, which are all items, or all not.
func (v *view) read(ctx context.Context, in *span, s windows.Series, keys []key, yield func(i int, p windows.Part, row windows.Row)) error {
	if len(keys) > 1 && keys[0].kind == windows.Item {
		return v.readItems(ctx, in, s, keys, yield)
	}
	for i, k := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := v.rows(in, s, k, func(p windows.Part, row windows.Row) error {
			yield(i, p, row)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readItems is read of many items: in one pass over the parts.
func (v *view) readItems(ctx context.Context, in *span, s windows.Series, keys []key, yield func(i int, p windows.Part, row windows.Row)) error {
	index := make(map[uint32][]int, len(keys)) // an item may be asked for twice
	for i, k := range keys {
		id, err := v.id(k)
		if err != nil {
			return err
		}
		if id.stored {
			index[id.id] = append(index[id.id], i)
		}
	}
	ids := slices.Sorted(maps.Keys(index))
	for _, at := range v.steps(in) {
		var last windows.Part
		err := v.snap.RowsOf(at, s, ids, func(i int, p windows.Part, row windows.Row) error {
			for _, i := range index[ids[i]] {
				yield(i, p, row)
			}
			if p == last {
				return nil
			}
			last = p
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	for i, k := range keys {
		err := v.liveRows(in, s, k, func(p windows.Part, row windows.Row) error {
			yield(i, p, row)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sketches yields what is known of the items of a type that found no slot.
func (v *view) sketches(in *span, typ windows.Series, yield func(windows.Part, *sketches.CountMin, *sketches.TopK) error) error {
	typ = windows.Series{Type: typ.Type, Other: typ.Other & windows.OtherType}
	for _, at := range v.steps(in) {
		if err := v.snap.Sketches(at, typ, yield); err != nil {
			return err
		}
	}
	for _, f := range v.live {
		if fs := f.series[typ]; in.Contains(f.part.Start) && fs != nil && fs.heap != nil {
			if err := yield(f.part, fs.table, fs.heap); err != nil {
				return err
			}
		}
	}
	return nil
}

// errStop ends a reading early.
var errStop = errors.New("stop")

// overflowed reports whether some item of the series' type found no slot.
func (v *view) overflowed(in *span, s windows.Series) (bool, error) {
	err := v.sketches(in, s, func(windows.Part, *sketches.CountMin, *sketches.TopK) error { return errStop })
	if errors.Is(err, errStop) {
		return true, nil
	}
	return false, err
}

// overflow returns how many events of a series had no slot, by part.
func (v *view) overflow(in *span, s windows.Series) (map[windows.Part]uint64, error) {
	some, err := v.overflowed(in, s)
	if err != nil || !some {
		return nil, err
	}
	overflow := make(map[windows.Part]uint64)
	err = v.rows(in, s, key{kind: windows.Overflow}, func(p windows.Part, r windows.Row) error {
		overflow[p] = r.Events
		return nil
	})
	return overflow, err
}

// id is Snapshot.ID of a key, remembered.
func (v *view) id(k key) (itemID, error) {
	if k.kind != windows.Item {
		return itemID{stored: true}, nil
	}
	if id, ok := v.ids[k.item]; ok {
		return id, nil
	}
	id, stored, err := v.snap.ID(k.item)
	if err == nil {
		v.ids[k.item] = itemID{id, stored}
	}
	return itemID{id, stored}, err
}

// name is Snapshot.Name, remembered.
func (v *view) name(id uint32) (string, error) {
	if name, ok := v.names[id]; ok {
		return name, nil
	}
	name, err := v.snap.Name(id)
	if err == nil {
		v.names[id], v.ids[name] = name, itemID{id, true}
	}
	return name, err
}
