package queries

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"tidemark/windows"
)

// sum is how many events each item had in some parts of the store: the counts that
// have slots, without what only may be the item's. It does not change.
type sum struct {
	of     string // the series, range and parts
	index  idIndex
	ids    []uint32
	counts []uint64
}

func (s *sum) at(id uint32) uint64 {
	i, ok := s.index.get(id)
	if !ok {
		return 0
	}
	return s.counts[i]
}

func (s *sum) add(id uint32, n uint64) {
	i, ok := s.index.get(id)
	if !ok {
		i = len(s.counts)
		s.index.put(id, i)
		s.ids, s.counts = append(s.ids, id), append(s.counts, 0)
	}
	s.counts[i] += n
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
	maxSums   = 64
	maxSummed = 6 << 20 // entries of all sums; 32 bytes each
	maxNamed  = 1 << 20 // names whose identifiers are known
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
	entries := 0
	for i, s := range c.recent {
		if entries += len(s.ids); i == maxSums || i > 0 && entries > maxSummed {
			clear(c.recent[i:])
			c.recent = c.recent[:i]
			return
		}
	}
}

// idOf returns the identifier of an item that is stored, which is its for good.
func (v *view) idOf(cache *sumCache, name string) (uint32, bool, error) {
	cache.mu.Lock()
	id, known := cache.names[name]
	cache.mu.Unlock()
	if known {
		return id, true, nil
	}
	id, stored, err := v.snap.ID(name)
	if err != nil || !stored {
		return 0, false, err
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if cache.names == nil || len(cache.names) >= maxNamed {
		cache.names = make(map[string]uint32)
	}
	cache.names[name] = id
	return id, true, nil
}
