package ingest

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest window of zstd that is inflated of a file: what the
// command zstd takes without being asked for more.
const maxWindow = 128 << 20

// source reads a file, inflated if it is gzip or zstd.
type source struct {
	io.Reader
	raw   *rawReader
	close func()
}

// rawReader counts the bytes read, and remembers an error of the file itself: all
// others are of its content.
type rawReader struct {
	r    io.Reader
	read atomic.Int64
	err  error
}

func (r *rawReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.read.Add(int64(n))
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// newSource reads r, the raw bytes of a file, if it takes a window of no more than
// window bytes to inflate. Close it.
func newSource(r io.Reader, window uint64) (*source, error) {
	s := &source{raw: &rawReader{r: r}, close: func() {}}
	magic := make([]byte, len(zstdMagic))
	n, err := io.ReadFull(s.raw, magic)
	if s.raw.err != nil {
		return nil, err
	}
	magic = magic[:n]
	r = io.MultiReader(bytes.NewReader(magic), s.raw)
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		s.inflate(func() (io.Reader, func(), error) {
			z, err := gzip.NewReader(r)
			return z, func() {}, err
		})
	case bytes.Equal(magic, zstdMagic):
		s.inflate(func() (io.Reader, func(), error) {
			z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
			if err != nil {
				return nil, func() {}, err
			}
			return z, z.Close, nil
		})
	default:
		s.Reader = r
	}
	return s, nil
}

// inflate reads in a goroutine of its own: inflating takes as long as all the rest.
func (s *source) inflate(open func() (io.Reader, func(), error)) {
	ahead := &readAhead{
		full: make(chan []byte, aheadBlocks),
		free: make(chan []byte, aheadBlocks),
		stop: make(chan struct{}),
	}
	for range aheadBlocks {
		ahead.free <- make([]byte, chunkBytes)
	}
	ahead.running.Go(func() {
		defer close(ahead.full)
		z, closeReader, err := open()
		defer closeReader()
		for err == nil {
			err = ahead.fill(z)
		}
		ahead.err = err
	})
	s.Reader = ahead
	s.close = func() {
		close(ahead.stop)
		ahead.running.Wait()
	}
}

// aheadBlocks is how many blocks are inflated before they are asked for.
const aheadBlocks = 4

// readAhead hands over what its goroutine reads.
type readAhead struct {
	full, free chan []byte
	err        error // why full was closed; set before that
	stop       chan struct{}
	running    sync.WaitGroup

	block, rest []byte // the block being read, and what of it is left
}

var errStopped = errors.New("stopped")

// fill reads one block of z, and hands it over.
func (a *readAhead) fill(z io.Reader) error {
	var block []byte
	select {
	case block = <-a.free:
	case <-a.stop:
		return errStopped
	}
	var n int
	var err error
	for n < cap(block) && err == nil { // io.ReadFull makes a good end look like a bad one
		var m int
		m, err = z.Read(block[n:cap(block)])
		n += m
	}
	if n > 0 {
		select {
		case a.full <- block[:n]:
		case <-a.stop:
			return errStopped
		}
	}
	return err
}

func (a *readAhead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.block != nil {
			a.free <- a.block // there is room for all
			a.block = nil
		}
		block, ok := <-a.full
		if !ok {
			return 0, a.err
		}
		a.block, a.rest = block, block
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
