package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// process names a process of the system, and not another one that has got its
// number since.
type process struct {
	PID   int    `json:"pid"`
	Ticks uint64 `json:"ticks"` // when it started, by the system's clock
}

// processOf returns the process that has this number now.
func processOf(pid int) (process, error) {
	ticks, _, err := readStat(pid)
	return process{pid, ticks}, err
}

// alive reports whether the process runs.
func (p process) alive() bool {
	ticks, ended, err := readStat(p.PID)
	return err == nil && ticks == p.Ticks && !ended
}

// readStat returns when a process started, and whether it has ended and waits for
// its parent to see it, from /proc/PID/stat.
func readStat(pid int) (ticks uint64, ended bool, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false, err
	}
	// Field 2, the name, is in parentheses and may hold anything. Field 3 is the first
	// behind it.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const state, threads, started = 0, 17, 19
	if len(fields) <= started {
		return 0, false, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	// With its first thread ended it still has its files and ports as long as
	// there are others.
	ended = fields[state][0] == 'Z' && string(fields[threads]) == "1"
	ticks, err = strconv.ParseUint(string(fields[started]), 10, 64)
	return ticks, ended, err
}

// end sends the signal and waits until the process is gone, since two processes
// on one folder would spoil it. One that does not end by itself is killed.
func (p process) end(sig syscall.Signal) error {
	const (
		patience = 30 * time.Second
		step     = 5 * time.Millisecond
	)
	for _, sig := range []syscall.Signal{sig, syscall.SIGKILL} {
		if !p.alive() {
			return nil
		}
		if err := syscall.Kill(p.PID, sig); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("end process %d: %w", p.PID, err)
		}
		for until := time.Now().Add(patience); p.alive() && time.Now().Before(until); {
			time.Sleep(step)
		}
	}
	if p.alive() {
		return fmt.Errorf("process %d does not end", p.PID)
	}
	return nil
}
