package sketches

import "math"

const (
	// Rows is the number of rows of a Count-Min table.
	Rows = 4
	// Width is the number of counters in a row.
	Width = 1 << widthBits

	widthBits = 16
)

// CountMin is a Count-Min table (Cormode and Muthukrishnan, 2005) with
// conservative update (Estan and Varghese, 2002). An estimate is never below the
// count, and above it by more than Error with a probability of at most e⁻⁴.
//
// Counters saturate: at 2³²−1 an estimate means "at least". Not safe for
// concurrent use while one call changes it.
type CountMin struct {
	key   KeyID
	total uint64
	cells [Rows][Width]uint32
}

// NewCountMin returns an empty table, 1 MiB large, for hashes made under key.
func NewCountMin(key KeyID) *CountMin { return &CountMin{key: key} }

// Key returns the name of the key that its hashes were made under.
func (c *CountMin) Key() KeyID { return c.key }

// Total returns the sum of all that was added.
func (c *CountMin) Total() uint64 { return c.total }

// Add counts n more for the item with this hash (Hash128.Lo of Hasher.Item) and
// returns its estimate from then on.
//
// A row's index is 16 bits of the hash, other ones for each row: two items meet
// in all four rows only if their 64 bits are the same, which is w⁻⁴, where the
// usual double hashing gives w⁻².
func (c *CountMin) Add(h uint64, n uint32) uint32 {
	c.total += uint64(n)
	p0, p1 := &c.cells[0][uint16(h)], &c.cells[1][uint16(h>>16)]
	p2, p3 := &c.cells[2][uint16(h>>32)], &c.cells[3][uint16(h>>48)]
	least := min(*p0, *p1, *p2, *p3)
	m := least + n
	if m < least {
		m = math.MaxUint32
	}
	*p0 = max(*p0, m)
	*p1 = max(*p1, m)
	*p2 = max(*p2, m)
	*p3 = max(*p3, m)
	return m
}

// Estimate returns the estimate for the item with this hash.
func (c *CountMin) Estimate(h uint64) uint32 {
	return min(c.cells[0][uint16(h)], c.cells[1][uint16(h>>16)],
		c.cells[2][uint16(h>>32)], c.cells[3][uint16(h>>48)])
}

// Touch reads the four counters of a hash and nothing else, so that they are in
// the cache when Add asks for them: a loop of it over a batch lets the memory
// answer many at once. What it returns is to be kept somewhere, or the compiler
// leaves the reads out.
func (c *CountMin) Touch(h uint64) uint32 {
	return c.cells[0][uint16(h)] | c.cells[1][uint16(h>>16)] |
		c.cells[2][uint16(h>>32)] | c.cells[3][uint16(h>>48)]
}

// Error returns how much an estimate is above the count at most, with a
// probability of 1 − e⁻⁴ = 98.2 %: e/w of the total.
func (c *CountMin) Error() uint64 { return uint64(math.Ceil(math.E / Width * float64(c.total))) }

// Row returns the counters of row i in [0, Rows), to look at.
func (c *CountMin) Row(i int) []uint32 { return c.cells[i][:] }

// Merge adds o's counters to its own. The estimates of the sum are still never
// below the counts, and the same Error holds, since each counter is between the
// truth and that of the plain update. It does not change o. Of two keys it
// changes nothing and returns an error wrapping ErrKey.
func (c *CountMin) Merge(o *CountMin) error {
	if err := sameKey("count-min", c.key, o.key); err != nil {
		return err
	}
	c.total += o.total
	for r := range c.cells {
		into, from := &c.cells[r], &o.cells[r]
		for i, n := range from {
			sum := into[i] + n
			if sum < n {
				sum = math.MaxUint32
			}
			into[i] = sum
		}
	}
	return nil
}

// Clone returns a copy.
func (c *CountMin) Clone() *CountMin {
	d := *c
	return &d
}

// Reset empties the table.
func (c *CountMin) Reset() {
	c.total = 0
	clear(c.cells[:])
}
