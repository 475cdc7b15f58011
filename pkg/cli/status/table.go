package status

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Table writes aligned columns without borders, two spaces apart, indented by two.
// Numbers stand right. In a terminal of a width the cells are cut in their middle to fit,
// but never those of the columns named in whole.
type Table struct {
	Header []string
	Rows   [][]string
	// Right columns are aligned right, Whole ones never cut.
	Right, Whole []string
	Width        int // 0 cuts nothing
	// Paint colours a cell after it was cut; row counts from 0.
	Paint func(column, cell string, row int) string
}

// keep drops every other column.
func (t Table) keep(columns func(string) bool) Table {
	out := t
	out.Header, out.Rows = nil, make([][]string, len(t.Rows))
	for i, h := range t.Header {
		if !columns(h) {
			continue
		}
		out.Header = append(out.Header, h)
		for j := range t.Rows {
			out.Rows[j] = append(out.Rows[j], t.Rows[j][i])
		}
	}
	return out
}

// fit cuts cells until the lines fit: the widest column first.
func (t Table) fit() Table {
	if t.Width == 0 {
		return t
	}
	const least = 6
	width := make([]int, len(t.Header))
	for i, h := range t.Header {
		width[i] = utf8.RuneCountInString(h)
		for _, r := range t.Rows {
			width[i] = max(width[i], utf8.RuneCountInString(r[i]))
		}
	}
	total := func() int {
		n := 0
		for _, w := range width {
			n += w + 2 // the indent is as wide as the gap that the last column has not
		}
		return n
	}
	for total() > t.Width {
		widest := -1
		for i, h := range t.Header {
			if !slices.Contains(t.Whole, h) && width[i] > max(least, utf8.RuneCountInString(h)) && (widest < 0 || width[i] > width[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		width[widest]--
	}
	out := t
	out.Rows = make([][]string, len(t.Rows))
	for j, r := range t.Rows {
		for i, cell := range r {
			out.Rows[j] = append(out.Rows[j], middle(cell, width[i]))
		}
	}
	return out
}

// String is the table's text.
func (t Table) String() string {
	t = t.fit()
	align := make([]tw.Align, 0, len(t.Header))
	for _, h := range t.Header {
		if slices.Contains(t.Right, h) {
			align = append(align, tw.AlignRight)
		} else {
			align = append(align, tw.AlignLeft)
		}
	}
	var b strings.Builder
	padding := tw.CellPadding{Global: tw.Padding{Left: "", Right: "  ", Overwrite: true}}
	table := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithConfig(tablewriter.Config{
			Header: tw.CellConfig{
				Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
				Alignment:  tw.CellAlignment{PerColumn: align}, Padding: padding,
			},
			Row: tw.CellConfig{
				Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone},
				Alignment:  tw.CellAlignment{PerColumn: align}, Padding: padding,
			},
		}))
	table.Header(t.Header)
	for i, r := range t.Rows {
		cells := slices.Clone(r)
		if t.Paint != nil {
			for j := range cells {
				cells[j] = t.Paint(t.Header[j], cells[j], i)
			}
		}
		if err := table.Append(cells); err != nil {
			return strings.Join(r, "  ") + "\n"
		}
	}
	if err := table.Render(); err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	for _, l := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		out.WriteString("  " + trimmed(l) + "\n")
	}
	return out.String()
}

// trimmed takes the spaces away at the end of a line, also those before its last colour code.
func trimmed(l string) string {
	const reset = "\x1b[0m"
	l = strings.TrimRight(l, " ")
	if body, ok := strings.CutSuffix(l, reset); ok {
		return strings.TrimRight(body, " ") + reset
	}
	return l
}
