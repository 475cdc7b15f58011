// Package table writes plain tables: a header, left-aligned columns, no lines.
package table

import (
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Write the rows; an empty cell shows as a dash.
func Write(w io.Writer, header []string, rows [][]string) error {
	var b strings.Builder
	cells := tw.CellConfig{Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
		Alignment: tw.CellAlignment{Global: tw.AlignLeft}, Padding: tw.CellPadding{Global: tw.Padding{Left: "", Right: "  ", Overwrite: true}}}
	t := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone, Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells}))
	t.Header(header)
	for _, r := range rows {
		out := make([]string, len(r))
		for i, cell := range r {
			if cell == "" {
				cell = "-"
			}
			out[i] = cell
		}
		if err := t.Append(out); err != nil {
			return fmt.Errorf("write a table: %w", err)
		}
	}
	if err := t.Render(); err != nil {
		return fmt.Errorf("write a table: %w", err)
	}
	for l := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(l, " \n")); err != nil {
			return err
		}
	}
	return nil
}
