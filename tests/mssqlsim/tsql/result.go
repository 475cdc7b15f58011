package tsql

import (
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// Column describes a column of a result set. Name is empty for an unnamed expression.
type Column struct {
	Name     string
	Type     sqltypes.Type
	Nullable bool
	Identity bool
}

// Message is an error (Class > 10) or an information (Class <= 10), as the wire carries it.
type Message struct {
	Number    int32
	State     uint8
	Class     uint8
	Text      string
	Server    string
	Procedure string
	Line      int
	// NoWait (RAISERROR … WITH NOWAIT): it is sent at once, with what was kept back before it.
	NoWait bool
}

// Error is the message in the client tools' form.
func (m Message) Error() string {
	return fmt.Sprintf("Msg %d, Level %d, State %d, Line %d: %s", m.Number, m.Class, m.State, m.Line, m.Text)
}

// Done ends one statement (DONE, DONEINPROC) or one procedure (DONEPROC).
type Done struct {
	// Count is the number of rows, valid when Counted (SET NOCOUNT OFF and a counting statement).
	Count   int64
	Counted bool
	// Failed tells that the statement ended with an error.
	Failed bool
	// Command is the token's current command: 0xC1 SELECT, 0xC3 INSERT, 0xC4 DELETE, 0xC5 UPDATE, …
	Command uint16
	// InProc is true inside a procedure or sp_executesql: DONEINPROC rather than DONE.
	InProc bool
	// Proc is true for the end of a procedure: DONEPROC, after the return status.
	Proc bool
}

// ResultSink receives the answer of a request in the order of the wire: per statement Columns and
// Row… (a query), Message… and Done. Slices are only valid during the call, values may be kept.
type ResultSink interface {
	// Columns starts a result set.
	Columns(cols []Column)
	// Row is a row of the result set that Columns started.
	Row(row []sqltypes.Value)
	// Message is an error or an information.
	Message(m Message)
	// Done ends a statement.
	Done(d Done)
	// ReturnStatus is the return status of a procedure.
	ReturnStatus(status int32)
	// ReturnValue is the final value of an output parameter of the request.
	ReturnValue(name string, v sqltypes.Value)
}

// SetSink is a ResultSink that takes whole result sets. Neither columns nor rows may be changed,
// both may be kept: a query that has found nothing new gives those that it gave before.
type SetSink interface {
	ResultSink
	Set(cols []Column, rows []engine.Row)
}

// Discard is a sink that drops everything.
type Discard struct{}

// Columns implements ResultSink.
func (Discard) Columns([]Column) {}

// Row implements ResultSink.
func (Discard) Row([]sqltypes.Value) {}

// Message implements ResultSink.
func (Discard) Message(Message) {}

// Done implements ResultSink.
func (Discard) Done(Done) {}

// ReturnStatus implements ResultSink.
func (Discard) ReturnStatus(int32) {}

// ReturnValue implements ResultSink.
func (Discard) ReturnValue(string, sqltypes.Value) {}

// ResultSet is one result set in memory.
type ResultSet struct {
	Columns []Column
	Rows    [][]sqltypes.Value
}

// Results collects the whole answer of a request; the sink of callers in the same process.
type Results struct {
	Sets     []ResultSet
	Messages []Message
	Dones    []Done
	Status   int32
	Outputs  map[string]sqltypes.Value
}

// Columns implements ResultSink.
func (r *Results) Columns(cols []Column) {
	r.Sets = append(r.Sets, ResultSet{Columns: append([]Column(nil), cols...)})
}

// Row implements ResultSink.
func (r *Results) Row(row []sqltypes.Value) {
	s := &r.Sets[len(r.Sets)-1]
	s.Rows = append(s.Rows, append([]sqltypes.Value(nil), row...))
}

// Message implements ResultSink.
func (r *Results) Message(m Message) { r.Messages = append(r.Messages, m) }

// Done implements ResultSink.
func (r *Results) Done(d Done) { r.Dones = append(r.Dones, d) }

// ReturnStatus implements ResultSink.
func (r *Results) ReturnStatus(n int32) { r.Status = n }

// ReturnValue implements ResultSink.
func (r *Results) ReturnValue(name string, v sqltypes.Value) {
	if r.Outputs == nil {
		r.Outputs = map[string]sqltypes.Value{}
	}
	r.Outputs[name] = v
}

// Err is the last error message, nil if every message is informational; a Go driver reports the
// last one too.
func (r *Results) Err() error {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Class > 10 {
			return r.Messages[i]
		}
	}
	return nil
}

// Affected is the sum of the counted rows of statements that are not queries.
func (r *Results) Affected() int64 {
	var n int64
	for _, d := range r.Dones {
		if d.Counted && d.Command != cmdSelect {
			n += d.Count
		}
	}
	return n
}

// Current commands of DONE tokens.
const (
	cmdSelect uint16 = 0xC1
	cmdInsert uint16 = 0xC3
	cmdDelete uint16 = 0xC4
	cmdUpdate uint16 = 0xC5
	cmdExec   uint16 = 0xE0
	cmdOther  uint16 = 0xFD
)
