package mssql

import (
	"context"
	"time"
)

// Conn is one session: session context, SET options and the server's clock belong
// to it alone; it is never pooled or reset behind the caller's back. It is not for
// concurrent use.
type Conn interface {
	// Query runs one batch and reads its whole answer. The results that came before
	// an error are returned with it.
	Query(ctx context.Context, batch string) ([]Result, error)
	// Exec runs one batch and drops its results.
	Exec(ctx context.Context, batch string) error
	// Close ends the session.
	Close() error
}

// Result is one result set.
type Result struct {
	Columns []string
	Rows    [][]any
}

// Row is one row by column name. A missing column and NULL read as the zero value.
type Row struct {
	columns []string
	values  []any
}

// Row returns row i.
func (r Result) Row(i int) Row { return Row{columns: r.Columns, values: r.Rows[i]} }

// All lists the rows.
func (r Result) All() []Row {
	rows := make([]Row, len(r.Rows))
	for i := range r.Rows {
		rows[i] = r.Row(i)
	}
	return rows
}

func (r Row) value(column string) any {
	for i, c := range r.columns {
		if c == column && i < len(r.values) {
			return r.values[i]
		}
	}
	return nil
}

// Null tells whether the value is NULL or the column is not there.
func (r Row) Null(column string) bool { return r.value(column) == nil }

// Text of a character column.
func (r Row) Text(column string) string {
	switch v := r.value(column).(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// Int of an integer or bit column.
func (r Row) Int(column string) int64 {
	switch v := r.value(column).(type) {
	case int64:
		return v
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

// Bool of a bit or integer column.
func (r Row) Bool(column string) bool { return r.Int(column) != 0 }

// Bytes of a binary column.
func (r Row) Bytes(column string) []byte {
	b, _ := r.value(column).([]byte)
	return b
}

// Time of a date column, UTC.
func (r Row) Time(column string) time.Time {
	t, _ := r.value(column).(time.Time)
	return t
}
