//go:build linux

package simulation

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// server is one process of a simulated SQL Server; it implements engine.Host.
type server struct {
	*proc
	node   *node
	in     *engine.Instance
	role   string // as its error log tells: PRIMARY, SECONDARY, RESOLVING
	listen bool
	wake   time.Time
	// reseating: SET (ROLE = SECONDARY) is being run, by the product.
	reseating bool
	done      map[engine.WaitID]error
	waits     map[engine.WaitID]chan error
	conns     map[engine.SessionID]*conn
	links     map[engine.LinkID]*link
}

// startServer opens the node's volume; mu is held.
func (n *node) startServer() *server {
	w := n.c.w
	s := &server{
		proc: w.newProc(n.name+"/sql", n.sqlStation(), n.host), node: n, done: map[engine.WaitID]error{},
		waits: map[engine.WaitID]chan error{}, conns: map[engine.SessionID]*conn{}, links: map[engine.LinkID]*link{},
	}
	n.server = s
	s.in = engine.Open(n.config, n.disk, n.host.local())
	s.apply()
	return s
}

// end kills the process; polite tells its peers, as the kernel of a living machine does. mu is held.
func (s *server) end(polite bool) {
	if s.dead {
		return
	}
	s.proc.kill()
	s.listen = false
	s.setRole("")
	for _, c := range s.conns {
		c.lost()
	}
	for _, id := range sortedKeys(s.links) {
		s.links[id].shut(s, polite)
	}
}

// input gives something to the engine; mu is held.
func (s *server) input(f func(in *engine.Instance)) {
	s.arrive(func() {
		if s.dead {
			return
		}
		f(s.in)
		s.apply()
	})
}

func (s *server) local() time.Time { return s.host.local() }

// apply carries out the effects in order; mu is held.
func (s *server) apply() {
	w := s.w
	for {
		l := s.in.TakeEffects()
		if len(l) == 0 {
			break
		}
		for _, e := range l {
			switch e := e.(type) {
			case engine.Persist:
				s.node.disk.Apply(e.Records...)
			case engine.Send:
				if l := s.links[e.Link]; l != nil {
					l.send(s, e.Message)
				}
			case engine.Dial:
				s.dialEndpoint(e)
			case engine.CloseLink:
				if l := s.links[e.Link]; l != nil {
					l.shut(s, true)
				}
			case engine.Listen:
				s.listen = e.Open
			case engine.Complete:
				if ch := s.waits[e.Wait]; ch != nil {
					ch <- e.Err
					delete(s.waits, e.Wait)
				} else {
					s.done[e.Wait] = e.Err
				}
			case engine.Kill:
				for _, id := range e.Sessions {
					if c := s.conns[id]; c != nil {
						c.killed()
					}
				}
			case engine.LogLine:
				s.readLog(e)
			case engine.Exit:
				w.fact(s.name, "exits: %s", e.Reason)
				s.end(true)
				s.node.containerEnded("Error", int32(e.Code)) //nolint:gosec // an exit code
				return
			}
		}
	}
	s.arm()
}

// arm sets the timer for the engine's next wake; mu is held.
func (s *server) arm() {
	next := s.in.NextWake()
	if s.dead || next.IsZero() || !s.wake.IsZero() && !next.Before(s.wake) {
		return
	}
	s.wake = next
	s.w.after(next.Sub(s.local()), func() {
		if !s.wake.Equal(next) {
			return
		}
		s.wake = time.Time{}
		s.input(func(in *engine.Instance) { in.Tick(s.local()) })
	})
}

// readLog follows the role from the error log (message 19406).
func (s *server) readLog(l engine.LogLine) {
	if l.Number == 19494 { // a seeding has failed, and will be retried
		s.seedingFailed()
	}
	if l.Number != 19406 && l.Number != 0 {
		return
	}
	_, to, ok := strings.Cut(l.Text, "' has changed from '")
	if !ok {
		return
	}
	_, to, _ = strings.Cut(to, "' to '")
	to, _, _ = strings.Cut(to, "'")
	switch to {
	case "PRIMARY_NORMAL":
		s.setRole("PRIMARY")
	case "SECONDARY_NORMAL":
		s.setRole("SECONDARY")
	case "RESOLVING_NORMAL":
		s.setRole("RESOLVING")
	}
}

func (s *server) setRole(role string) {
	if s.role == role {
		return
	}
	s.role = role
	if role != "" {
		s.w.fact(s.name, "is %s", role)
	}
	s.node.c.roleChanged(s)
}

// Do implements engine.Host.
func (s *server) Do(f func(now time.Time, in *engine.Instance)) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	f(s.local(), s.in)
	if s.dead {
		s.in.TakeEffects() // its answers reach nobody
		return
	}
	s.apply()
}

// Now implements engine.Host.
func (s *server) Now() time.Time {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.local()
}

var errServerDead = errors.New("the server is dead")

// Wait implements engine.Host.
func (s *server) Wait(ctx context.Context, id engine.WaitID) error {
	if id == 0 {
		return nil
	}
	s.w.mu.Lock()
	if err, ok := s.done[id]; ok {
		delete(s.done, id)
		s.w.mu.Unlock()
		return err
	}
	ch := make(chan error, 1)
	s.waits[id] = ch
	s.w.mu.Unlock()
	select {
	case err := <-ch:
		return err
	case <-s.ctx.Done():
		return errServerDead
	case <-ctx.Done():
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	select {
	case err := <-ch:
		return err
	default:
	}
	delete(s.waits, id)
	if !s.dead {
		s.in.CancelWait(s.local(), id)
		s.apply()
	}
	return ctx.Err()
}

// Sleep implements engine.Host.
func (s *server) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		if !s.gate() {
			return errServerDead
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return errServerDead
	}
}
