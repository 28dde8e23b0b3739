package sketches

import "testing"

// TestUserHashIsSipHash holds the test vector of the paper (Aumasson and
// Bernstein, 2012, appendix A), so that others can make the same hashes.
func TestUserHashIsSipHash(t *testing.T) {
	var k Key
	var user []byte
	for i := range k {
		k[i] = byte(i)
	}
	for i := range 15 {
		user = append(user, byte(i))
	}
	if got := NewHasher(k).User(user); got != 0xa129ca6149be45e5 {
		t.Errorf("%#x, want 0xa129ca6149be45e5", got)
	}
}

// TestHashesNeverChange pins the hashes: stored sketches hold them, and were
// worthless under any other.
func TestHashesNeverChange(t *testing.T) {
	h := NewHasher(Key{0: 1, 15: 16})
	if got, want := h.KeyID(), KeyID(0xeeb291aaf751b578); got != want {
		t.Errorf("key id %s, want %s", got, want)
	}
	if got, want := h.User([]byte("ann")), uint64(0x86ca4da7ba379c7d); got != want {
		t.Errorf("user %#x, want %#x", got, want)
	}
	if got, want := h.ID([]byte("ann")), uint64(0x7b6e981c61f3984d); got != want {
		t.Errorf("id %#x, want %#x", got, want)
	}
	if got, want := h.Item([]byte("ann")), (Hash128{0x4cd1331fba87f477, 0xb3954a3fabdf4c99}); got != want {
		t.Errorf("item %#x, want %#x", got, want)
	}
}

func TestHashesDependOnTheKeyAndThePurpose(t *testing.T) {
	name := []byte("ann")
	seen := make(map[uint64]string)
	for _, k := range []Key{{}, {0: 1}, {8: 1}, {15: 128}} {
		h := NewHasher(k)
		item := h.Item(name)
		for what, x := range map[string]uint64{"user": h.User(name), "id": h.ID(name), "item lo": item.Lo, "item hi": item.Hi} {
			if before, ok := seen[x]; ok {
				t.Errorf("%s under %s is %s", what, k.Hex(), before)
			}
			seen[x] = what + " under " + k.Hex()
		}
	}
}

func TestHashesAllocateNothing(t *testing.T) {
	name := []byte("item-123456")
	if n := testing.AllocsPerRun(100, func() {
		testHasher.User(name)
		testHasher.ID(name)
		testHasher.Item(name)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
