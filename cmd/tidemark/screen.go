package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen shows a text that changes: on a terminal in its own place, elsewhere one text
// below the other, each only if it differs. Not safe for concurrent use.
type screen struct {
	w        io.Writer
	terminal bool
	every    time.Duration // elsewhere than on a terminal, at least between two texts

	last  string
	shown time.Time
	lines int // of the text on the terminal
}

func newScreen(w io.Writer, every time.Duration) *screen {
	return &screen{w: w, terminal: isTerminal(w), every: every}
}

// show shows text, which ends with a line end, in the place of the one before.
func (s *screen) show(text string) error {
	now := time.Now()
	if !s.terminal {
		if text == s.last || now.Sub(s.shown) < s.every {
			return nil
		}
		s.last, s.shown = text, now
		if strings.Count(text, "\n") > 1 {
			text += "\n" // apart from the next one
		}
		_, err := io.WriteString(s.w, text)
		return err
	}
	height := terminalHeight(s.w)
	var b bytes.Buffer
	b.WriteString("\x1b[?7l") // a line that is too long ends at the edge, and is no second one
	if s.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.lines) // up to its first line
	}
	s.lines = 0
	for line := range strings.Lines(text) {
		if s.lines == height-1 {
			break // what has left the screen can't be drawn again
		}
		b.WriteString(strings.TrimSuffix(line, "\n") + "\x1b[K\n")
		s.lines++
	}
	b.WriteString("\x1b[J\x1b[?7h") // without what is left of a longer text
	_, err := s.w.Write(b.Bytes())
	return err
}

// terminalHeight returns how many lines a terminal has.
func terminalHeight(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if _, height, err := term.GetSize(int(f.Fd())); err == nil && height > 1 {
			return height
		}
	}
	return 24
}
