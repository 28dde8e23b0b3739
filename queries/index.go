package queries

// idIndex finds a number by an item's identifier, which is not 0: an open-addressed
// table, since a ranking looks up each entry of each list. A map takes ten times as
// long.
type idIndex struct {
	slots []idSlot
	n     int
	shift uint8
}

type idSlot struct {
	id uint32
	at uint32
}

const minIDs = 1 << 10

func (x *idIndex) home(id uint32) uint32 { return id * 0x9e3779b1 >> x.shift }

func (x *idIndex) get(id uint32) (int, bool) {
	if x.n == 0 {
		return 0, false
	}
	for i := x.home(id); ; i = (i + 1) & uint32(len(x.slots)-1) {
		switch s := x.slots[i]; s.id {
		case id:
			return int(s.at), true
		case 0:
			return 0, false
		}
	}
}

// put enters an identifier that is not there yet.
func (x *idIndex) put(id uint32, at int) {
	if 2*(x.n+1) > len(x.slots) {
		old := x.slots
		size := max(minIDs, 2*len(old))
		x.slots, x.shift, x.n = make([]idSlot, size), 32, 0
		for n := size; n > 1; n >>= 1 {
			x.shift--
		}
		for _, s := range old {
			if s.id != 0 {
				x.put(s.id, int(s.at))
			}
		}
	}
	i := x.home(id)
	for x.slots[i].id != 0 {
		i = (i + 1) & uint32(len(x.slots)-1)
	}
	x.slots[i] = idSlot{id, uint32(at)}
	x.n++
}
