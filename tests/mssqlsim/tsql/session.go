package tsql

import (
	"context"
	"errors"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// ErrBroken is returned by Session methods when the connection must be closed: the session was
// killed, an error of severity 20 or more was raised, or the server stopped.
var ErrBroken = errors.New("session is broken")

// Param is a parameter of a request. Name has its @; it may be empty for a positional argument of
// a procedure.
type Param struct {
	Name   string
	Value  sqltypes.Value
	Output bool
}

// Request is a batch, a parameterised statement (sp_executesql) or a procedure call.
type Request struct {
	// SQL is the text of a batch or of a parameterised statement.
	SQL string
	// Declaration declares the parameters of a parameterised statement, e.g. "@p1 int"; empty
	// with Params means that they have the types of their values.
	Declaration string
	// Proc is the procedure to call when SQL is empty.
	Proc   string
	Params []Param
}

// State is what the protocol reports of a session beside its results.
type State struct {
	Database    string
	Transaction uint64 // descriptor of the open transaction, 0 if none
	RolledBack  bool   // how the last transaction ended
}

// Session is one login on an instance. It is used by one goroutine at a time, except Close.
type Session struct {
	host engine.Host
	id   engine.SessionID
}

// NewSession logs in. A refused login is an error that engine.Messages can take apart (18456, 4060 …).
func NewSession(host engine.Host, login engine.LoginRequest) (*Session, error) {
	s := &Session{host: host}
	var err error
	host.Do(func(now time.Time, in *engine.Instance) { s.id, err = in.Login(now, login) })
	return s, err
}

// ID is the session's spid.
func (s *Session) ID() engine.SessionID { return s.id }

// Execute runs a batch; with params it is a parameterised statement. All errors and results of
// the statements go to out. The returned error is only about the session: the context's when ctx
// ended (attention), ErrBroken, or nil.
func (s *Session) Execute(ctx context.Context, batch string, params []Param, out ResultSink) error {
	return s.Run(ctx, Request{SQL: batch, Params: params}, out)
}

// Run runs any request; as Execute.
func (s *Session) Run(ctx context.Context, r Request, out ResultSink) error {
	return ErrBroken
}

// State reports database and transaction.
func (s *Session) State() State { return State{} }

// Reset brings the session back to what it was after login (sp_reset_connection): database, SET
// options, session context, temporary tables; an open transaction is rolled back unless kept.
func (s *Session) Reset(ctx context.Context, keepTransaction bool) error { return nil }

// Close ends the session and rolls back what is open.
func (s *Session) Close() {}
