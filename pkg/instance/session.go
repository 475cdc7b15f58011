//go:build linux

package instance

import (
	"context"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// localSession is one session with the own server, opened when needed and kept until
// it fails.
type localSession struct {
	m    *manager
	conn mssql.Conn
	// question is the batch that read sends every time.
	question string
}

func (s *localSession) open(ctx context.Context) (mssql.Conn, error) {
	if s.conn != nil {
		return s.conn, nil
	}
	password, err := readPassword(s.m.o.OperatorPasswordFile)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	c, err := s.m.dial(ctx, operatorLogin, password)
	if err != nil {
		return nil, err
	}
	s.conn = c
	return c, nil
}

func (s *localSession) close() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// read asks for the local state; the answer must come within q.
func (s *localSession) read(ctx context.Context) (localState, error) {
	c, err := s.open(ctx)
	if err != nil {
		return localState{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.m.timing().Q)
	defer cancel()
	if s.question == "" {
		s.question = tsql.ManagerState(s.m.cfg.Group)
	}
	return readLocal(ctx, c, s.question, s.m.clock)
}

// renew sends the renewal that was entered as sent at now, with its expiry (R5).
func (s *localSession) renew(ctx context.Context, local localState, now time.Duration) error {
	c, err := s.open(ctx)
	if err != nil {
		return err
	}
	t := s.m.timing()
	ctx, cancel := context.WithTimeout(ctx, t.Q)
	defer cancel()
	guard := tsql.Guard{Group: s.m.cfg.Group, Until: local.expiry(now, t.Q)}
	return mssql.ExecGuarded(ctx, c, tsql.RenewWriteLease(guard, t.L))
}
