package keys

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Ring is the keys of a file, as it is now: Watch follows it. It is safe for
// concurrent use.
type Ring struct {
	path  string
	state atomic.Pointer[state]
	reads atomic.Int64
}

// state is what a file said when it was read.
type state struct {
	made bool // there are keys, or were
	keys map[[sha256.Size]byte]*Key
	err  error       // why it could not be read; keys are those of before
	file os.FileInfo // that was read; nil: none
}

// Open reads a file of keys. There need not be one (K2).
func Open(path string) (*Ring, error) {
	r := &Ring{path: path}
	s := r.read(&state{})
	if s.err != nil {
		return nil, fmt.Errorf("keys: %w", s.err)
	}
	r.state.Store(s)
	return r, nil
}

// Made reports whether a key was ever made: then nobody may do anything without one.
func (r *Ring) Made() bool { return r.state.Load().made }

// Broken returns why the file can't be read at present, or nil.
func (r *Ring) Broken() error { return r.state.Load().err }

// Find returns the key of this text, which may be a revoked one; nil if there is none.
//
// The time that it takes tells nothing of use: it depends on hashes, and who looks
// for a hash that begins like another one has to guess a key for each try.
func (r *Ring) Find(text string) *Key {
	hash := hashOf(text)
	k := r.state.Load().keys[hash]
	if k == nil {
		return nil
	}
	if want, err := hex.DecodeString(k.Hash); err != nil || subtle.ConstantTimeCompare(want, hash[:]) != 1 {
		return nil
	}
	return k
}

// Reads returns how often the file was read again: what held before may not any more
// where it is another number.
func (r *Ring) Reads() int64 { return r.reads.Load() }

// Holds reports whether a key that was found still is one, and not revoked.
func (r *Ring) Holds(k *Key) bool {
	var hash [sha256.Size]byte
	if _, err := hex.Decode(hash[:], []byte(k.Hash)); err != nil {
		return false
	}
	now := r.state.Load().keys[hash]
	return now != nil && now.Revoked == nil
}

// watchEvery is how often Watch looks whether the file has changed.
const watchEvery = time.Second

// Watch reads the file again whenever it has changed, until ctx ends. One that can't
// be read changes nothing, and is logged.
func (r *Ring) Watch(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := r.state.Load()
		file, err := os.Stat(r.path)
		if err == nil && before.err == nil && same(file, before.file) || errors.Is(err, fs.ErrNotExist) && !before.made {
			continue
		}
		now := r.read(before)
		r.state.Store(now)
		r.reads.Add(1)
		switch {
		case now.err == nil:
			logger.InfoContext(ctx, "keys were read again", "path", r.path, "keys", len(now.keys))
		case before.err == nil:
			logger.ErrorContext(ctx, "the keys can't be read again; those of before hold on", "path", r.path, "err", now.err)
		}
	}
}

// same reports whether a file is the one that was read, unchanged.
func same(a, b os.FileInfo) bool {
	return b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// read returns what the file says, or before with the reason why that is not known.
func (r *Ring) read(before *state) *state {
	file, err := os.Stat(r.path) // before it is read: what is changed meanwhile is read again
	var all []Key
	if err == nil {
		all, err = Load(r.path)
	}
	if errors.Is(err, fs.ErrNotExist) && !before.made {
		return &state{}
	}
	if err != nil {
		return &state{made: true, keys: before.keys, err: err, file: before.file}
	}
	s := &state{made: true, keys: make(map[[sha256.Size]byte]*Key, len(all)), file: file}
	for i := range all {
		var hash [sha256.Size]byte
		if _, err := hex.Decode(hash[:], []byte(all[i].Hash)); err != nil {
			return &state{made: true, keys: before.keys, err: err, file: before.file}
		}
		s.keys[hash] = &all[i]
	}
	return s
}
