//go:build !failpoint

package store

// step marks a point between two steps of a change, where tests end the process:
// see the build with the tag failpoint, and the table of crash points in FORMAT.md.
func step(string) {}
