package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/microsoft/go-mssqldb" // the driver of Cluster.Open

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// SAPassword is sa's password in a Cluster.
const SAPassword = "Str0ng;Passw0rd{}"

// ClusterOptions change a Cluster; the zero value is good.
type ClusterOptions struct {
	// Name is the prefix of the server names: <Name>-0, <Name>-1 …; default mssql.
	Name string
	// Change is applied to the configuration of instance i at each of its starts.
	Change func(i int, c *Config)
}

// Cluster is a number of instances in one process, on loopback. They share nothing but
// the network: the test makes the availability group by T-SQL.
type Cluster struct {
	Nodes   []*Node
	options ClusterOptions
	mu      sync.Mutex
	cut     map[[2]int]bool // directed: from, to
	conns   map[*cutConn]struct{}
}

// Node is one place for an instance: a name, a volume and its ports stay over restarts.
type Node struct {
	Index        int
	Name         string // @@SERVERNAME
	Dir          string
	Port         int // for clients
	EndpointPort int // free for CREATE ENDPOINT
	cluster      *Cluster
	mu           sync.Mutex
	server       *Server
}

// StartCluster starts n instances and stops them at the end of the test.
func StartCluster(t testing.TB, n int, o ClusterOptions) *Cluster {
	t.Helper()
	if o.Name == "" {
		o.Name = "mssql"
	}
	c := &Cluster{options: o, cut: map[[2]int]bool{}, conns: map[*cutConn]struct{}{}}
	ports := freePorts(t, 2*n)
	for i := range n {
		node := &Node{
			Index: i, Name: o.Name + "-" + strconv.Itoa(i), Dir: filepath.Join(t.TempDir(), strconv.Itoa(i)),
			Port: ports[2*i], EndpointPort: ports[2*i+1], cluster: c,
		}
		c.Nodes = append(c.Nodes, node)
		if err := node.Start(); err != nil {
			t.Fatalf("start %s: %v", node.Name, err)
		}
		t.Cleanup(node.Kill)
	}
	return c
}

// freePorts finds ports that nobody listens on now.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			t.Fatalf("listener address %v", l.Addr())
		}
		ports = append(ports, a.Port)
	}
	return ports
}

// Start starts the node's instance on its volume.
func (n *Node) Start() error {
	config := Config{
		Dir:     n.Dir,
		Address: "127.0.0.1:" + strconv.Itoa(n.Port),
		Dial:    n.cluster.dialer(n.Index),
		Engine: engine.Config{
			ServerName: n.Name, SAPassword: SAPassword, HADR: true, Seed: uint64(n.Index + 1), Timings: engine.DefaultTimings(),
		},
	}
	if n.cluster.options.Change != nil {
		n.cluster.options.Change(n.Index, &config)
	}
	// The port of a killed instance may be in use for another moment.
	for deadline := time.Now().Add(10 * time.Second); ; {
		s, err := Start(config)
		if err == nil {
			n.mu.Lock()
			n.server = s
			n.mu.Unlock()
			return nil
		}
		if time.Now().After(deadline) || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}

// Server is the running instance, nil after Kill.
func (n *Node) Server() *Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// Kill ends the instance as SIGKILL does. It is harmless when none runs.
func (n *Node) Kill() {
	n.mu.Lock()
	s := n.server
	n.server = nil
	n.mu.Unlock()
	if s != nil {
		s.Kill()
	}
}

// Stop ends the instance cleanly.
func (n *Node) Stop(ctx context.Context) error {
	n.mu.Lock()
	s := n.server
	n.server = nil
	n.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Stop(ctx)
}

// EndpointURL is what the node is called in REPLICA ON.
func (n *Node) EndpointURL() string { return "TCP://127.0.0.1:" + strconv.Itoa(n.EndpointPort) }

// DSN is a connection string for sa; options are added to its query.
func (n *Node) DSN(options url.Values) string {
	query := url.Values{"TrustServerCertificate": {"true"}, "dial timeout": {"5"}}
	for k, v := range options {
		query[k] = v
	}
	u := url.URL{
		Scheme: "sqlserver", User: url.UserPassword("sa", SAPassword),
		Host: "127.0.0.1:" + strconv.Itoa(n.Port), RawQuery: query.Encode(),
	}
	return u.String()
}

// Open gives a pool of connections for sa, closed at the end of the test.
func (n *Node) Open(t testing.TB, options url.Values) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlserver", n.DSN(options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Replicas are the nodes as MakeGroup wants them.
func (c *Cluster) Replicas(t testing.TB) []Replica {
	t.Helper()
	var out []Replica
	for _, n := range c.Nodes {
		out = append(out, Replica{Name: n.Name, EndpointURL: n.EndpointURL(), EndpointPort: n.EndpointPort, DB: n.Open(t, nil)})
	}
	return out
}

// MakeGroup makes an availability group of all nodes; the first is its primary.
func (c *Cluster) MakeGroup(t testing.TB, g Group) []Replica {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	replicas := c.Replicas(t)
	if err := MakeGroup(ctx, replicas, g); err != nil {
		t.Fatal(err)
	}
	return replicas
}

// Cut stops the traffic between the endpoints of two nodes, in both directions, without
// closing connections: as a network that drops packets.
func (c *Cluster) Cut(i, j int) { c.setCut(i, j, true) }

// Heal lets traffic through again. Connections that were cut are closed, since TCP would
// have given them up or would resend.
func (c *Cluster) Heal(i, j int) { c.setCut(i, j, false) }

func (c *Cluster) setCut(i, j int, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pair := range [][2]int{{i, j}, {j, i}} {
		c.cut[pair] = cut
		for conn := range c.conns {
			if conn.from == pair[0] && conn.to == pair[1] {
				conn.set(cut)
			}
		}
	}
}

var errCut = errors.New("the network is cut")

func (c *Cluster) dialer(from int) Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to := -1
		for _, n := range c.Nodes {
			if address == "127.0.0.1:"+strconv.Itoa(n.EndpointPort) {
				to = n.Index
			}
		}
		c.mu.Lock()
		cut := c.cut[[2]int{from, to}]
		c.mu.Unlock()
		if cut {
			<-ctx.Done()
			return nil, fmt.Errorf("dial %s: %w: %w", address, errCut, ctx.Err())
		}
		var d net.Dialer
		raw, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := &cutConn{Conn: raw, from: from, to: to}
		conn.open.L = &conn.mu
		conn.forget = func() {
			c.mu.Lock()
			delete(c.conns, conn)
			c.mu.Unlock()
		}
		c.mu.Lock()
		c.conns[conn] = struct{}{}
		c.mu.Unlock()
		return conn, nil
	}
}

// cutConn holds back what passes while its pair of nodes is cut.
type cutConn struct {
	net.Conn
	from, to int
	forget   func()
	once     sync.Once

	mu     sync.Mutex
	open   sync.Cond
	cut    bool
	closed bool
}

func (c *cutConn) set(cut bool) {
	c.mu.Lock()
	was := c.cut
	c.cut = cut
	c.mu.Unlock()
	if was && !cut {
		_ = c.Conn.Close()
	}
	c.open.Broadcast()
}

// pass waits while the connection is cut.
func (c *cutConn) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.cut && !c.closed {
		c.open.Wait()
	}
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.pass()
	return n, err
}

func (c *cutConn) Write(b []byte) (int, error) {
	c.pass()
	return c.Conn.Write(b)
}

func (c *cutConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.open.Broadcast()
	c.once.Do(func() { go c.forget() })
	return c.Conn.Close()
}
