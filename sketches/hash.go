package sketches

import (
	"encoding/binary"

	"github.com/dchest/siphash"
	"github.com/zeebo/xxh3"
)

// Hash128 names an item inside sketches. Two different items have the same with
// a probability of 2⁻¹²⁸; who keeps names compares them all the same.
type Hash128 struct{ Lo, Hi uint64 }

// Hasher makes the keyed hashes that sketches are built of. It is a value: copy
// it freely, use it from any goroutine. Make one with NewHasher.
type Hasher struct {
	userK0, userK1 uint64
	idK0, idK1     uint64
	itemSeed       uint64
	key            KeyID
}

// NewHasher returns the hasher of a deployment.
func NewHasher(k Key) Hasher {
	id, item := k.derive("event id"), k.derive("item")
	return Hasher{
		userK0:   binary.LittleEndian.Uint64(k[:8]),
		userK1:   binary.LittleEndian.Uint64(k[8:]),
		idK0:     binary.LittleEndian.Uint64(id),
		idK1:     binary.LittleEndian.Uint64(id[8:]),
		itemSeed: binary.LittleEndian.Uint64(item),
		key:      k.ID(),
	}
}

// KeyID returns the name of the key that the hashes are made under.
func (h Hasher) KeyID() KeyID { return h.key }

// User returns the hash that a user enters a viewers sketch by: SipHash-2-4
// under the deployment's key as it is, so that whoever is given the key can make
// the same hash elsewhere.
func (h Hasher) User(user []byte) uint64 { return siphash.Hash(h.userK0, h.userK1, user) }

// ID returns the hash of an event's ID for deduplication: SipHash-2-4 under a
// key of its own, so that it tells nothing about a user of the same name.
func (h Hasher) ID(id []byte) uint64 { return siphash.Hash(h.idK0, h.idK1, id) }

// Item returns the hash of an item's name: XXH3 with 128 bits under a secret seed.
func (h Hasher) Item(item []byte) Hash128 {
	x := xxh3.Hash128Seed(item, h.itemSeed)
	return Hash128{Lo: x.Lo, Hi: x.Hi}
}
