package store

import (
	"errors"
	"fmt"

	"tidemark/sketches"
	"tidemark/windows"
)

// Lists yields one list for each part of the stretch that has items of the series:
// the stored one, or where there are few, of all of them.
func (n *Snapshot) Lists(at windows.Stretch, s windows.Series, yield func(windows.Part, windows.TopList) error) error {
	series, err := n.seriesID(s)
	if err != nil || series == 0 {
		return err
	}
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		var any bool
		if any, err = n.readList(p, series); err == nil && any {
			err = yield(p, n.list)
		}
		return err == nil
	})
	return err
}

// readList brings the list of a series in a part into n.list.
func (n *Snapshot) readList(p windows.Part, series uint32) (any bool, err error) {
	n.top.reset()
	value, err := n.value(p, makeRowKey(seriesTop, series))
	if err != nil {
		return false, err
	}
	if value != nil {
		if !parseTopList(value, &n.top.list) {
			return false, n.damaged(errors.New("not a list"))
		}
		n.top.list.show(&n.list)
		return true, nil
	}
	err = n.scan(p, series, func(r *record) error {
		if r.key.item() >= firstItem {
			n.top.add(topItem{id: r.key.item(), events: r.events, reached: r.reached, short: r.short})
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	list := n.top.finish()
	list.show(&n.list)
	return len(list.items) > 0, nil
}

// Sketches yields, for each part in which items of a type found no slot, the
// Count-Min table of all its keys, nil if it was found damaged when it was sealed,
// and the highest of the items without a slot. typ has no dimension.
func (n *Snapshot) Sketches(at windows.Stretch, typ windows.Series, yield func(windows.Part, *sketches.CountMin, *sketches.TopK) error) error {
	series, err := n.seriesID(typ)
	if err != nil || series == 0 {
		return err
	}
	n.eachPart(at, func(p windows.Part, info presenceInfo) bool {
		if !info.overflowed() {
			return true
		}
		var table *sketches.CountMin
		var heap *sketches.TopK
		if table, heap, err = n.readSketches(p, series); err == nil && heap != nil {
			err = yield(p, table, heap)
		}
		return err == nil
	})
	return err
}

func (n *Snapshot) readSketches(p windows.Part, series uint32) (table *sketches.CountMin, heap *sketches.TopK, err error) {
	value, err := n.value(p, makeRowKey(seriesHeap, series))
	if err != nil || value == nil {
		return nil, nil, err
	}
	if heap, err = sketches.DecodeTopK(value); err != nil {
		return nil, nil, n.damaged(err)
	}
	if value, err = n.value(p, makeRowKey(seriesCountMin, series)); err != nil || value == nil {
		return nil, heap, err
	}
	if table, err = sketches.DecodeCountMin(value); err != nil {
		return nil, nil, n.damaged(err)
	}
	return table, heap, nil
}

// Outcomes yields what became of the records of each minute, or other period, of
// the stretch: part by part.
func (n *Snapshot) Outcomes(at windows.Stretch, yield func(windows.Part, windows.OutcomeCount) error) error {
	var err error
	n.eachPart(at, func(p windows.Part, _ presenceInfo) bool {
		err = n.scan(p, seriesOutcomes, func(r *record) error {
			o := windows.OutcomeCount{Outcome: windows.Outcome(r.key.item() >> 24), Records: r.events}
			if o.Outcome >= outcomeCount {
				return n.damaged(fmt.Errorf("outcome %d", o.Outcome))
			}
			if reason := r.key.item() & lastReason; reason != reasonNone {
				name, err := n.store.reasons.name(n.pebble, reason)
				if err != nil {
					return err
				}
				o.Reason = string(name)
			}
			return yield(p, o)
		})
		return err == nil
	})
	return err
}
