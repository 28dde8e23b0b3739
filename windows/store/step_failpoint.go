//go:build failpoint

package store

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// crashAt says at which step this process ends itself, and when that step is
// reached for the how manieth time: TIDEMARK_CRASH=step:n. Only builds with the tag
// failpoint know of it.
var crashAt, crashIn = parseCrash(os.Getenv("TIDEMARK_CRASH"))

func parseCrash(text string) (name string, n *atomic.Int64) {
	name, count, ok := strings.Cut(text, ":")
	i, err := strconv.ParseInt(count, 10, 64)
	n = new(atomic.Int64)
	if !ok || err != nil {
		return "", n
	}
	n.Store(i)
	return name, n
}

// step marks a point between two steps of a change. Where the environment asks
// for it the process ends there, as by kill -9: nothing is written any more.
func step(name string) {
	if name == crashAt && crashIn.Add(-1) == 0 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
}
