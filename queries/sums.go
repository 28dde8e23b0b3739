package queries

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"tidemark/windows"
)

// sum is how many events each item had in some parts of the store: the counts that
// have slots, without what only may be the item's. It does not change.
//
// Identifiers are given one after the other, and parts have them ascending, so an
// array of pages takes a fraction of the time of a hash table.
type sum struct {
	of    string // the series, range and parts
	pages []*sumPage
	made  int               // pages that there are
	big   map[uint32]uint64 // counts that do not fit
}

type sumPage [pageSize]uint32

const pageSize = 512

func (s *sum) at(id uint32) uint64 {
	page := id / pageSize
	if int(page) >= len(s.pages) || s.pages[page] == nil {
		return 0
	}
	return s.whole(id, s.pages[page][id%pageSize])
}

// whole returns the count of an item whose page says n.
func (s *sum) whole(id, n uint32) uint64 {
	if n == math.MaxUint32 {
		return s.big[id]
	}
	return uint64(n)
}

func (s *sum) add(id uint32, n uint64) {
	page := int(id / pageSize)
	if page >= len(s.pages) {
		s.pages = append(s.pages, make([]*sumPage, page+1-len(s.pages))...)
	}
	p := s.pages[page]
	if p == nil {
		p = new(sumPage)
		s.pages[page] = p
		s.made++
	}
	c := &p[id%pageSize]
	if n += s.whole(id, *c); n < math.MaxUint32 {
		*c = uint32(n)
		return
	}
	if s.big == nil {
		s.big = make(map[uint32]uint64)
	}
	*c, s.big[id] = math.MaxUint32, n
}

// atLeast yields the items that have so many, which is not 0.
func (s *sum) atLeast(n uint64, yield func(id uint32)) {
	bar := uint32(min(n, math.MaxUint32))
	for page, p := range s.pages {
		if p == nil {
			continue
		}
		for i, c := range p {
			if c < bar {
				continue
			}
			if id := uint32(page*pageSize + i); s.whole(id, c) >= n {
				yield(id)
			}
		}
	}
}

// sumCache keeps sums from one question to the next: a ranking by what rises is asked
// for every second, and needs those of all items in hours that hardly change.
//
// A sum is of exactly the parts that it names, so what is answered from it is what
// would be answered without. Nothing but a part that is new makes another one.
type sumCache struct {
	mu     sync.Mutex
	recent []*sum // the last used first
	names  map[string]uint32
}

// Limits of what is kept.
const (
	maxSums  = 64
	maxPages = 128 << 10 // of all sums; 2 KiB each
	maxNamed = 1 << 20   // names whose identifiers are known
)

// sums returns those of some ranges, for some groups: together they have what is stored.
func (v *view) sums(ctx context.Context, cache *sumCache, groups []group, ranges ...windows.Range) (all []*sum, err error) {
	for _, r := range ranges {
		if r.Empty() {
			continue
		}
		s, err := v.sum(ctx, cache, r, groups)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (v *view) sum(ctx context.Context, cache *sumCache, r windows.Range, groups []group) (*sum, error) {
	steps, _ := v.snap.Plan([]windows.Minute{r.From, r.To})
	of := v.nameOf(r, groups, steps)
	// Who needs the same at the same time waits, and has it then.
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if i := slices.IndexFunc(cache.recent, func(s *sum) bool { return s.of == of }); i >= 0 {
		s := cache.recent[i]
		copy(cache.recent[1:], cache.recent[:i])
		cache.recent[0] = s
		return s, nil
	}
	s := &sum{of: of}
	for _, g := range groups {
		for _, at := range steps {
			err := v.snap.Scan(at, g.series, func(_ windows.Part, id uint32, row windows.Row) error {
				if row.Kind == windows.Item {
					s.add(id, row.Events)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	cache.keep(s)
	return s, nil
}

// nameOf names a sum by all that it depends on.
func (v *view) nameOf(r windows.Range, groups []group, steps []windows.Stretch) string {
	var name strings.Builder
	fmt.Fprintf(&name, "%d %d", r.From, r.To)
	for _, g := range groups {
		fmt.Fprintf(&name, "%q", []any{g.series})
	}
	var id []byte
	for _, at := range steps {
		v.snap.EachPart(at, func(p windows.Part) {
			id = append(id[:0], byte(p.Level))
			id = binary.AppendUvarint(id, uint64(p.Start))
			name.Write(binary.AppendUvarint(id, uint64(p.ID)))
		})
	}
	return name.String()
}

// keep enters a sum, and lets go of those that were not used for longest; mu is held.
func (c *sumCache) keep(s *sum) {
	c.recent = slices.Insert(c.recent, 0, s)
	pages := 0
	for i, s := range c.recent {
		if pages += s.made; i == maxSums || i > 0 && pages > maxPages {
			clear(c.recent[i:])
			c.recent = c.recent[:i]
			return
		}
	}
}

// idOf returns the identifier of an item that is stored, which is its for good; mu is
// held.
func (c *sumCache) idOf(v *view, name string) (id uint32, stored bool, err error) {
	if id, known := c.names[name]; known {
		return id, true, nil
	}
	if id, stored, err = v.snap.ID(name); err != nil || !stored {
		return 0, false, err
	}
	if c.names == nil || len(c.names) >= maxNamed {
		c.names = make(map[string]uint32)
	}
	c.names[strings.Clone(name)] = id // which is a piece of a long text
	return id, true, nil
}
