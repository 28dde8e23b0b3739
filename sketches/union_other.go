//go:build !amd64 || noasm

package sketches

// union takes the larger of each two registers into dst.
func union(dst, src *[RegisterCount]byte) { unionWords(dst, src) }
