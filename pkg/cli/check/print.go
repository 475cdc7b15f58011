package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

const (
	formatText  = "text"
	formatShort = "short"
	formatJSON  = "json"
)

func write(s *iostreams.IOStreams, format string, r Report, self string) error {
	var text string
	switch format {
	case formatJSON:
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		return nil
	case formatShort:
		text = short(r)
	default:
		text = screen(s, r, self)
	}
	if _, err := fmt.Fprint(s.Out, text); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// short is one line a problem, to be pasted into a chat.
func short(r Report) string {
	var b strings.Builder
	for _, row := range r.Rows {
		if row.Status != OK {
			fmt.Fprintf(&b, "%s %s %s: %s: %s\n", row.Status, row.Code, row.Group, row.Name, oneLine(row.Message))
		}
	}
	return b.String()
}

func screen(s *iostreams.IOStreams, r Report, self string) string {
	var b strings.Builder
	width := 0
	for _, row := range r.Rows {
		width = max(width, len([]rune(row.Name)))
	}
	color, group := s.ColorOut(), ""
	for _, row := range r.Rows {
		if row.Group != group {
			if group != "" {
				b.WriteString("\n")
			}
			group = row.Group
			b.WriteString(iostreams.Paint(color, iostreams.StyleBold, group) + "\n")
		}
		mark, style := s.Mark(iostreams.MarkOK), iostreams.StyleGreen
		switch row.Status {
		case Warn:
			mark, style = s.Mark(iostreams.MarkWarn), iostreams.StyleYellow
		case Fail:
			mark, style = s.Mark(iostreams.MarkBad), iostreams.StyleRed
		case OK:
		}
		pad := strings.Repeat(" ", width-len([]rune(row.Name)))
		fmt.Fprintf(&b, "  %s %s%s  %s", iostreams.Paint(color, style, mark), row.Name, pad, s.Plain(oneLine(row.Message)))
		if row.Code != "" {
			fmt.Fprintf(&b, "  (%s)", row.Code)
		}
		b.WriteString("\n")
		if row.Hint != "" {
			fmt.Fprintf(&b, "      %s\n", s.Plain("hint: "+oneLine(row.Hint)))
		}
	}
	switch r.Status {
	case OK:
		fmt.Fprintf(&b, "\n%s all %d checks are in order\n", iostreams.Paint(color, iostreams.StyleGreen, s.Mark(iostreams.MarkOK)), len(r.Rows))
	case Warn:
		fmt.Fprintf(&b, "\n%s %d warnings, nothing failed; %s explain CODE tells more\n", iostreams.Paint(color, iostreams.StyleYellow, s.Mark(iostreams.MarkWarn)), r.Warnings, self)
	case Fail:
		fmt.Fprintf(&b, "\n%s %d failed, %d warnings; %s explain CODE tells more\n", iostreams.Paint(color, iostreams.StyleRed, s.Mark(iostreams.MarkBad)), r.Failed, r.Warnings, self)
	}
	return b.String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
