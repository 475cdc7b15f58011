package tds

import (
	"context"
	"strings"
)

// Handler opens sessions. Its methods are called from many connections at once.
type Handler interface {
	// Login authenticates a client. A refusal is a *LoginError, whose messages the client
	// is shown; any other error closes the connection without a word.
	Login(ctx context.Context, conn *Conn, login Login) (Session, LoginResult, error)
}

// LoginResult is what the client is told about its new session.
type LoginResult struct {
	SPID     int    // session number; 0 keeps the connection's own
	Database string // current database
	Language string
	Messages []Message // 5701 and 5703 in the product
	// Routing, if set, sends the client to another server instead (read-only routing).
	Routing *Routing
}

// Routing is a TCP address that a client is redirected to.
type Routing struct {
	Host string
	Port uint16
}

// LoginError is a refused login.
type LoginError struct {
	Messages []Message
}

// Error joins the messages.
func (e *LoginError) Error() string {
	texts := make([]string, len(e.Messages))
	for i := range e.Messages {
		texts[i] = e.Messages[i].Error()
	}
	return "login refused: " + strings.Join(texts, "; ")
}

// SessionState is what the protocol reports of a session beside its results.
type SessionState struct {
	Database    string
	Transaction uint64 // descriptor of the open transaction, 0 if none
	RolledBack  bool   // how the last transaction ended
}

// Request is one batch or one procedure call.
type Request struct {
	// SQL is the text of a batch, or of a parameterised statement (sp_executesql and the
	// prepared forms). Params then holds its parameters by name.
	SQL string
	// Declaration is the text that declares the parameters, e.g. "@p1 int, @p2 nvarchar(9)".
	Declaration string
	// Proc is the name of the procedure to call when SQL is empty.
	Proc   string
	Params []Param
}

// Session is one login. Its methods are called one at a time, but Close may come while
// Execute runs; Execute's context has ended by then.
type Session interface {
	// Execute runs a request and writes its results. When ctx ends it must return soon;
	// the cause tells an attention (ErrAttention) from a lost connection. For output
	// parameters it calls out.ReturnValue, and for a procedure out.ReturnStatus.
	Execute(ctx context.Context, request Request, out *Response)
	// State is asked before and after each request.
	State() SessionState
	// Reset brings the session back to what it was after login (sp_reset_connection).
	// With keepTransaction an open transaction survives.
	Reset(ctx context.Context, keepTransaction bool)
	// Close ends the session and rolls back what is open.
	Close()
}
