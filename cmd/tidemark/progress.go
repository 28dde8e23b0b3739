package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"tidemark/windows/ingest"
)

// progress shows how far an import has got: a bar on a terminal, a line every few
// seconds elsewhere. Not safe for concurrent use.
type progress struct {
	w        io.Writer
	terminal bool
	bar      *progressbar.ProgressBar // on a terminal, once anything is read
	begun    time.Time
	shown    time.Time
}

// progressEvery is the time between two lines.
const progressEvery = 5 * time.Second

// newProgress returns the progress of an import that begins now.
func newProgress(w io.Writer) *progress {
	now := time.Now()
	return &progress{w: w, terminal: isTerminal(w), begun: now, shown: now}
}

// at shows how far the import is.
func (p *progress) at(at ingest.Progress) {
	if p.terminal {
		if p.bar == nil {
			p.bar = progressbar.NewOptions64(at.Bytes,
				progressbar.OptionSetWriter(p.w),
				progressbar.OptionShowBytes(true),
				progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionClearOnFinish(),
			)
		}
		_ = p.bar.Set64(at.Read) // fails only where the terminal does
		return
	}
	now := time.Now()
	if now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown = now
	fmt.Fprintf(p.w, "%.0f %%, %s records, %s a second\n", 100*float64(at.Read)/float64(max(1, at.Bytes)),
		count(at.Records), count(perSecond(at.Records, now.Sub(p.begun))))
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish() // fails only where the terminal does
	}
}
