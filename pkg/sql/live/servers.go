package live

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// servers opens a new session each time.
type servers struct {
	dial        DialPod
	credentials *credentials
	app         string
}

// Connect implements agops.Servers: to the pod's address, with the server verified
// by the replica's name, so that another server at a reused address is refused.
func (s servers) Connect(ctx context.Context, key ag.Key, replica string, pod ag.Pod) (mssql.Conn, error) {
	m, err := s.credentials.get(ctx, key)
	if err != nil {
		return nil, &ag.Error{Kind: ag.ErrUnreachable, Message: err.Error()}
	}
	port := pod.Port
	if port == 0 {
		port = v1alpha1.PortTDS
	}
	dialer := mssql.Dialer{
		Net:     podNet{dial: s.dial, namespace: key.Namespace, pod: replica, ip: pod.IP, port: port},
		AppName: s.app,
	}
	c, err := dialer.Dial(ctx, net.JoinHostPort(pod.IP, strconv.Itoa(int(port))), mssql.Login{
		User:     Login,
		Password: func(context.Context) (string, error) { return m.password, nil },
		TLS:      &tls.Config{RootCAs: m.roots, ServerName: state.HostName(key.Namespace, key.Name, replica), MinVersion: tls.VersionTLS12},
	})
	var e *ag.Error
	if errors.As(err, &e) && e.Kind == ag.ErrLogin {
		s.credentials.forget(key)
	}
	return c, err
}

// managers asks instance managers.
type managers struct {
	dial        DialPod
	credentials *credentials
}

func (m managers) client(ctx context.Context, key ag.Key, replica string, pod ag.Pod) (*managerapi.Client, managerapi.Peer, error) {
	mat, err := m.credentials.get(ctx, key)
	if err != nil {
		return nil, managerapi.Peer{}, err
	}
	dial := podNet{dial: m.dial, namespace: key.Namespace, pod: replica, ip: pod.IP, port: v1alpha1.PortManager}
	return &managerapi.Client{
		Credentials: managerapi.Material{Certificate: mat.manager, Roots: mat.roots}, Dial: dial.DialContext,
	}, managerapi.Peer{Name: replica, Address: net.JoinHostPort(pod.IP, strconv.Itoa(v1alpha1.PortManager))}, nil
}

// Status implements observe.Managers.
func (m managers) Status(ctx context.Context, key ag.Key, replica string, pod ag.Pod) (ag.Manager, error) {
	c, peer, err := m.client(ctx, key, replica, pod)
	if err != nil {
		return ag.Manager{Reach: ag.ReachError, Error: err.Error()}, err
	}
	return c.Status(ctx, peer)
}

// Seal implements agops.Managers.
func (m managers) Seal(ctx context.Context, key ag.Key, replica string, pod ag.Pod, o agops.SealOrder) error {
	c, peer, err := m.client(ctx, key, replica, pod)
	if err != nil {
		return err
	}
	answer, err := c.Seal(ctx, peer, managerapi.SealRequest{AGUID: o.AGUID, Epoch: o.Epoch, Version: o.Version})
	if err != nil {
		return err
	}
	if !answer.Sealed {
		return errors.New("refused: " + answer.Reason)
	}
	return nil
}

// pool keeps one idle session a pod between passes: an observation every two seconds
// shall not cost a login each.
type pool struct {
	fresh servers
	clock clock.PassiveClock

	mu     sync.Mutex
	idle   map[string]idleConn
	closed bool
}

type idleConn struct {
	conn  mssql.Conn
	since time.Time
}

// idleFor is how long a session is worth keeping.
const idleFor = 5 * time.Minute

func newPool(fresh servers, c clock.PassiveClock) *pool {
	return &pool{fresh: fresh, clock: c, idle: map[string]idleConn{}}
}

// Connect implements observe.Servers.
func (p *pool) Connect(ctx context.Context, key ag.Key, replica string, pod ag.Pod) (mssql.Conn, error) {
	name := key.Namespace + "/" + replica + "/" + pod.UID + "/" + pod.IP
	if c := p.take(name); c != nil {
		return &pooled{Conn: c, pool: p, name: name}, nil
	}
	c, err := p.fresh.Connect(ctx, key, replica, pod)
	if err != nil {
		return nil, err
	}
	return &pooled{Conn: c, pool: p, name: name}, nil
}

// take hands out the idle session of a pod, and ends those that nobody has asked for.
func (p *pool) take(name string) mssql.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other, i := range p.idle {
		if other != name && p.clock.Since(i.since) > idleFor {
			delete(p.idle, other)
			_ = i.conn.Close()
		}
	}
	i, ok := p.idle[name]
	if !ok {
		return nil
	}
	delete(p.idle, name)
	return i.conn
}

func (p *pool) put(name string, c mssql.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := p.idle[name]; taken || p.closed {
		_ = c.Close()
		return
	}
	p.idle[name] = idleConn{conn: c, since: p.clock.Now()}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for name, i := range p.idle {
		delete(p.idle, name)
		_ = i.conn.Close()
	}
}

// pooled goes back to the pool when it is closed, unless it has failed.
type pooled struct {
	mssql.Conn
	pool   *pool
	name   string
	failed bool
}

func (c *pooled) Query(ctx context.Context, batch string) ([]mssql.Result, error) {
	r, err := c.Conn.Query(ctx, batch)
	c.failed = c.failed || err != nil
	return r, err
}

func (c *pooled) Exec(ctx context.Context, batch string) error {
	_, err := c.Query(ctx, batch)
	return err
}

func (c *pooled) Close() error {
	if c.failed {
		return c.Conn.Close()
	}
	c.pool.put(c.name, c.Conn)
	return nil
}
