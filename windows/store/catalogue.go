package store

import (
	"cmp"
	"slices"

	"tidemark/windows"
)

// entry is a part's presence at a start: the start above, the part below.
type entry uint64

func makeEntry(start windows.Minute, part uint32) entry { return entry(start)<<32 | entry(part) }

func (e entry) start() windows.Minute { return windows.Minute(e >> 32) }
func (e entry) part() uint32          { return uint32(e) }

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
func (c *catalogue) add(l windows.Level, start windows.Minute, part uint32) {
	e := makeEntry(start, part)
	pages := c.own(l)
	if len(pages) == 0 {
		c.levels[l] = append(pages, &page{epoch: c.epoch, entries: []entry{e}})
		return
	}
	i := pageOf(pages, e)
	p := c.ownPage(pages, i)
	at, found := slices.BinarySearch(p.entries, e)
	if found {
		return
	}
	if len(p.entries) >= pageSize {
		if i == len(pages)-1 && at == len(p.entries) { // time goes on: leave full pages behind
			c.levels[l] = append(pages, &page{epoch: c.epoch, entries: []entry{e}})
			return
		}
		upper := &page{epoch: c.epoch, entries: slices.Clone(p.entries[pageSize/2:])}
		p.entries = p.entries[:pageSize/2]
		c.levels[l] = slices.Insert(pages, i+1, upper)
		if at > pageSize/2 {
			p, at = upper, at-pageSize/2
		}
	}
	p.entries = slices.Insert(p.entries, at, e)
}

// remove takes a part away from a start.
func (c *catalogue) remove(l windows.Level, start windows.Minute, part uint32) {
	e := makeEntry(start, part)
	pages := c.own(l)
	if len(pages) == 0 {
		return
	}
	i := pageOf(pages, e)
	p := c.ownPage(pages, i)
	at, found := slices.BinarySearch(p.entries, e)
	if !found {
		return
	}
	p.entries = slices.Delete(p.entries, at, at+1)
	if len(p.entries) == 0 {
		c.levels[l] = slices.Delete(pages, i, i+1)
	}
}

// each calls yield for the parts of all starts in the range, ascending, until it
// returns false.
func (c *catalogue) each(l windows.Level, r windows.Range, yield func(start windows.Minute, part uint32) bool) {
	if r.Empty() {
		return
	}
	from, to := makeEntry(r.From, 0), makeEntry(r.To, 0)
	pages := c.levels[l]
	if len(pages) == 0 {
		return
	}
	for i := pageOf(pages, from); i < len(pages); i++ {
		entries := pages[i].entries
		at, _ := slices.BinarySearch(entries, from)
		for _, e := range entries[at:] {
			if e >= to || !yield(e.start(), e.part()) {
				return
			}
		}
	}
}

// span returns the range from the first start of a level to the last.
func (c *catalogue) span(l windows.Level) (first, last windows.Minute, ok bool) {
	pages := c.levels[l]
	if len(pages) == 0 {
		return 0, 0, false
	}
	tail := pages[len(pages)-1].entries
	return pages[0].entries[0].start(), tail[len(tail)-1].start(), true
}
