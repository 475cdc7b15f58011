//go:build linux

package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// conn is a session of a process with a simulated server: function calls that take as long as
// packets do. It implements mssql.Conn.
type conn struct {
	from    *proc
	server  *server
	session *tsql.Session
	inbox   chan *job
	closed  bool // by either side
	current *job
	done    chan struct{} // the server's side has ended
}

// job is one request at the server.
type job struct {
	request tsql.Request
	cancel  context.CancelFunc
	back    reply
	results *tsql.Results
}

// connect logs in at the node's server. It takes mu.
func (n *node) connect(ctx context.Context, from *proc, user, password string) (*conn, error) {
	v, err := from.call(ctx, n.host, n.sqlStation(), kindSQL, nil, func() *proc {
		if n.server == nil {
			return nil
		}
		return n.server.proc
	}, func(back reply) {
		s := n.server
		c := &conn{from: from, server: s, inbox: make(chan *job, 8), done: make(chan struct{})}
		from.w.wg.Add(1)
		go c.serve(engine.LoginRequest{User: user, Password: password, AppName: from.name}, back)
	})
	if err != nil {
		kind := ag.ErrUnreachable
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			kind = ag.ErrTimeout
		}
		var e *ag.Error
		if errors.As(err, &e) {
			return nil, e
		}
		return nil, &ag.Error{Kind: kind, Message: fmt.Sprintf("log in at %s: %v", n.name, err)}
	}
	c, _ := v.(*conn)
	return c, nil
}

// serve is the server's side of the session.
func (c *conn) serve(login engine.LoginRequest, back reply) {
	s := c.server
	defer s.w.wg.Done()
	defer close(c.done)
	session, err := tsql.NewSession(s, login)
	s.w.mu.Lock()
	switch {
	case s.dead:
		back(nil, errRefused)
		s.w.mu.Unlock()
		return
	case err != nil:
		back(nil, loginFailed(err))
		s.w.mu.Unlock()
		return
	}
	c.session = session
	s.conns[session.ID()] = c
	back(c, nil)
	s.w.mu.Unlock()
	for {
		var j *job
		select {
		case j = <-c.inbox:
		case <-s.ctx.Done():
			return
		}
		if j == nil {
			break
		}
		ctx, cancel := context.WithCancel(s.ctx)
		s.w.mu.Lock()
		j.cancel, c.current = cancel, j
		s.w.mu.Unlock()
		j.results = &tsql.Results{}
		what := s.announce(j.request.SQL)
		watched := s.watch(c.from, j.request.SQL)
		if s.node.c.omit.Has("R5") { // the expiry is one that never comes
			j.request.SQL = strings.ReplaceAll(j.request.SQL, "IF SYSUTCDATETIME() >= '20", "IF SYSUTCDATETIME() >= '80")
		}
		err := session.Run(ctx, j.request, j.results)
		cancel()
		s.w.mu.Lock()
		watched()
		if what == "alter" {
			s.node.c.faults.trigger("altered")
		}
		c.current = nil
		switch {
		case s.dead:
			j.back(nil, errRefused)
		case errors.Is(err, tsql.ErrBroken):
			c.closed = true
			j.back(j.results, errRefused)
		case err != nil:
			j.back(j.results, err)
		default:
			j.back(j.results, nil)
		}
		broken := c.closed
		s.w.mu.Unlock()
		if broken {
			break
		}
	}
	session.Close()
	s.w.mu.Lock()
	c.closed = true
	delete(s.conns, session.ID())
	s.w.mu.Unlock()
}

// announce tells of a statement that changes the group, before it is run.
func (s *server) announce(sql string) string {
	what := ""
	switch {
	case len(sql) > 2000 || !strings.Contains(sql, "ALTER AVAILABILITY GROUP"):
		return ""
	case strings.Contains(sql, " SET (REQUIRED_SYNCHRONIZED"):
		what = "alter"
	case strings.HasSuffix(strings.TrimRight(sql, ";\n"), "] FAILOVER"):
		what = "failover"
	case strings.HasSuffix(strings.TrimRight(sql, ";\n"), "] OFFLINE"):
		what = "offline"
	default:
		return ""
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.node.c.faults.trigger(what)
	return what
}

func loginFailed(err error) error {
	e := &ag.Error{Kind: ag.ErrLogin, Message: err.Error()}
	for _, m := range engine.Messages(err) {
		e.Number, e.All = m.Number, append(e.All, m.Number)
	}
	return e
}

// lost: the process has died; mu is held.
func (c *conn) lost() { c.closed = true }

// killed ends the session from the server's side; mu is held.
func (c *conn) killed() {
	c.session.Kill()
	if c.current != nil && c.current.cancel != nil {
		c.current.cancel()
		return
	}
	c.closed = true
	select {
	case c.inbox <- nil:
	default:
	}
}

// do runs one request. It takes mu.
func (c *conn) do(ctx context.Context, r tsql.Request) (*tsql.Results, error) {
	j := &job{request: r}
	v, err := c.from.call(ctx, c.server.host, c.server.station, kindSQL, nil, func() *proc { return c.server.proc }, func(back reply) {
		if c.closed {
			back(nil, errRefused)
			return
		}
		j.back = back
		select {
		case c.inbox <- j:
		default:
			back(nil, errRefused)
		}
	})
	if err != nil && ctx.Err() != nil {
		c.attention(j)
	}
	results, _ := v.(*tsql.Results)
	return results, err
}

// attention cancels a request that nobody waits for any more, if the network carries it. It takes mu.
func (c *conn) attention(j *job) {
	w := c.from.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reaches(c.from.host, c.server.host, kindSQL) {
		return
	}
	w.after(w.travel(c.from.station, c.server.station, kindSQL), func() {
		c.server.arrive(func() {
			if c.current == j && j.cancel != nil {
				j.cancel()
			}
		})
	})
}

// Close implements mssql.Conn. A server that cannot be reached goes on with what it was told.
func (c *conn) Close() error {
	w := c.from.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.closed || c.server.dead || !w.reaches(c.from.host, c.server.host, kindSQL) {
		return nil
	}
	w.after(w.travel(c.from.station, c.server.station, kindSQL), func() {
		c.server.arrive(func() {
			if c.closed || c.server.dead {
				return
			}
			if c.current != nil && c.current.cancel != nil {
				c.current.cancel()
			}
			select {
			case c.inbox <- nil:
			default:
			}
		})
	})
	return nil
}

// Exec implements mssql.Conn.
func (c *conn) Exec(ctx context.Context, batch string) error {
	_, err := c.Query(ctx, batch)
	return err
}

// Query implements mssql.Conn.
func (c *conn) Query(ctx context.Context, batch string) ([]mssql.Result, error) {
	r, err := c.do(ctx, tsql.Request{SQL: batch})
	if r == nil && err == nil {
		err = errRefused
	}
	var results []mssql.Result
	if r != nil {
		results = resultsOf(r)
	}
	if err != nil {
		return results, &ag.Error{Kind: ag.ErrTimeout, Message: fmt.Sprintf("no answer from %s: %v", c.server.name, err)}
	}
	if e := failureOf(r); e != nil {
		return results, e
	}
	return results, nil
}

// failureOf is the server's own error, as the driver gives it.
func failureOf(r *tsql.Results) *ag.Error {
	var e *ag.Error
	var texts []string
	for _, m := range r.Messages {
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

func resultsOf(r *tsql.Results) []mssql.Result {
	out := make([]mssql.Result, len(r.Sets))
	for i, set := range r.Sets {
		columns := make([]string, len(set.Columns))
		for k, c := range set.Columns {
			columns[k] = c.Name
		}
		rows := make([][]any, len(set.Rows))
		for k, row := range set.Rows {
			values := make([]any, len(row))
			for j, v := range row {
				values[j] = valueOf(v)
			}
			rows[k] = values
		}
		out[i] = mssql.Result{Columns: columns, Rows: rows}
	}
	return out
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
