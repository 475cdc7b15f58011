package sqlcmd

import (
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// format of the results.
type format string

const (
	formatText format = "text"
	formatCSV  format = "csv"
	formatJSON format = "json"
)

// write prints one result set.
func write(w io.Writer, f format, r mssql.Result) error {
	switch f {
	case formatCSV:
		c := csv.NewWriter(w)
		if err := c.Write(r.Columns); err != nil {
			return err
		}
		for _, row := range r.Rows {
			cells := make([]string, len(row))
			for i, v := range row {
				cells[i] = text(v, "")
			}
			if err := c.Write(cells); err != nil {
				return err
			}
		}
		c.Flush()
		return c.Error()
	case formatJSON:
		return writeJSON(w, r)
	case formatText:
	}
	return writeText(w, r)
}

// writeJSON keeps the order of columns, and of columns with one name the last.
func writeJSON(w io.Writer, r mssql.Result) error {
	rows := make([]map[string]any, 0, len(r.Rows))
	for _, row := range r.Rows {
		m := make(map[string]any, len(row))
		for i, v := range row {
			switch v := v.(type) {
			case []byte:
				m[r.Columns[i]] = "0x" + hex.EncodeToString(v)
			case time.Time:
				m[r.Columns[i]] = v.Format(time.RFC3339Nano)
			default:
				m[r.Columns[i]] = v
			}
		}
		rows = append(rows, m)
	}
	return json.NewEncoder(w).Encode(rows)
}

// writeText aligns the columns under their names.
func writeText(w io.Writer, r mssql.Result) error {
	if len(r.Columns) == 0 {
		return nil
	}
	widths := make([]int, len(r.Columns))
	cells := make([][]string, 0, len(r.Rows)+1)
	cells = append(cells, r.Columns)
	for _, row := range r.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = strings.NewReplacer("\n", " ", "\r", "", "\t", " ").Replace(text(v, "NULL"))
		}
		cells = append(cells, line)
	}
	for _, line := range cells {
		for i, c := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for n, line := range cells {
		var b strings.Builder
		for i, c := range line {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(c + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
		if n == 0 {
			var rule []string
			for _, width := range widths {
				rule = append(rule, strings.Repeat("-", width))
			}
			if _, err := fmt.Fprintln(w, strings.Join(rule, "  ")); err != nil {
				return err
			}
		}
	}
	plural := "s"
	if len(r.Rows) == 1 {
		plural = ""
	}
	_, err := fmt.Fprintf(w, "(%d row%s)\n", len(r.Rows), plural)
	return err
}

// text of one value as people read it.
func text(v any, null string) string {
	switch v := v.(type) {
	case nil:
		return null
	case []byte:
		return "0x" + strings.ToUpper(hex.EncodeToString(v))
	case time.Time:
		return v.Format("2006-01-02 15:04:05.999")
	case bool:
		if v {
			return "1"
		}
		return "0"
	}
	return fmt.Sprint(v)
}
