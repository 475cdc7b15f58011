package iostreams

import "strings"

// Wrap breaks lines that are wider than the terminal at spaces, indented below
// their own start. Colour codes have no width. Width 0 leaves the text alone.
func Wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, wrapLine(l, width)...)
	}
	return strings.Join(out, "\n")
}

func wrapLine(l string, width int) []string {
	indent := len(l) - len(strings.TrimLeft(l, " ")) + 4
	var out []string
	for visible(l) > width {
		cut := lastSpace(l, width)
		if cut <= indent {
			break // a word longer than the line is not cut
		}
		out = append(out, strings.TrimRight(l[:cut], " "))
		l = strings.Repeat(" ", indent) + strings.TrimLeft(l[cut:], " ")
	}
	return append(out, l)
}

// visible counts runes outside of colour codes.
func visible(s string) int {
	n, esc := 0, false
	for _, r := range s {
		switch {
		case r == '\x1b':
			esc = true
		case esc:
			esc = r != 'm'
		default:
			n++
		}
	}
	return n
}

// lastSpace is the byte offset of the last space within the width.
func lastSpace(s string, width int) int {
	n, esc, at := 0, false, 0
	for i, r := range s {
		switch {
		case r == '\x1b':
			esc = true
		case esc:
			esc = r != 'm'
		default:
			if r == ' ' {
				at = i
			}
			if n++; n > width {
				return at
			}
		}
	}
	return at
}

// Rows counts the rows that a text takes on a terminal of that width: a line that is
// wider goes on in the next row.
func Rows(text string, width int) int {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	rows := len(lines)
	if width <= 0 {
		return rows
	}
	for _, l := range lines {
		if n := visible(l); n > width {
			rows += (n - 1) / width
		}
	}
	return rows
}
