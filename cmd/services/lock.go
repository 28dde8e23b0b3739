package main

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile waits for the lock of a file, which it makes if need be. It ends with
// the process at the latest.
func lockFile(path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// down removes the file while others wait for it: what they get then is the
		// lock of a file that nobody else will find.
		have, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if now, err := os.Stat(path); err == nil && os.SameFile(have, now) {
			return func() { f.Close() }, nil
		}
		f.Close()
	}
}
