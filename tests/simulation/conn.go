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
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// conn is a session of a process with a simulated server: function calls that take as long as
// packets do. It implements mssql.Conn.
type conn struct {
	from    *proc
	server  *server
	session *tsql.Session
	inbox   chan *job
	known   map[*tsql.Column]knownSet // of serve alone
	closed  bool                      // by either side
	current *job
	done    chan struct{} // the server's side has ended
}

// job is one request at the server.
type job struct {
	request tsql.Request
	cancel  context.CancelFunc
	back    reply
	answer  *answer
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
		c := &conn{from: from, server: s, inbox: make(chan *job, 8), known: map[*tsql.Column]knownSet{}, done: make(chan struct{})}
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
	// One context serves until it is cancelled: by an attention, a KILL or the end of the process.
	ctx, cancel := context.WithCancel(s.ctx)
	defer func() { cancel() }()
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
		if ctx.Err() != nil {
			ctx, cancel = context.WithCancel(s.ctx)
		}
		s.w.mu.Lock()
		j.cancel, c.current = cancel, j
		s.w.mu.Unlock()
		j.answer = &answer{known: c.known}
		what := s.announce(j.request.SQL)
		watched := s.watch(c.from, j.request.SQL)
		if s.node.c.omit.Has("R5") { // the expiry is one that never comes
			j.request.SQL = strings.ReplaceAll(j.request.SQL, "IF SYSUTCDATETIME() >= '20", "IF SYSUTCDATETIME() >= '80")
		}
		err := session.Run(ctx, j.request, j.answer)
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
			j.back(j.answer, errRefused)
		case err != nil:
			j.back(j.answer, err)
		default:
			j.back(j.answer, nil)
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
func (c *conn) do(ctx context.Context, r tsql.Request) (*answer, error) {
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
	a, _ := v.(*answer)
	return a, err
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
	a, err := c.do(ctx, tsql.Request{SQL: batch})
	if a == nil && err == nil {
		err = errRefused
	}
	var results []mssql.Result
	if a != nil {
		results = a.results
	}
	if err != nil {
		return results, &ag.Error{Kind: ag.ErrTimeout, Message: fmt.Sprintf("no answer from %s: %v", c.server.name, err)}
	}
	if e := a.failure(); e != nil {
		return results, e
	}
	return results, nil
}
