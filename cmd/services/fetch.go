package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed clickhouse kafka
var embedded embed.FS

// fetcher gets software into the cache folder.
type fetcher struct {
	cache    string
	progress io.Writer // lines about what takes long
}

// get returns the folder of some software in some version; fill makes it in a
// folder of another name, which is renamed when it is whole (V1). Of several
// callers at once one fetches, and the others wait.
func (f *fetcher) get(name, version, size string, fill func(dir string) error) (string, error) {
	dir := filepath.Join(f.cache, name+"-"+version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(f.cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil { // of one who was killed
		return "", err
	}
	if err := os.Mkdir(part, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	fmt.Fprintf(f.progress, "fetching %s %s (%s, once) into %s\n", name, version, size, dir)
	if err := fill(part); err != nil {
		return "", fmt.Errorf("fetch %s %s: %w", name, version, err)
	}
	return dir, os.Rename(part, dir)
}

// copyEmbedded writes a file of the program into a folder.
func copyEmbedded(name, dir string) error {
	data, err := embedded.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o644)
}

// tool returns a program of the machine, or an error that says what to install.
func tool(name, advice string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed: %s", name, advice)
	}
	return path, nil
}

// output runs a command in a folder, to its end, and returns an error with the
// last lines that it printed.
func output(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	return fmt.Errorf("%s %s: %w%s", filepath.Base(name), args[0], err, tail(string(out)))
}

// tail returns the last lines of what a process said, for an error.
func tail(text string) string {
	const keep = 20
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return "\n  " + strings.Join(lines[max(0, len(lines)-keep):], "\n  ")
}
