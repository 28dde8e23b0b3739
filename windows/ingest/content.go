package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"tidemark/windows"
)

// Content names what a file holds, as it is stored: the SHA-256 of the SHA-256 of
// each of its pieces of 1 MiB, so that all cores can work on it: one alone would
// need a quarter of the time of the import itself.
type Content [sha256.Size]byte

const pieceBytes = 1 << 20

// contentOf reads a file of that size.
func contentOf(ctx context.Context, file io.ReaderAt, size int64) (Content, error) {
	sums := make([]Content, (size+pieceBytes-1)/pieceBytes)
	errs := make([]error, min(len(sums), runtime.GOMAXPROCS(0)))
	var next atomic.Int64
	var workers sync.WaitGroup
	for w := range errs {
		workers.Go(func() {
			piece := make([]byte, pieceBytes)
			for errs[w] == nil {
				i := next.Add(1) - 1
				if i >= int64(len(sums)) {
					return
				}
				sums[i], errs[w] = contentOfPiece(ctx, file, i*pieceBytes, piece[:min(pieceBytes, size-i*pieceBytes)])
			}
		})
	}
	workers.Wait()
	h := sha256.New()
	for i := range sums {
		h.Write(sums[i][:])
	}
	return Content(h.Sum(nil)), errors.Join(errs...)
}

func contentOfPiece(ctx context.Context, file io.ReaderAt, at int64, piece []byte) (Content, error) {
	if err := context.Cause(ctx); err != nil {
		return Content{}, err
	}
	if n, err := file.ReadAt(piece, at); n < len(piece) {
		return Content{}, err // io.EOF if it has become shorter
	}
	return sha256.Sum256(piece), nil
}

// Source is a file of an import.
type Source struct {
	Name    string // as it was given
	Content Content
	Size    int64 // bytes
}

// logID names the log that these files are in this order. Counting the same
// content once more on purpose is another log: again tells how often it was.
func logID(sources []Source, again uint64) windows.LogID {
	h := sha256.New()
	for _, s := range sources {
		h.Write(s.Content[:])
	}
	if again > 0 {
		h.Write(binary.LittleEndian.AppendUint64(nil, again))
	}
	var id windows.LogID
	copy(id[:], h.Sum(nil))
	return id
}

// input is a file that is read twice: to name its content, and to import it.
type input struct {
	Source
	path  string
	info  os.FileInfo // when its content was named
	spool *os.File    // a copy of what can't be read twice; nil: read path
}

// open returns the file's bytes, and what to call once they are read.
func (in *input) open() (io.Reader, func() error, error) {
	if in.spool != nil {
		return io.NewSectionReader(in.spool, 0, in.Size), func() error { return nil }, nil
	}
	f, err := os.Open(in.path)
	if err != nil {
		return nil, nil, err
	}
	if err := in.unchanged(f); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, func() error { return errors.Join(in.unchanged(f), f.Close()) }, nil
}

// unchanged returns an error if f is not the file any more whose content was named.
func (in *input) unchanged(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, in.info) || info.Size() != in.info.Size() || !info.ModTime().Equal(in.info.ModTime()) {
		return fmt.Errorf("%s: changed while it was imported; import it again once it is complete", in.Name)
	}
	return nil
}

func (in *input) close() error {
	if in.spool == nil {
		return nil
	}
	return in.spool.Close()
}

// openInput reads a file once. What is no regular file, standard input among it,
// is copied into dir meanwhile.
func openInput(ctx context.Context, name string, stdin io.Reader, dir string) (*input, error) {
	in := &input{Source: Source{Name: name}, path: name}
	r := stdin
	if name == "-" {
		in.Name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // it was only read
		r = f
		if in.info, err = f.Stat(); err != nil {
			return nil, err
		}
		if in.info.IsDir() {
			return nil, fmt.Errorf("%s: is a folder; name its files", name)
		}
		if in.info.Mode().IsRegular() {
			in.Size = in.info.Size()
			if in.Content, err = contentOf(ctx, f, in.Size); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return in, in.unchanged(f)
		}
	}
	return in, in.copyTo(ctx, dir, r)
}

// copyTo copies r into a file without a name in dir, so that nothing is left
// behind however the program ends.
func (in *input) copyTo(ctx context.Context, dir string, r io.Reader) (err error) {
	spool, err := os.CreateTemp(dir, "import-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", in.Name, err), spool.Close())
		}
	}()
	if err := os.Remove(spool.Name()); err != nil {
		return err
	}
	if in.Size, err = copyWhile(ctx, spool, r); err != nil {
		return err
	}
	in.spool = spool
	in.Content, err = contentOf(ctx, spool, in.Size)
	return err
}

// copyWhile copies until ctx ends. A read that waits for standard input can't be
// called off: it is left behind.
func copyWhile(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	type result struct {
		n   int64
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := io.CopyBuffer(struct{ io.Writer }{w}, readerWhile{ctx, r}, make([]byte, 256<<10))
		done <- result{n, err}
	}()
	select {
	case res := <-done:
		return res.n, res.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

type readerWhile struct {
	ctx context.Context
	r   io.Reader
}

func (r readerWhile) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
