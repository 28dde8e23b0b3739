package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// terminal understands as much as a screen uses: it keeps what stands where.
type terminal struct {
	lines []string
	row   int
}

func (s *terminal) Write(p []byte) (int, error) {
	for text := string(p); text != ""; {
		var up int
		switch {
		case strings.HasPrefix(text, "\x1b[?7l"), strings.HasPrefix(text, "\x1b[?7h"):
			text = text[len("\x1b[?7l"):]
		case strings.HasPrefix(text, "\x1b[J"):
			s.lines = s.lines[:s.row]
			text = text[len("\x1b[J"):]
		case strings.HasPrefix(text, "\x1b[") && !strings.HasPrefix(text, "\x1b[K"): // which ends an empty line
			if _, err := fmt.Sscanf(text, "\x1b[%dA", &up); err != nil || up > s.row {
				return 0, fmt.Errorf("up %d of %d lines: %.10q, %w", up, s.row, text, err)
			}
			s.row -= up
			text = text[strings.Index(text, "A")+1:]
		default:
			line, rest, _ := strings.Cut(text, "\x1b[K\n") // whatever was there is gone
			s.lines = append(s.lines[:s.row], append([]string{line}, s.lines[min(s.row+1, len(s.lines)):]...)...)
			s.row++
			text = rest
		}
	}
	return len(p), nil
}

// On a terminal a text stands where the one before it stood, and nothing of that is left.
func TestScreenDrawsInPlace(t *testing.T) {
	there := &terminal{lines: []string{"$ tidemark top --watch"}, row: 1}
	s := newScreen(there, 0)
	s.terminal = true
	long := strings.Repeat("line\n", 40) // longer than the terminal
	for _, text := range []string{"one\ntwo\nthree\n", "a\n", "b\nc\n\nd\n", long, "end\n"} {
		if err := s.show(text); err != nil {
			t.Fatal(err)
		}
		want := append([]string{"$ tidemark top --watch"}, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
		want = want[:min(len(want), 24)]
		if !slices.Equal(there.lines, want) {
			t.Errorf("after %q the terminal shows %q", text, there.lines)
		}
	}
}

// Elsewhere each text is printed, once, below the others.
func TestScreenPrintsChanges(t *testing.T) {
	var out strings.Builder
	s := newScreen(&out, 0)
	for _, text := range []string{"one\n", "one\n", "a\nb\n", "one\n"} {
		if err := s.show(text); err != nil {
			t.Fatal(err)
		}
	}
	if want := "one\na\nb\n\none\n"; out.String() != want {
		t.Errorf("printed %q, not %q", out.String(), want)
	}
}
