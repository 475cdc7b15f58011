package sqlcmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// format of the results.
type format string

const (
	formatText format = "text"
	formatCSV  format = "csv"
	formatJSON format = "json"
)

// writer shows the answers of one run. Close ends the document.
type writer interface {
	mssql.Sink
	Close() error
}

func newWriter(f format, s *iostreams.IOStreams) writer {
	talk := talk{s: s}
	switch f {
	case formatCSV:
		return &csvWriter{talk: talk, w: bufio.NewWriter(s.Out)}
	case formatJSON:
		return &jsonWriter{talk: talk, w: bufio.NewWriter(s.Out)}
	case formatText:
	}
	return &textWriter{talk: talk, w: bufio.NewWriter(s.Out)}
}

// talk writes what is no data to standard error.
type talk struct{ s *iostreams.IOStreams }

// Numbers of the messages that a change of database or language brings.
const (
	changedDatabase = 5701
	changedLanguage = 5703
)

// Notice of the server: an error with its numbers, or a text.
func (t talk) Notice(n mssql.Notice) error {
	switch {
	case n.Number == changedDatabase || n.Number == changedLanguage:
		return nil
	case n.Class > 10:
		head := fmt.Sprintf("Msg %d, Level %d, State %d, Line %d:", n.Number, n.Class, n.State, n.Line)
		fmt.Fprintf(t.s.ErrOut, "%s %s\n", iostreams.Paint(t.s.ColorErr(), iostreams.StyleRed, head), n.Text)
	default:
		fmt.Fprintln(t.s.ErrOut, n.Text)
	}
	return nil
}

// looked is how many rows decide the widths of the columns; later ones that are wider
// shift their own line only.
const looked = 1000

// textWriter aligns the columns under their names.
type textWriter struct {
	talk
	w       *bufio.Writer
	columns []mssql.Column
	rows    [][]any
	widths  []int
	count   int
}

func (t *textWriter) Columns(c []mssql.Column) error {
	t.columns, t.rows, t.widths, t.count = c, nil, nil, 0
	return nil
}

func (t *textWriter) Row(row []any) error {
	t.count++
	if t.widths != nil {
		return t.line(row)
	}
	t.rows = append(t.rows, row)
	if len(t.rows) == looked {
		return t.begin()
	}
	return nil
}

// begin decides the widths and writes the head and the rows seen so far.
func (t *textWriter) begin() error {
	t.widths = make([]int, len(t.columns))
	head, rule := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i, c := range t.columns {
		t.widths[i] = utf8.RuneCountInString(c.Name)
		head[i] = c.Name
		for _, row := range t.rows {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(oneLine(row[i], c.Type)))
		}
		rule[i] = strings.Repeat("-", max(t.widths[i], 1))
	}
	for _, row := range append([][]any{head, rule}, t.rows...) {
		if err := t.line(row); err != nil {
			return err
		}
	}
	t.rows = nil
	return nil
}

func oneLine(v any, typ string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(text(v, typ))
}

func (t *textWriter) line(row []any) error {
	for i, v := range row {
		cell := oneLine(v, t.columns[i].Type)
		fill := ""
		if i < len(row)-1 {
			fill = strings.Repeat(" ", max(t.widths[i]-utf8.RuneCountInString(cell), 0)) + "  "
		}
		if v == nil { // NULL is no text that reads NULL
			cell = iostreams.Paint(t.s.ColorOut(), iostreams.StyleDim, cell)
		}
		if _, err := t.w.WriteString(cell + fill); err != nil {
			return err
		}
	}
	return t.w.WriteByte('\n')
}

func (t *textWriter) End() error {
	if t.widths == nil {
		if err := t.begin(); err != nil {
			return err
		}
	}
	return t.tail(t.count, "")
}

func (t *textWriter) Affected(n int64) error { return t.tail(int(n), " affected") }

func (t *textWriter) tail(n int, what string) error {
	plural := "s"
	if n == 1 {
		plural = ""
	}
	fmt.Fprintf(t.w, "(%d row%s%s)\n", n, plural, what)
	return t.w.Flush()
}

// Notice keeps its place among the results: PRINT is output in a text.
func (t *textWriter) Notice(n mssql.Notice) error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	if n.Class > 10 || n.Number == changedDatabase || n.Number == changedLanguage {
		return t.talk.Notice(n)
	}
	_, err := fmt.Fprintln(t.s.Out, n.Text)
	return err
}

func (t *textWriter) Close() error { return t.w.Flush() }

// csvWriter writes RFC 4180; an empty line stands between result sets. NULL is
// nothing between the commas, an empty text is "".
type csvWriter struct {
	talk
	w    *bufio.Writer
	sets int
	cols []mssql.Column
}

func (c *csvWriter) Columns(cols []mssql.Column) error {
	if c.sets++; c.sets > 1 {
		if _, err := c.w.WriteString("\n"); err != nil {
			return err
		}
	}
	c.cols = cols
	names := make([]any, len(cols))
	for i, col := range cols {
		names[i] = col.Name
	}
	return c.line(names, func(int) string { return "" })
}

func (c *csvWriter) Row(row []any) error {
	return c.line(row, func(i int) string { return c.cols[i].Type })
}

func (c *csvWriter) line(row []any, typ func(int) string) error {
	for i, v := range row {
		if i > 0 {
			if err := c.w.WriteByte(','); err != nil {
				return err
			}
		}
		if v == nil {
			continue
		}
		if _, err := c.w.WriteString(csvCell(text(v, typ(i)))); err != nil {
			return err
		}
	}
	return c.w.WriteByte('\n')
}

// csvCell quotes what needs it.
func csvCell(s string) string {
	if s != "" && !strings.ContainsAny(s, ",\"\r\n") && strings.TrimSpace(s) == s {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

func (c *csvWriter) End() error           { return c.w.Flush() }
func (c *csvWriter) Affected(int64) error { return nil }
func (c *csvWriter) Close() error         { return c.w.Flush() }

// jsonWriter writes one document a run:
// {"apiVersion":…,"kind":"QueryResult","results":[{"columns":[…],"rows":[{…}]}]}.
// Rows keep the order of the columns; a name that comes twice gets a number.
type jsonWriter struct {
	talk
	w     *bufio.Writer
	sets  int
	rows  int
	inSet bool
	cols  []mssql.Column
	names []string
}

func (j *jsonWriter) open() error {
	_, err := j.w.WriteString(`{"apiVersion":"cli.kubectl-mssql.io/v1","kind":"QueryResult","results":[`)
	return err
}

func (j *jsonWriter) Columns(cols []mssql.Column) error {
	var err error
	if j.inSet {
		if err := j.End(); err != nil {
			return err
		}
	}
	if j.sets == 0 {
		err = j.open()
	} else {
		err = j.w.WriteByte(',')
	}
	if err != nil {
		return err
	}
	j.sets, j.rows, j.cols, j.names = j.sets+1, 0, cols, unique(cols)
	type column struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	list := make([]column, 0, len(cols))
	for i, c := range cols {
		list = append(list, column{j.names[i], strings.ToLower(c.Type)})
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	j.inSet = true
	_, err = fmt.Fprintf(j.w, `{"columns":%s,"rows":[`, text)
	return err
}

// unique names: a column without one is called after its place.
func unique(cols []mssql.Column) []string {
	used := map[string]bool{}
	out := make([]string, 0, len(cols))
	for i, c := range cols {
		base := c.Name
		if base == "" {
			base = fmt.Sprintf("column%d", i+1)
		}
		name := base
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
		}
		used[name] = true
		out = append(out, name)
	}
	return out
}

func (j *jsonWriter) Row(row []any) error {
	var b strings.Builder
	if j.rows > 0 {
		b.WriteByte(',')
	}
	j.rows++
	b.WriteString("\n{")
	for i, v := range row {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(j.names[i])
		if err != nil {
			return err
		}
		value, err := json.Marshal(jsonValue(v, j.cols[i].Type))
		if err != nil {
			return fmt.Errorf("column %s: %w", j.names[i], err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	_, err := io.WriteString(j.w, b.String())
	return err
}

func (j *jsonWriter) End() error {
	j.inSet = false
	_, err := j.w.WriteString("]}")
	return err
}

func (j *jsonWriter) Affected(int64) error { return nil }

// Close ends the document, also one that an error cut short within a result set.
func (j *jsonWriter) Close() error {
	if j.sets == 0 {
		if err := j.open(); err != nil {
			return err
		}
	}
	if j.inSet {
		if err := j.End(); err != nil {
			return err
		}
	}
	if _, err := j.w.WriteString("]}\n"); err != nil {
		return err
	}
	return j.w.Flush()
}
