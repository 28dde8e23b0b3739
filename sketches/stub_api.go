package sketches

type Hash128 struct{ Lo, Hi uint64 }
type Registers []byte
