package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tidemark/web"
)

// backupDir is where a server has the copy of its data folder that is being sent.
func backupDir(c *Config) string { return filepath.Join(c.Data, "backup.tmp") }

// Backup writes a copy of the data folder as a backup: see pack. There is one at a time.
func (l *live) Backup(_ context.Context, w io.Writer) (err error) {
	if !l.copying.TryLock() {
		return &web.Refusal{Status: 503, Detail: "another backup is being made; come again when it is done", RetryAfter: time.Minute}
	}
	defer l.copying.Unlock()
	dir := backupDir(l.cfg)
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made := time.Now()
	if err := l.copyTo(dir); err != nil {
		return err
	}
	return pack(l.cfg, dir, made, w)
}

// copyTo makes a copy of the data folder. Nearly all of it are links, so it takes little
// time and room. The journal comes after the store, and nothing is trimmed in between:
// so it has all that the store goes on from.
func (l *live) copyTo(dir string) error {
	l.trimming.Lock()
	defer l.trimming.Unlock()
	// How far imports are is to be said of the very journal that is copied.
	l.imports.mu.Lock()
	defer l.imports.mu.Unlock()
	if err := os.RemoveAll(dir); err != nil { // of a process that was killed
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := l.store.Backup(filepath.Join(dir, "store")); err != nil {
		return err
	}
	if err := l.journal.Backup(filepath.Join(dir, "journal")); err != nil {
		return err
	}
	for _, name := range besides(l.cfg) {
		text, err := os.ReadFile(filepath.Join(l.cfg.Data, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600) //nolint:gosec // three names, in a folder of the operator's
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
