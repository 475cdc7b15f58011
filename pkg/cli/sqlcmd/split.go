package sqlcmd

import (
	"strconv"
	"strings"
)

// Batch is one text between two GO lines, to be sent Count times.
type Batch struct {
	Text  string
	Count int
}

// Split cuts a script at lines that hold GO, or GO and a number, alone. GO is not
// T-SQL: the server never sees it. A GO inside a string, a comment or a quoted
// name is text.
func Split(script string) []Batch {
	var out []Batch
	var b strings.Builder
	state := inCode
	for line := range strings.Lines(script) {
		if state.kind == code {
			if n, ok := goLine(line); ok {
				out = appendBatch(out, b.String(), n)
				b.Reset()
				continue
			}
		}
		b.WriteString(line)
		state = state.after(line)
	}
	return appendBatch(out, b.String(), 1)
}

func appendBatch(out []Batch, text string, count int) []Batch {
	if strings.TrimSpace(text) == "" {
		return out
	}
	return append(out, Batch{Text: strings.TrimRight(text, "\r\n"), Count: count})
}

func goLine(line string) (int, bool) {
	f := strings.Fields(line)
	switch {
	case len(f) == 0 || !strings.EqualFold(f[0], "GO"):
		return 0, false
	case len(f) == 1:
		return 1, true
	case len(f) == 2:
		if n, err := strconv.Atoi(f[1]); err == nil && n > 0 && n <= 100000 {
			return n, true
		}
	}
	return 0, false
}

type kind int

const (
	code kind = iota
	single
	double
	bracket
	comment
)

// lexState is where a line begins: in code, or inside something that spans lines.
type lexState struct {
	kind  kind
	depth int // of nested comments
}

var inCode = lexState{}

func (s lexState) after(line string) lexState {
	for i := 0; i < len(line); i++ {
		two := ""
		if i+1 < len(line) {
			two = line[i : i+2]
		}
		switch s.kind {
		case code:
			switch {
			case two == "--":
				return s
			case two == "/*":
				s, i = lexState{comment, 1}, i+1
			case line[i] == '\'':
				s.kind = single
			case line[i] == '"':
				s.kind = double
			case line[i] == '[':
				s.kind = bracket
			}
		case single:
			if line[i] == '\'' {
				s.kind = code // a doubled quote opens it again at once
			}
		case double:
			if line[i] == '"' {
				s.kind = code
			}
		case bracket:
			if line[i] == ']' {
				s.kind = code
			}
		case comment:
			switch two {
			case "/*":
				s.depth++
				i++
			case "*/":
				s.depth--
				i++
				if s.depth == 0 {
					s.kind = code
				}
			}
		}
	}
	return s
}
