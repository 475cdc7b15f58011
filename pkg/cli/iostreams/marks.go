package iostreams

import "strings"

// Mark is one of the signs that open a line.
type Mark int

const (
	MarkOK Mark = iota
	MarkWarn
	MarkBad
	MarkRunning
	MarkPending
)

// Mark gives the sign for this stream's character set.
func (s *IOStreams) Mark(m Mark) string {
	unicode := [...]string{"✔", "!", "✖", "▸", "·"}
	ascii := [...]string{"[ok]", "[!!]", "[XX]", ">", "-"}
	if s.ASCII {
		return ascii[m]
	}
	return unicode[m]
}

// Plain maps the signs in a text to ASCII when the stream asks for it.
func (s *IOStreams) Plain(text string) string {
	if !s.ASCII {
		return text
	}
	return strings.NewReplacer("✔", "[ok]", "✖", "[XX]", "▸", ">", "·", "-", "█", "#", "░", ".", "…", "~").Replace(text)
}

// Style is what colour says: severity only.
type Style string

const (
	StyleNone   Style = ""
	StyleGreen  Style = "\x1b[32m"
	StyleYellow Style = "\x1b[33m"
	StyleRed    Style = "\x1b[31m"
	StyleBold   Style = "\x1b[1m"
	StyleDim    Style = "\x1b[2m"
)

// Paint colours a text when on is true.
func Paint(on bool, st Style, text string) string {
	if !on || st == StyleNone || text == "" {
		return text
	}
	return string(st) + text + "\x1b[0m"
}
