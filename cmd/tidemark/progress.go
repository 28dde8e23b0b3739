package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"tidemark/windows/ingest"
)

// progress shows how far long work has got: a bar on a terminal, a line every few
// seconds elsewhere. Not safe for concurrent use.
type progress struct {
	w        io.Writer
	terminal bool
	bar      *progressbar.ProgressBar // on a terminal, once anything is done
	begun    time.Time
	shown    time.Time
}

// progressEvery is the time between two lines.
const progressEvery = 5 * time.Second

// newProgress returns the progress of work that begins now.
func newProgress(w io.Writer) *progress {
	now := time.Now()
	return &progress{w: w, terminal: isTerminal(w), begun: now, shown: now}
}

// inBytes is the unit of what is shown in KB and MB.
const inBytes = "bytes"

// show shows that done of all is done; all is -1 where there is no end. line says the
// same in words.
func (p *progress) show(done, all int64, unit string, line func() string) {
	if p.terminal {
		if p.bar == nil {
			p.bar = progressbar.NewOptions64(all,
				progressbar.OptionSetWriter(p.w),
				progressbar.OptionShowBytes(unit == inBytes),
				progressbar.OptionShowCount(),
				progressbar.OptionShowIts(),
				progressbar.OptionSetItsString(unit),
				progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionClearOnFinish(),
			)
		}
		_ = p.bar.Set64(done) // fails only where the terminal does
		return
	}
	now := time.Now()
	if now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown = now
	fmt.Fprintln(p.w, line())
}

// at shows how far an import is.
func (p *progress) at(at ingest.Progress) {
	p.show(at.Read, at.Bytes, inBytes, func() string {
		return fmt.Sprintf("%.0f %%, %s records, %s a second", 100*float64(at.Read)/float64(max(1, at.Bytes)),
			count(at.Records), count(perSecond(at.Records, time.Since(p.begun))))
	})
}

// copied shows how many of all bytes of a copy are there.
func (p *progress) copied(done, all int64) {
	p.show(done, all, inBytes, func() string {
		return fmt.Sprintf("%.0f %%, %s MB, %s MB a second", 100*float64(done)/float64(max(1, all)),
			count(done>>20), count(perSecond(done>>20, time.Since(p.begun))))
	})
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish() // fails only where the terminal does
	}
}
