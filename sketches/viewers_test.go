package sketches

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/axiomhq/hyperloglog"
)

// TestViewersAreTheLibrarys builds both from the same hashes and compares what
// they hold and what they answer in every state.
func TestViewersAreTheLibrarys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	v, sparse, dense := NewViewers(1), hyperloglog.New14(), hyperloglog.NewNoSparse()
	for n := 1; n <= 200_000; n++ {
		h := rng.Uint64()
		v.AddHash(h)
		sparse.InsertHash(h)
		dense.InsertHash(h)
		if n > 1100 && n%5000 != 0 {
			continue
		}
		library := sparse
		if v.Dense() {
			library = dense
		}
		if got, want := v.Number().Value, library.Estimate(); got != want {
			t.Fatalf("%d users: estimate %d, the library's %d", n, got, want)
		}
		want, err := library.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if got := v.appendLibrary(nil); !bytes.Equal(got, want) {
			t.Fatalf("%d users: state differs from the library's", n)
		}
	}
}
