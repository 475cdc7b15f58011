package main

import (
	"bufio"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxDefaultWidth is the display width of (max) and other long columns.
const maxDefaultWidth = 256

// column is how one column is printed.
type column struct {
	name    string
	typ     string // database type name, upper case
	width   int
	limit   int  // longest text shown; 0 means all of it
	right   bool // numbers stand right
	decimal int  // fractional digits of a temporal type
}

// columnsOf derives the layout from the result's metadata, as ODBC display sizes do.
func columnsOf(types []*sql.ColumnType, o *options) []column {
	columns := make([]column, len(types))
	for i, t := range types {
		c := column{name: t.Name(), typ: strings.ToUpper(t.DatabaseTypeName()), decimal: 7}
		length, variable := t.Length()
		switch c.typ {
		case "BIT":
			c.width, c.right = 1, true
		case "TINYINT":
			c.width, c.right = 3, true
		case "SMALLINT":
			c.width, c.right = 6, true
		case "INT":
			c.width, c.right = 11, true
		case "BIGINT":
			c.width, c.right = 20, true
		case "REAL":
			c.width, c.right = 14, true
		case "FLOAT":
			c.width, c.right = 24, true
		case "DECIMAL", "NUMERIC":
			precision, _, _ := t.DecimalSize()
			c.width, c.right = int(precision)+2, true
		case "MONEY":
			c.width, c.right = 21, true
		case "DATE":
			c.width = 16
		case "DATETIME":
			c.width = 23
		case "SMALLDATETIME":
			c.width = 19
		case "TIME":
			c.width = 22
		case "DATETIME2":
			c.width = 38
		case "DATETIMEOFFSET":
			c.width = 45
		case "UNIQUEIDENTIFIER":
			c.width = 36
		case "VARBINARY", "BINARY":
			c.width = 2*int(min(length, 1<<20)) + 2
		case "SQL_VARIANT":
			c.width = maxDefaultWidth
		default:
			c.width = maxDefaultWidth
			if variable {
				c.width = int(min(length, 1<<20))
			}
		}
		if c.width > maxDefaultWidth && variable {
			c.width = maxDefaultWidth
		}
		if variable || c.typ == "SQL_VARIANT" || c.typ == "XML" {
			c.bound(length, o)
		}
		columns[i] = c
	}
	return columns
}

// bound applies -y to long types and -Y to the others.
func (c *column) bound(length int64, o *options) {
	long := length > 8000 || c.typ == "XML" || c.typ == "SQL_VARIANT"
	c.limit = c.width
	set := o.fixedWidth
	if long {
		set = o.maxWidth
	}
	switch {
	case set > 0:
		c.width, c.limit = min(c.width, set), set
		if long {
			c.width = set
		}
	case set == 0 && long: // -y 0: all of it, without padding
		c.width, c.limit = 0, 0
	case o.trim:
		c.limit = 0
	}
}

// printer writes result sets in sqlcmd's layout.
type printer struct {
	out     *bufio.Writer
	o       *options
	columns []column
	rows    int
}

func (p *printer) begin(columns []column) {
	p.columns, p.rows = columns, 0
	if p.o.headers >= 0 {
		p.header()
	}
}

func (p *printer) header() {
	names := make([]string, len(p.columns))
	dashes := make([]string, len(p.columns))
	for i, c := range p.columns {
		names[i] = c.name
		n := max(c.width, utf8.RuneCountInString(c.name))
		if p.o.trim {
			n = max(utf8.RuneCountInString(c.name), 1)
		}
		dashes[i] = strings.Repeat("-", n)
	}
	p.line(names, false)
	p.line(dashes, false)
}

func (p *printer) row(values []any) {
	if p.o.headers > 0 && p.rows > 0 && p.rows%p.o.headers == 0 {
		_ = p.out.WriteByte('\n')
		p.header()
	}
	p.rows++
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = text(v, p.columns[i])
		if limit := p.columns[i].limit; limit > 0 && utf8.RuneCountInString(texts[i]) > limit {
			texts[i] = string([]rune(texts[i])[:limit])
		}
	}
	p.line(texts, true)
}

func (p *printer) line(texts []string, values bool) {
	for i, s := range texts {
		if i > 0 {
			_, _ = p.out.WriteString(p.o.separator)
		}
		if p.o.trim {
			_, _ = p.out.WriteString(strings.TrimRight(s, " "))
			continue
		}
		c := p.columns[i]
		pad := max(c.width, utf8.RuneCountInString(c.name)) - utf8.RuneCountInString(s)
		if p.o.headers < 0 {
			pad = c.width - utf8.RuneCountInString(s)
		}
		if values && c.right && pad > 0 {
			_, _ = p.out.WriteString(strings.Repeat(" ", pad))
		}
		_, _ = p.out.WriteString(s)
		if (!values || !c.right) && pad > 0 {
			_, _ = p.out.WriteString(strings.Repeat(" ", pad))
		}
	}
	_ = p.out.WriteByte('\n')
}

func (p *printer) affected(n int64) {
	fmt.Fprintf(p.out, "\n(%d rows affected)\n", n)
}

// text is a value as sqlcmd shows it.
func text(v any, c column) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool:
		if v {
			return "1"
		}
		return "0"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'G', -1, 64)
	case time.Time:
		return timeText(v, c)
	case []byte:
		switch c.typ {
		case "UNIQUEIDENTIFIER":
			if len(v) == 16 {
				return fmt.Sprintf("%02X%02X%02X%02X-%02X%02X-%02X%02X-%X-%X", v[3], v[2], v[1], v[0], v[5], v[4], v[7], v[6], v[8:10], v[10:])
			}
		case "DECIMAL", "NUMERIC", "MONEY":
			return withoutZero(string(v))
		}
		return fmt.Sprintf("0x%X", v)
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// withoutZero drops the zero before the point, as ODBC does: .50 and -.50.
func withoutZero(s string) string {
	if rest, ok := strings.CutPrefix(s, "0."); ok {
		return "." + rest
	}
	if rest, ok := strings.CutPrefix(s, "-0."); ok {
		return "-." + rest
	}
	return s
}

func timeText(v time.Time, c column) string {
	switch c.typ {
	case "DATE":
		return v.Format("2006-01-02")
	case "SMALLDATETIME":
		return v.Format("2006-01-02 15:04:05")
	case "TIME":
		return v.Format("15:04:05.0000000")
	case "DATETIME2":
		return v.Format("2006-01-02 15:04:05.0000000")
	case "DATETIMEOFFSET":
		return v.Format("2006-01-02 15:04:05.0000000 -07:00")
	default:
		return v.Format("2006-01-02 15:04:05.000")
	}
}
