package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// content is the JSON of a file of keys.
type content struct {
	Version int   `json:"version"`
	Keys    []Key `json:"keys"`
}

const version = 1

// Load reads a file of keys. Its error wraps fs.ErrNotExist if there is none.
func Load(path string) ([]Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c.Keys, nil
}

func parse(text []byte) (c content, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("not a file of keys, or of a later build: %w", err)
	}
	if d.More() {
		return c, errors.New("not a file of keys: there is more behind its end")
	}
	if c.Version != version {
		return c, fmt.Errorf("version %d: this build reads version %d", c.Version, version)
	}
	ids := make(map[string]bool)
	for i := range c.Keys {
		k := &c.Keys[i]
		if err := k.validate(); err != nil {
			return c, fmt.Errorf("key %d, %s: %w", i+1, k.ID, err)
		}
		if ids[k.ID] {
			return c, fmt.Errorf("key %d, %s: its id stands there twice", i+1, k.ID)
		}
		ids[k.ID] = true
	}
	return c, nil
}

// Edit changes a file of keys, which is made where there is none. Processes that edit
// at the same time do so one after the other. An error of change leaves the file as
// it is.
func Edit(path string, change func([]Key) ([]Key, error)) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("folder of the keys: %w", err)
	}
	// Not the file itself: a rename puts another one in its place.
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock of the keys: %w", err)
	}
	defer func() { _ = lock.Close() }() // nothing was written to it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	before, err := Load(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	after, err := change(before)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(content{Version: version, Keys: append([]Key{}, after...)}, "", "  ")
	if err != nil {
		return err
	}
	if _, err := parse(text); err != nil {
		return err
	}
	return replace(path, append(text, '\n'))
}

// replace writes a file whole or not at all, durably, for its owner only.
func replace(path string, text []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
