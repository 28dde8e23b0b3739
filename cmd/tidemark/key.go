package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tidemark/sketches"
)

// keyName is the file of the hash key in the data folder.
const keyName = "hash.key"

// hashKey returns the deployment's secret from --hash-key-file, else from the data
// folder. Where the folder has none, and no store that was made with one, a new key
// is made if create says so.
func hashKey(c *Config, create bool) (sketches.Key, error) {
	if c.HashKeyFile != "" {
		return readKey(c.HashKeyFile)
	}
	path := filepath.Join(c.Data, keyName)
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if _, err := os.Stat(storeDir(c)); err == nil {
		return key, fmt.Errorf("%s is missing, and without the key that the store was made with nothing in it can be found: bring the file back, or name its copy with --hash-key-file", path)
	}
	if !create {
		return key, noStore(c)
	}
	return makeKey(path)
}

func readKey(path string) (sketches.Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return sketches.Key{}, fmt.Errorf("hash key: %w", err)
	}
	key, err := sketches.ParseKey(text)
	if err != nil {
		return key, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// makeKey writes a new key to path, durably and whole or not at all: what the store
// holds can be read with this key only. If another process was faster, its key is
// the one.
func makeKey(path string) (sketches.Key, error) {
	key := sketches.NewKey()
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return key, fmt.Errorf("data folder: %w", err)
	}
	f, err := os.CreateTemp(dir, keyName+".*") // mode 0600
	if err != nil {
		return key, fmt.Errorf("hash key: %w", err)
	}
	_, err = f.WriteString(key.Hex() + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // which, unlike a rename, replaces nothing
	}
	err = errors.Join(err, os.Remove(f.Name()))
	if errors.Is(err, fs.ErrExist) {
		return readKey(path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return key, fmt.Errorf("hash key: %w", err)
	}
	return key, nil
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
