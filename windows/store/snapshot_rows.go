package store

import (
	"fmt"

	"tidemark/windows"
)

// Rows yields the rows of one key, one for each part of the stretch that has it.
// item is the number for kind Item, else 0.
func (n *Snapshot) Rows(at windows.Stretch, s windows.Series, kind windows.Kind, item uint32, yield func(windows.Part, windows.Row) error) error {
	series, err := n.seriesID(s)
	if err != nil || series == 0 {
		return err
	}
	switch kind {
	case windows.Site:
		item = itemSite
	case windows.Overflow:
		item = itemOverflow
	case windows.Item:
		if item < firstItem {
			return fmt.Errorf("rows of an item: %d is no item's number", item)
		}
	}
	want := makeRowKey(series, item)
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		err = n.find(p, want, yield)
		return err == nil
	})
	return err
}

// find yields the row of one key in one part.
func (n *Snapshot) find(p windows.Part, want rowKey, yield func(windows.Part, windows.Row) error) error {
	block, err := n.seek(p, want)
	if err != nil || block == nil {
		return err
	}
	r := &n.record
	b := newBlockReader(block)
	for {
		ok, err := b.next(r)
		if err != nil {
			return n.damaged(err)
		}
		if !ok {
			return n.damaged(errBlock) // the block ends with the key's row, and that is not before want
		}
		if r.key >= want {
			break
		}
	}
	if r.key != want {
		return nil
	}
	row, err := n.show(r)
	if err != nil {
		return err
	}
	return yield(p, row)
}

// RowsOf is Rows of many items in one pass: their numbers ascend, and yield is told
// which of them the row is of. It goes through each part once, from block to block.
func (n *Snapshot) RowsOf(at windows.Stretch, s windows.Series, items []uint32, yield func(i int, p windows.Part, row windows.Row) error) error {
	series, err := n.seriesID(s)
	if err != nil || series == 0 || len(items) == 0 {
		return err
	}
	if items[0] < firstItem {
		return fmt.Errorf("rows of items: %d is no item's number", items[0])
	}
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		err = n.findAll(p, series, items, yield)
		return err == nil
	})
	return err
}

// findAll yields the rows of some items of a series in one part.
func (n *Snapshot) findAll(p windows.Part, series uint32, items []uint32, yield func(i int, p windows.Part, row windows.Row) error) error {
	for i := 0; i < len(items); {
		block, err := n.seek(p, makeRowKey(series, items[i]))
		if err != nil || block == nil {
			return err
		}
		b := newBlockReader(block)
		r := &n.record
		for i < len(items) {
			ok, err := b.next(r)
			if err != nil {
				return n.damaged(err)
			}
			if !ok {
				if !n.endsAt(r.key) {
					return n.damaged(errBlock)
				}
				break
			}
			for i < len(items) && makeRowKey(series, items[i]) < r.key {
				i++ // not in this part
			}
			if i < len(items) && makeRowKey(series, items[i]) == r.key {
				row, err := n.show(r)
				if err != nil {
					return err
				}
				if err := yield(i, p, row); err != nil {
					return err
				}
				i++
			}
		}
	}
	return nil
}

// Scan yields all rows of a series, part by part, ascending by kind and item; item
// is 0 unless the row is of kind Item. Its yield must not ask the snapshot for
// anything but names and numbers.
func (n *Snapshot) Scan(at windows.Stretch, s windows.Series, yield func(p windows.Part, item uint32, row windows.Row) error) error {
	series, err := n.seriesID(s)
	if err != nil || series == 0 {
		return err
	}
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		err = n.scan(p, series, func(r *record) error {
			row, err := n.show(r)
			if err != nil {
				return err
			}
			item := r.key.item()
			if row.Kind != windows.Item {
				item = 0
			}
			return yield(p, item, row)
		})
		return err == nil
	})
	return err
}

// scan yields the records of a series in a part.
func (n *Snapshot) scan(p windows.Part, series uint32, yield func(r *record) error) error {
	block, err := n.seek(p, makeRowKey(series, 0))
	for block != nil && err == nil {
		b := newBlockReader(block)
		for {
			ok, err := b.next(&n.record)
			if err != nil {
				return n.damaged(err)
			}
			if !ok {
				if !n.endsAt(n.record.key) {
					return n.damaged(errBlock)
				}
				break
			}
			if n.record.key.series() > series {
				return nil
			}
			if n.record.key.series() == series {
				if err := yield(&n.record); err != nil {
					return err
				}
			}
		}
		block, err = n.next(p)
	}
	return err
}
