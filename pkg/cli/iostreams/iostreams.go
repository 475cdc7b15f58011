// Package iostreams knows where the output goes: terminal or pipe, how wide, with
// colour or not. Tests set all of it.
package iostreams

import (
	"bytes"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// ColorMode is the value of --color.
type ColorMode string

const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// IOStreams are the three streams of a command with what is known about them.
type IOStreams struct {
	In     io.Reader
	Out    io.Writer
	ErrOut io.Writer

	StdinTTY, StdoutTTY, StderrTTY bool
	// Process: they are the process's own.
	Process bool
	// Width of the terminal in columns; 0 when the output is not a terminal.
	Width int
	// Color mode, and whether the environment forbids it in auto mode (NO_COLOR, TERM=dumb).
	Color   ColorMode
	NoColor bool
	// ASCII replaces the marks by plain characters.
	ASCII bool
}

// System looks at the process's own streams and environment.
func System() *IOStreams {
	s := &IOStreams{
		In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr,
		StdinTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		StdoutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		StderrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Color:     ColorAuto,
		Process:   true,
	}
	_, s.NoColor = os.LookupEnv("NO_COLOR")
	if os.Getenv("NO_COLOR") == "" {
		s.NoColor = false
	}
	if os.Getenv("TERM") == "dumb" {
		s.NoColor = true
	}
	s.ASCII = !utf8Locale(os.Getenv)
	if s.StdoutTTY {
		if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			s.Width = w
		}
	}
	return s
}

// Test gives streams over buffers: no terminal, no colour, no width.
func Test() (s *IOStreams, in, out, errOut *bytes.Buffer) {
	in, out, errOut = &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	return &IOStreams{In: in, Out: out, ErrOut: errOut, Color: ColorAuto}, in, out, errOut
}

// ColorOut tells whether colour goes to standard output.
func (s *IOStreams) ColorOut() bool { return s.color(s.StdoutTTY) }

// ColorErr tells whether colour goes to standard error.
func (s *IOStreams) ColorErr() bool { return s.color(s.StderrTTY) }

func (s *IOStreams) color(tty bool) bool {
	switch s.Color {
	case ColorAlways:
		return true
	case ColorNever:
		return false
	case ColorAuto:
	}
	return tty && !s.NoColor
}

// CanPrompt tells whether a question can be asked and answered.
func (s *IOStreams) CanPrompt() bool { return s.StdinTTY && s.StderrTTY }

// utf8Locale reads the locale as POSIX orders its variables; an unset locale counts
// as UTF-8 only when nothing else is known, which is what today's systems are.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
