package tsql

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// ErrBroken is returned by Session methods when the connection must be closed: the session was
// killed, an error of severity 20 or more was raised, or the server stopped.
var ErrBroken = errors.New("session is broken")

// ErrStatementLimit is returned when a request has run more statements than Session.Limit.
var ErrStatementLimit = errors.New("request ran more statements than its limit")

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

// Files is what a Host may implement too, to give BACKUP, RESTORE, BACKUP CERTIFICATE and CREATE
// CERTIFICATE FROM FILE the server's file system.
type Files interface {
	ReadFile(path string) ([]byte, error)
	// CreateFile fails when the file exists.
	CreateFile(path string, data []byte) error
	// WriteFile replaces the file or makes it.
	WriteFile(path string, data []byte) error
}

// options are the SET options of a session.
type options struct {
	nocount     bool
	xactAbort   bool
	implicitTxn bool
	quotedIdent bool
	lockTimeout time.Duration // < 0 waits for ever
	isolation   string
	rowCount    int64
	textSize    int64
	identityIns string // key of the table with IDENTITY_INSERT ON
	language    string
}

func defaultOptions() options {
	return options{quotedIdent: true, lockTimeout: -1, isolation: "READ COMMITTED", language: "us_english"}
}

// Session is one login on an instance. It is used by one goroutine at a time, except Kill and Close.
type Session struct {
	host   engine.Host
	id     engine.SessionID
	login  engine.LoginRequest
	server string // @@SERVERNAME, for messages
	cache  *batchCache

	opts      options
	temp      map[string]*memTable // #tables by lower-case name
	tempID    engine.ObjectID
	lastError int32
	rowCount  int64
	identity  sqltypes.Value // SCOPE_IDENTITY()
	tranCount int
	tranID    uint64
	rolled    bool
	doomed    bool
	caught    []*stmtError // errors of the CATCH blocks being run
	broken    atomic.Bool
	random    uint64
	views     map[string]*sysView
	recent    [2]cachedBatch
	next      int // of recent, to be replaced
	held      held
	hold      func(now time.Time, in *engine.Instance)
	plans     map[any]*plan

	// Limit bounds the statements of one request, and its rows to a hundred times that; 0 means no
	// bound. Exceeding it is ErrStatementLimit.
	Limit int64
	spent int64
	steps int64 // rows visited by the request
}

// sharedCache holds the parsed batches of all sessions of the process: the trees are read-only.
var sharedCache = newBatchCache(2048)

// NewSession logs in. A refused login is an error that engine.Messages can take apart (18456, 4060 …).
func NewSession(host engine.Host, login engine.LoginRequest) (*Session, error) {
	s := &Session{host: host, login: login, cache: sharedCache, opts: defaultOptions(), temp: map[string]*memTable{}, identity: sqltypes.Null(sqltypes.TNumeric(38, 0))}
	var err error
	host.Do(func(now time.Time, in *engine.Instance) {
		s.id, err = in.Login(now, login)
		s.server = in.ServerName()
	})
	if err != nil && engine.Failed(err) {
		return nil, err
	}
	return s, nil
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
	if s.broken.Load() {
		return ErrBroken
	}
	s.spent, s.steps = 0, 0
	ex := &exec{s: s, ctx: ctx, out: out, vars: varScope{}}
	command := commandOf(r)
	s.host.Do(func(now time.Time, in *engine.Instance) {
		in.BeginRequest(now, s.id, command, r.SQL)
		s.server = in.ServerName()
	})
	err := ex.request(r)
	if err != nil && s.opts.xactAbort && s.tranCount > 0 && !s.broken.Load() {
		// an attention under XACT_ABORT rolls back
		ex.rollbackAll()
	}
	s.host.Do(func(now time.Time, in *engine.Instance) {
		if in.Exited() {
			s.broken.Store(true)
			return
		}
		in.EndRequest(now, s.id)
	})
	var q *errQuit
	if errors.As(err, &q) {
		err = q.err
	}
	if s.broken.Load() {
		return ErrBroken
	}
	return err
}

// commandOf is the command that sys.dm_exec_requests shows.
func commandOf(r Request) string {
	text := r.SQL
	if text == "" {
		return "EXECUTE"
	}
	t := strings.TrimSpace(text)
	if n := strings.IndexAny(t, " \t\r\n;("); n > 0 {
		t = t[:n]
	}
	switch t = strings.ToUpper(t); t {
	case "EXEC":
		return "EXECUTE"
	case "BACKUP", "RESTORE":
		rest := strings.ToUpper(strings.TrimSpace(strings.TrimSpace(text)[len(t):]))
		for _, w := range [2]string{"DATABASE", "LOG"} {
			if strings.HasPrefix(rest, w) {
				return t + " " + w
			}
		}
		return t
	}
	if len(t) > 32 || !reserved(t) {
		return "SELECT"
	}
	return t
}

// request runs the three forms of a request.
func (ex *exec) request(r Request) error {
	switch {
	case r.SQL == "" && r.Proc != "":
		return ex.callRequest(r)
	case len(r.Params) > 0 || r.Declaration != "":
		return ex.parameterised(r)
	}
	b, perr := ex.s.parse(r.SQL)
	if perr == nil {
		perr = ex.unknownVariable(b)
	}
	if perr != nil {
		ex.report(perr)
		ex.s.lastError = perr.m.Number
		return nil
	}
	_, err := ex.list(b.body)
	ex.batchEnd()
	return err
}

// parse gives the parsed form of a batch. A connection that asks the same again is answered
// without a look into the cache: texts in the same memory are equal at a glance.
func (s *Session) parse(text string) (*batch, *stmtError) {
	for i := range s.recent {
		if c := &s.recent[i]; c.b != nil && c.text == text {
			return c.b, c.b.err
		}
	}
	b, err := s.cache.parse(text)
	if b != nil {
		s.recent[s.next%len(s.recent)] = cachedBatch{text, b}
		s.next++
	}
	return b, err
}

// unknownVariable finds a variable that the batch uses without declaring it (137).
func (ex *exec) unknownVariable(b *batch) *stmtError {
	for _, u := range b.free {
		if ex.vars.get(u.name) == nil {
			if u.table {
				return errBind(u.line, 1087, 15, 2, "Must declare the table variable \"%s\".", u.name)
			}
			return errBind(u.line, 137, 15, 2, "Must declare the scalar variable \"%s\".", u.name)
		}
	}
	return nil
}

// batchEnd rolls a doomed transaction back, as the product does at the end of a batch.
func (ex *exec) batchEnd() {
	if !ex.s.doomed {
		return
	}
	ex.rollbackAll()
	ex.message(*sqltypes.Errf(3998, 16, 1, "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back."), 0, "")
	ex.out.Done(Done{Failed: true, Command: cmdOther})
}

// spend counts a statement against the limit.
func (s *Session) spend() error {
	s.spent++
	if s.Limit > 0 && s.spent > s.Limit {
		return &errQuit{ErrStatementLimit}
	}
	return nil
}

// State reports database and transaction.
func (s *Session) State() State {
	st := State{RolledBack: s.rolled}
	if s.tranCount > 0 {
		st.Transaction = s.tranID
	}
	s.host.Do(func(_ time.Time, in *engine.Instance) {
		if !in.Exited() && !s.broken.Load() {
			_, st.Database = in.CurrentDatabase(s.id)
		}
	})
	return st
}

// Reset brings the session back to what it was after login (sp_reset_connection): database, SET
// options, session context, temporary tables; an open transaction is rolled back unless kept.
func (s *Session) Reset(ctx context.Context, keepTransaction bool) error {
	if s.broken.Load() {
		return ErrBroken
	}
	if s.tranCount > 0 && !keepTransaction {
		(&exec{s: s, ctx: ctx, out: Discard{}, vars: varScope{}}).rollbackAll()
	}
	s.opts = defaultOptions()
	s.temp = map[string]*memTable{}
	s.lastError, s.rowCount = 0, 0
	var err error
	if s.tranCount == 0 {
		s.host.Do(func(now time.Time, in *engine.Instance) { err = in.ResetSession(now, s.id) })
	}
	if engine.Failed(err) {
		s.broken.Store(true)
		return ErrBroken
	}
	return nil
}

// Kill makes the session end at its next step; the host calls it for a Kill effect, and cancels
// the context of a running request.
func (s *Session) Kill() { s.broken.Store(true) }

// Close ends the session and rolls back what is open.
func (s *Session) Close() {
	s.broken.Store(true)
	s.host.Do(func(now time.Time, in *engine.Instance) {
		if !in.Exited() {
			in.Logout(now, s.id)
		}
	})
}
