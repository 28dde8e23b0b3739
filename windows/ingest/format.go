package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// sniffBytes is how much of a file is looked at to tell its format.
const sniffBytes = 64 << 10

// teller tells a format from the beginning of what is read, and where its first
// record may begin.
type teller func(b []byte, eof bool, names map[string]*field) (f format, pos int, err error)

// byName is detect of a file of that name.
func byName(name string) teller {
	return func(b []byte, eof bool, names map[string]*field) (format, int, error) {
		return detect(name, b, eof, names)
	}
}

// detect tells the format of a file from its beginning, and where its first record
// may begin. The name decides only where the bytes can't: a line of JSON may be
// anything, when it is broken.
func detect(name string, b []byte, eof bool, names map[string]*field) (f format, pos int, err error) {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return nil, 0, errors.New("UTF-16; UTF-8 is asked")
	}
	if bytes.HasPrefix(b, []byte("\ufeff")) {
		pos = len("\ufeff")
	}
	begin := skipWhite(b, pos)
	line, _, _ := bytes.Cut(b[begin:], []byte{'\n'})
	isLines := slices.Contains([]string{".ndjson", ".jsonl"}, extension(name))
	switch {
	case len(line) == 0 || isLines:
		return &lines{}, pos, nil
	case line[0] == '[':
		return &values{array: true}, pos, nil
	case line[0] == '{' && len(bytes.TrimSpace(line)) == 1:
		return &values{}, pos, nil
	case line[0] == '{':
		return &lines{}, pos, nil
	}
	t, rows, item, err := newRows(b[pos:], eof, names)
	switch {
	case err != nil:
		return nil, 0, err
	case item:
		return t, pos + rows, nil
	case extension(name) == ".json" || bytes.Contains(b, []byte("\n{")):
		return &lines{}, pos, nil
	}
	return nil, 0, fmt.Errorf("neither JSON nor CSV with a column named item; its first line is %.80q", line)
}

// extension returns what a file's name says about its content: without .gz or .zst.
func extension(name string) string {
	name = strings.ToLower(name)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, packed)
	}
	return filepath.Ext(name)
}
