package server

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tds"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// errKilled is the cause of a request's end when the engine killed its session.
var errKilled = errors.New("the session was killed")

// sessions knows the sessions by spid, so that the engine can kill them.
type sessions struct {
	mu   sync.Mutex
	byID map[engine.SessionID]*session
}

func (s *sessions) add(id engine.SessionID, one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[id] = one
}

func (s *sessions) remove(id engine.SessionID, one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[id] == one {
		delete(s.byID, id)
	}
}

// kill follows a Kill effect.
func (s *sessions) kill(e engine.Kill) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range e.Sessions {
		if one := s.byID[id]; one != nil {
			one.kill(e.Err)
		}
	}
}

// logins is the tds.Handler of one listener.
type logins struct {
	server *Server
	admin  bool
}

// Login implements tds.Handler.
func (l logins) Login(ctx context.Context, conn *tds.Conn, login tds.Login) (tds.Session, tds.LoginResult, error) {
	address, portText, _ := net.SplitHostPort(login.ClientAddr)
	port, _ := strconv.Atoi(portText)
	request := engine.LoginRequest{
		User: login.User, Password: login.Password, Database: login.Database,
		HostName: login.Host, AppName: login.App, ClientInterface: login.Library,
		Address: address, Port: port, Encrypted: login.Encrypted, ReadOnlyIntent: login.ReadOnlyIntent, Admin: l.admin,
	}
	t, err := tsql.NewSession(l.server.host, request)
	if err != nil {
		var messages []tds.Message
		for _, m := range engine.Messages(err) {
			messages = append(messages, message(m))
		}
		if messages == nil {
			return nil, tds.LoginResult{}, err
		}
		return nil, tds.LoginResult{}, &tds.LoginError{Messages: messages}
	}
	if to := l.route(t, request); to != nil {
		t.Close()
		return gone{}, tds.LoginResult{Database: "master", Language: "us_english", Routing: to}, nil
	}
	s := &session{server: l.server, conn: conn, t: t}
	l.server.sessions.add(t.ID(), s)
	database := t.State().Database
	return s, tds.LoginResult{
		SPID: int(t.ID()), Database: database, Language: "us_english",
		Messages: []tds.Message{
			{Number: 5701, State: 2, Line: 1, Text: "Changed database context to '" + database + "'."},
			{Number: 5703, State: 1, Line: 1, Text: "Changed language setting to us_english."},
		},
	}, nil
}

// route is where a login with read-only intent goes, nil if it stays.
func (l logins) route(t *tsql.Session, r engine.LoginRequest) *tds.Routing {
	if !r.ReadOnlyIntent || l.admin {
		return nil
	}
	database := t.State().Database
	var target string
	var ok bool
	l.server.host.Do(func(now time.Time, in *engine.Instance) { target, ok = in.ReadOnlyRoute(now, database) })
	if !ok {
		return nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return nil
	}
	return &tds.Routing{Host: u.Hostname(), Port: uint16(port)}
}

// gone is the session of a login that was sent elsewhere.
type gone struct{}

// Execute implements tds.Session.
func (gone) Execute(context.Context, tds.Request, *tds.Response) {}

// State implements tds.Session.
func (gone) State() tds.SessionState { return tds.SessionState{} }

// Reset implements tds.Session.
func (gone) Reset(context.Context, bool) {}

// Close implements tds.Session.
func (gone) Close() {}

func message(e *engine.Error) tds.Message {
	return tds.Message{Number: e.Number, State: e.State, Class: e.Class, Text: e.Message, Line: 1}
}

// session joins a T-SQL session and its connection.
type session struct {
	server *Server
	conn   *tds.Conn
	t      *tsql.Session

	mu      sync.Mutex
	cancel  context.CancelCauseFunc // of the running request
	killed  *engine.Error
	isKill  bool
	running bool
}

// kill ends the session: a running request fails with the error and then the connection
// closes; an idle connection closes at once.
func (s *session) kill(err *engine.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isKill, s.killed = true, err
	s.t.Kill()
	if s.running {
		s.cancel(errKilled)
		return
	}
	s.conn.Kill(errKilled)
}

// State implements tds.Session.
func (s *session) State() tds.SessionState {
	st := s.t.State()
	return tds.SessionState{Database: st.Database, Transaction: st.Transaction, RolledBack: st.RolledBack}
}

// Reset implements tds.Session.
func (s *session) Reset(ctx context.Context, keepTransaction bool) {
	if err := s.t.Reset(ctx, keepTransaction); err != nil {
		s.conn.Kill(err)
	}
}

// Close implements tds.Session.
func (s *session) Close() {
	s.server.sessions.remove(s.t.ID(), s)
	s.t.Close()
}

// Execute implements tds.Session.
func (s *session) Execute(ctx context.Context, r tds.Request, out *tds.Response) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	s.cancel, s.running = cancel, true
	killed := s.isKill
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running = false
		s.mu.Unlock()
	}()

	var err error
	if !killed {
		request := tsql.Request{SQL: r.SQL, Declaration: r.Declaration, Proc: r.Proc}
		for _, p := range r.Params {
			if p.Default {
				continue
			}
			request.Params = append(request.Params, tsql.Param{Name: p.Name, Value: p.Value, Output: p.Output})
		}
		err = s.t.Run(ctx, request, sink{out: out, params: r.Params, host: s.server.host})
	}
	if s.server.host.isStopped() {
		out.Abort(errStopped)
		return
	}

	s.mu.Lock()
	isKill, why := s.isKill, s.killed
	s.mu.Unlock()
	switch {
	case isKill:
		if why != nil {
			_ = out.Message(message(why))
		}
		out.Break()
	case errors.Is(err, tsql.ErrBroken), errors.Is(err, errStopped):
		out.Break()
	}
}

// sink turns the executor's results into tokens. Errors of the socket show when the reply
// is finished. Once the instance has stopped nothing goes out: what a statement did then
// is not on the disk.
type sink struct {
	out    *tds.Response
	params []tds.Param
	host   *host
}

func (s sink) open() bool {
	if s.host.isStopped() {
		s.out.Abort(errStopped)
		return false
	}
	return true
}

// Columns implements tsql.ResultSink.
func (s sink) Columns(columns []tsql.Column) {
	if !s.open() {
		return
	}
	out := make([]tds.Column, len(columns))
	for i, c := range columns {
		out[i] = tds.Column{Name: c.Name, Type: c.Type, Nullable: c.Nullable, Identity: c.Identity}
	}
	_ = s.out.Columns(out)
}

// Row implements tsql.ResultSink.
func (s sink) Row(row []sqltypes.Value) {
	if s.open() {
		_ = s.out.Row(row)
	}
}

// Message implements tsql.ResultSink.
func (s sink) Message(m tsql.Message) {
	if !s.open() {
		return
	}
	_ = s.out.Message(tds.Message{Number: m.Number, State: m.State, Class: m.Class, Text: m.Text, Proc: m.Procedure, Line: int32(m.Line)})
	if m.NoWait {
		_ = s.out.Flush()
	}
}

// Done implements tsql.ResultSink.
func (s sink) Done(d tsql.Done) {
	if !s.open() {
		return
	}
	_ = s.out.Done(tds.Done{Count: d.Count, Counted: d.Counted, Failed: d.Failed, Command: d.Command, InProc: d.InProc, Proc: d.Proc})
}

// ReturnStatus implements tsql.ResultSink.
func (s sink) ReturnStatus(status int32) {
	if s.open() {
		_ = s.out.ReturnStatus(status)
	}
}

// ReturnValue implements tsql.ResultSink. The client gets the type that it declared, if
// the value still fits it.
func (s sink) ReturnValue(name string, v sqltypes.Value) {
	if !s.open() {
		return
	}
	t := v.Type()
	for _, p := range s.params {
		if p.Name == name && v.IsNull() {
			t = p.Type
		}
	}
	if v.IsVariant() {
		t = sqltypes.TVariant
	}
	_ = s.out.ReturnValue(tds.Param{Name: name, Type: t, Value: v})
}
