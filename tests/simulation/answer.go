//go:build linux

package simulation

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// answer is a server's answer to one request as the driver gives it. It implements tsql.SetSink.
type answer struct {
	tsql.Discard
	results  []mssql.Result
	messages []tsql.Message
	known    map[*tsql.Column]knownSet
}

// knownSet is the newest result set of a query in a session: a server that gives the same rows
// again is not asked to convert them again. Nobody changes a result.
type knownSet struct {
	rows   []engine.Row
	result mssql.Result
}

// maxKnownSets bounds what a session keeps; when it is reached, all are dropped.
const maxKnownSets = 64

// Columns implements tsql.ResultSink.
func (a *answer) Columns(cols []tsql.Column) {
	a.results = append(a.results, mssql.Result{Columns: names(cols), Rows: [][]any{}})
}

func names(cols []tsql.Column) []string {
	l := make([]string, len(cols))
	for i, c := range cols {
		l[i] = c.Name
	}
	return l
}

// Row implements tsql.ResultSink.
func (a *answer) Row(row []sqltypes.Value) {
	r := &a.results[len(a.results)-1]
	r.Rows = append(r.Rows, values(row))
}

func values(row []sqltypes.Value) []any {
	l := make([]any, len(row))
	for i, v := range row {
		l[i] = valueOf(v)
	}
	return l
}

// Set implements tsql.SetSink.
func (a *answer) Set(cols []tsql.Column, rows []engine.Row) {
	if len(cols) == 0 {
		a.Columns(cols)
		return
	}
	k, asked := a.known[&cols[0]]
	if !asked {
		k.result.Columns = names(cols)
	}
	if !asked || len(rows) != len(k.rows) || len(rows) > 0 && &rows[0] != &k.rows[0] {
		k.rows, k.result.Rows = rows, make([][]any, len(rows))
		for i, r := range rows {
			k.result.Rows[i] = values(r)
		}
		if len(a.known) >= maxKnownSets {
			clear(a.known)
		}
		a.known[&cols[0]] = k
	}
	a.results = append(a.results, k.result)
}

// Message implements tsql.ResultSink.
func (a *answer) Message(m tsql.Message) { a.messages = append(a.messages, m) }

// failure is the server's own error, as the driver gives it; nil without one.
func (a *answer) failure() *ag.Error {
	if a == nil {
		return nil
	}
	var e *ag.Error
	var texts []string
	for _, m := range a.messages {
		if m.Class <= 10 {
			continue
		}
		if e == nil {
			e = &ag.Error{Kind: ag.ErrMsg}
		}
		e.Number, e.State = m.Number, m.State
		e.All = append(e.All, m.Number)
		texts = append(texts, m.Text)
	}
	if e != nil {
		e.Message = strings.Join(texts, " | ")
	}
	return e
}

// valueOf is the Go value that the driver gives.
func valueOf(v sqltypes.Value) any {
	if v.IsNull() {
		return nil
	}
	switch v.Type().ID {
	case sqltypes.Bit:
		return v.Bool()
	case sqltypes.TinyInt, sqltypes.SmallInt, sqltypes.Int, sqltypes.BigInt:
		return v.Int64()
	case sqltypes.Real, sqltypes.Float:
		return v.Float64()
	case sqltypes.Binary, sqltypes.VarBinary:
		return v.Bytes()
	case sqltypes.Date, sqltypes.SmallDateTime, sqltypes.DateTime, sqltypes.DateTime2:
		return v.Time()
	case sqltypes.Char, sqltypes.VarChar, sqltypes.NChar, sqltypes.NVarChar, sqltypes.SysName, sqltypes.XML:
		return v.Text()
	case sqltypes.Decimal, sqltypes.Numeric:
		return []byte(v.Format())
	}
	return v.Format()
}
