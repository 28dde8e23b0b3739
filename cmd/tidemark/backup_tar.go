package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A backup on its way is a tar of a data folder, whose first file says what is to
// come: so whoever unpacks it knows whether all of it came.

// manifestName is that first file. It stays in the folder, and says of when it is.
const manifestName = "backup.json"

// manifest is what the first file says.
type manifest struct {
	Version string    `json:"version"` // of the program that made it
	Made    time.Time `json:"made"`
	HashKey bool      `json:"hash_key"` // it is in there
	Files   int       `json:"files"`    // beside this one
	Bytes   int64     `json:"bytes"`    // of them
}

// backupFile is a file of a backup.
type backupFile struct {
	name string // in the data folder, with slashes
	size int64
}

// besides are the files of a data folder beside its store and its journal, as far as
// they lie there.
func besides(c *Config) []string {
	if c.HashKeyFile != "" {
		return []string{"keys.json", importsName}
	}
	return []string{keyName, "keys.json", importsName}
}

// backupFiles lists the files of a data folder that a backup has. What is only of the
// process that has the folder open, or was never finished, is left out.
func backupFiles(c *Config, dir string) (files []backupFile, err error) {
	for _, part := range append([]string{"store", "journal"}, besides(c)...) {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && filepath.Base(path) == part:
				return nil
			case err != nil:
				return err
			case e.IsDir() && e.Name() == "ingest": // files of a roll-up that was killed
				return fs.SkipDir
			case !e.Type().IsRegular(), e.Name() == "LOCK", strings.HasSuffix(path, ".tmp"):
				return nil
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, path)
			files = append(files, backupFile{filepath.ToSlash(name), info.Size()})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// pack writes a data folder that nobody changes as a backup. dir is that of c, or a
// copy, as it was at the time made.
func pack(c *Config, dir string, made time.Time, w io.Writer) error {
	files, err := backupFiles(c, dir)
	if err != nil {
		return err
	}
	m := manifest{Version: version(), Made: made.UTC(), Files: len(files)}
	for _, f := range files {
		m.Bytes += f.size
		m.HashKey = m.HashKey || f.name == keyName
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	add := func(name string, size int64, r io.Reader) error {
		if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: m.Made, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := io.CopyN(out, r, size)
		return err
	}
	if err := add(manifestName, int64(len(text))+1, strings.NewReader(string(text)+"\n")); err != nil {
		return err
	}
	for _, f := range files {
		r, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.name)))
		if err != nil {
			return err
		}
		err = errors.Join(add(f.name, f.size, r), r.Close())
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return out.Close()
}

// errBrokenOff is what became of a backup that is not whole.
var errBrokenOff = errors.New("it broke off, and is no backup")

// unpack writes a backup into an empty folder, synced, and fails unless all of it comes.
func unpack(ctx context.Context, r io.Reader, dir string, progress func(done, all int64)) (m manifest, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	in := tar.NewReader(&counted{r: r, ctx: ctx, read: func(n int64) { progress(n, m.Bytes) }})
	files, bytes := 0, int64(0)
	for {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF) && files == m.Files+1 && bytes == m.Bytes:
			// What is behind the end tells whether the sender ended well.
			_, err := io.Copy(io.Discard, r)
			return m, errors.Join(err, syncTree(dir))
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return m, errBrokenOff
		case err != nil:
			return m, err
		case (files == 0) != (h.Name == manifestName) || h.Typeflag != tar.TypeReg:
			return m, fmt.Errorf("%q: not a backup of a data folder", h.Name)
		}
		n, err := unpackFile(root, h.Name, in)
		if err != nil {
			return m, err
		}
		if files == 0 {
			text, err := root.ReadFile(manifestName)
			if err == nil {
				err = json.Unmarshal(text, &m)
			}
			if err != nil {
				return m, fmt.Errorf("%s: %w", manifestName, err)
			}
			n = 0
		}
		files, bytes = files+1, bytes+n
	}
}

func unpackFile(root *os.Root, name string, r io.Reader) (n int64, err error) {
	path := filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, err
	}
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(f, r)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errBrokenOff
	}
	return n, errors.Join(err, f.Sync(), f.Close())
}

// syncTree makes the names in a folder and in those below durable.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return syncDir(path)
	})
}

// counted reads until ctx ends, and says how much.
type counted struct {
	r    io.Reader
	ctx  context.Context
	n    int64
	read func(n int64)
}

// Read implements io.Reader.
func (c *counted) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(b)
	c.n += int64(n)
	c.read(c.n)
	return n, err
}
