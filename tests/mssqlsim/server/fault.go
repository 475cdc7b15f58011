package server

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// errCrash ends the instance at a point that a fault asked for.
var errCrash = errors.New("crash by fault")

// fault follows a HostFault effect; the applier calls it.
func (s *Server) fault(e engine.HostFault) {
	on := e.Args["on"] != "0"
	switch e.Kind {
	case "freeze":
		if d, err := time.ParseDuration(e.Args["for"]); err == nil {
			s.freeze(d)
		}
	case "droplinks":
		s.gates.links.close(on)
	case "delaylinks":
		if d, err := time.ParseDuration(e.Args["delay"]); err == nil {
			s.gates.links.slow(d)
		}
	case "crashat":
		n, err := strconv.Atoi(e.Args["after"])
		if err != nil || n < 1 {
			n = 1
		}
		s.host.crash.set(e.Args["point"], n)
	}
}

// freeze stops everything that the instance does, as SIGSTOP would: the kernel goes on
// accepting connections, no byte comes out, timers stand still and catch up afterwards.
func (s *Server) freeze(d time.Duration) {
	s.gates.process.close(true)
	go func() {
		s.host.mu.Lock()
		time.Sleep(d)
		s.host.mu.Unlock()
		s.gates.process.close(false)
	}()
}

// gates hold traffic back: process all of it, links that of the endpoint.
type gates struct{ process, links gate }

// gate lets bytes pass while it is open. The zero gate is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // not nil while closed; closed when the gate opens
	gone   bool          // the instance ends: everything may fail
	delay  time.Duration
}

func (g *gate) close(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.opened == nil && !g.gone:
		g.opened = make(chan struct{})
	case !shut && g.opened != nil:
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) slow(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = d
}

// release opens the gate for good.
func (g *gate) release() {
	g.close(false)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone, g.delay = true, 0
}

func (g *gate) pass() {
	for {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened == nil {
			return
		}
		<-opened
	}
}

func (g *gate) wait() {
	g.mu.Lock()
	d := g.delay
	g.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
}

// gatedConn passes its bytes through gates.
type gatedConn struct {
	net.Conn
	gates []*gate
}

func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for _, g := range c.gates {
		g.pass()
	}
	return n, err
}

func (c *gatedConn) Write(b []byte) (int, error) {
	for _, g := range c.gates {
		g.pass()
		g.wait()
	}
	return c.Conn.Write(b)
}

type gatedListener struct {
	net.Listener
	gates []*gate
}

func (l gatedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: c, gates: l.gates}, nil
}

// crashPoint is where the instance shall end: at the n-th write from now.
type crashPoint struct {
	mu    sync.Mutex
	point string
	left  int
}

func (c *crashPoint) set(point string, after int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.point, c.left = point, after
}

// due counts a write and tells the point if it is this one's turn.
func (c *crashPoint) due() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return ""
	}
	if c.left--; c.left > 0 {
		return ""
	}
	return c.point
}
