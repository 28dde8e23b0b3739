package store

import "errors"

// What Open and Apply refuse. The errors that wrap them say what to do about it.
var (
	// ErrNoStore: there is no store in the folder.
	ErrNoStore = errors.New("no store")
	// ErrHeld: another process has the store open.
	ErrHeld = errors.New("the store is in use")
	// ErrKey: the store was made under another hash key.
	ErrKey = errors.New("the store was made under another hash key")
	// ErrSettings: the store was made with other settings that are fixed with it.
	ErrSettings = errors.New("the store was made with other settings")
	// ErrDamaged: what was read from the disk is not what was written.
	ErrDamaged = errors.New("the store is damaged")
	// ErrGap: a seal does not follow on from what the store has of its partition.
	ErrGap = errors.New("the seal does not follow on")
	// ErrUnknownLog: Begin was not called for the log.
	ErrUnknownLog = errors.New("unknown log")
	// ErrBroken: writing failed, and nothing more is taken.
	ErrBroken = errors.New("the store can't be written")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("the store is closed")
)
