package store

import (
	"cmp"
	"slices"

	"tidemark/windows"
)

// entry is a part's presence at a start: from the top, start, part, info.
type entry uint64

const (
	entryPart  = presenceBits
	entryStart = entryPart + 32
)

func makeEntry(start windows.Minute, part uint32, info presenceInfo) entry {
	return entry(start)<<entryStart | entry(part)<<entryPart | entry(info)
}

func (e entry) start() windows.Minute { return windows.Minute(e >> entryStart) }
func (e entry) part() uint32          { return uint32(e >> entryPart) }
func (e entry) info() presenceInfo    { return presenceInfo(e & (1<<presenceBits - 1)) }

// same reports whether two entries are of one part and start.
func (e entry) same(o entry) bool { return e>>entryPart == o>>entryPart }

// catalogue knows, for each level, which parts each start has. It lies in memory,
// eight bytes a part and start, in pages; a copy shares the pages, and a page is
// copied when it is changed and shared. The zero value is empty.
type catalogue struct {
	levels [levelCount][]*page // ascending
	// epoch marks the pages, and the lists of pages, that are this catalogue's own.
	epoch uint64
	owned [levelCount]uint64
}

// page holds the entries of some starts, ascending. Where it would outgrow
// pageSize it is divided.
type page struct {
	epoch   uint64
	entries []entry // never empty
}

const pageSize = 2048

// share returns a copy that later changes leave alone.
func (c *catalogue) share() catalogue {
	out := *c
	c.epoch++
	return out
}

// own returns the list of a level's pages, ready to be changed.
func (c *catalogue) own(l windows.Level) []*page {
	if c.owned[l] != c.epoch {
		c.levels[l] = slices.Clone(c.levels[l])
		c.owned[l] = c.epoch
	}
	return c.levels[l]
}

// ownPage returns a page of a list that is owned, ready to be changed.
func (c *catalogue) ownPage(pages []*page, i int) *page {
	if pages[i].epoch != c.epoch {
		pages[i] = &page{epoch: c.epoch, entries: slices.Clone(pages[i].entries)}
	}
	return pages[i]
}

// pageOf returns the index of the page that holds e, or would.
func pageOf(pages []*page, e entry) int {
	i, found := slices.BinarySearchFunc(pages, e, func(p *page, e entry) int { return cmp.Compare(p.entries[0], e) })
	if !found && i > 0 {
		i--
	}
	return i
}

// add says that a part has blocks of a start.
func (c *catalogue) add(l windows.Level, at presence, part uint32) {
	e := makeEntry(at.start, part, at.info)
	pages := c.own(l)
	if len(pages) == 0 {
		c.levels[l] = append(pages, &page{epoch: c.epoch, entries: []entry{e}})
		return
	}
	i := pageOf(pages, e)
	p := c.ownPage(pages, i)
	at0, found := slices.BinarySearch(p.entries, e)
	if found {
		return
	}
	if len(p.entries) >= pageSize {
		if i == len(pages)-1 && at0 == len(p.entries) { // time goes on: leave full pages behind
			c.levels[l] = append(pages, &page{epoch: c.epoch, entries: []entry{e}})
			return
		}
		upper := &page{epoch: c.epoch, entries: slices.Clone(p.entries[pageSize/2:])}
		p.entries = p.entries[:pageSize/2]
		c.levels[l] = slices.Insert(pages, i+1, upper)
		if at0 > pageSize/2 {
			p, at0 = upper, at0-pageSize/2
		}
	}
	p.entries = slices.Insert(p.entries, at0, e)
}

// remove takes a part away from a start.
func (c *catalogue) remove(l windows.Level, start windows.Minute, part uint32) {
	e := makeEntry(start, part, 0)
	pages := c.own(l)
	if len(pages) == 0 {
		return
	}
	// The entry has an info, so it is e or right behind it, perhaps on the next page.
	i := pageOf(pages, e)
	at, _ := slices.BinarySearch(pages[i].entries, e)
	if at == len(pages[i].entries) && i+1 < len(pages) {
		i, at = i+1, 0
	}
	if at == len(pages[i].entries) || !pages[i].entries[at].same(e) {
		return
	}
	p := c.ownPage(pages, i)
	p.entries = slices.Delete(p.entries, at, at+1)
	if len(p.entries) == 0 {
		c.levels[l] = slices.Delete(pages, i, i+1)
	}
}

// cut takes away all starts before floor.
func (c *catalogue) cut(l windows.Level, floor windows.Minute) {
	pages := c.own(l)
	e := makeEntry(floor, 0, 0)
	for len(pages) > 0 {
		if last := pages[0].entries; last[len(last)-1] >= e {
			break
		}
		pages = pages[1:]
	}
	if len(pages) > 0 && pages[0].entries[0] < e {
		p := c.ownPage(pages, 0)
		at, _ := slices.BinarySearch(p.entries, e)
		p.entries = p.entries[at:]
	}
	c.levels[l] = pages
}

// each calls yield for the parts of all starts in the range, ascending, until it
// returns false.
func (c *catalogue) each(l windows.Level, r windows.Range, yield func(e entry) bool) {
	pages := c.levels[l]
	if r.Empty() || len(pages) == 0 {
		return
	}
	from, to := makeEntry(r.From, 0, 0), makeEntry(min(r.To, windows.MaxMinute), 0, 0)
	for i := pageOf(pages, from); i < len(pages); i++ {
		entries := pages[i].entries
		at, _ := slices.BinarySearch(entries, from)
		for _, e := range entries[at:] {
			if e >= to || !yield(e) {
				return
			}
		}
	}
}

// any reports whether a start in the range has a part.
func (c *catalogue) any(l windows.Level, r windows.Range) bool {
	found := false
	c.each(l, r, func(entry) bool {
		found = true
		return false
	})
	return found
}

// first returns the first start of a level in which events are counted.
func (c *catalogue) first(l windows.Level) (start windows.Minute, ok bool) {
	for _, p := range c.levels[l] {
		for _, e := range p.entries {
			if e.info().counted() {
				return e.start(), true
			}
		}
	}
	return 0, false
}

// last returns the last start of a level in which events are counted.
func (c *catalogue) last(l windows.Level) (start windows.Minute, ok bool) {
	for _, p := range slices.Backward(c.levels[l]) {
		for _, e := range slices.Backward(p.entries) {
			if e.info().counted() {
				return e.start(), true
			}
		}
	}
	return 0, false
}
