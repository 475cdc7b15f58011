package tsql_test

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// vcluster runs instances in virtual time with sessions as coroutines: a connection is a function
// call, and Wait and Sleep give the turn back to the scheduler.
type vcluster struct {
	now    time.Time
	events vheap
	seq    uint64
	nodes  map[string]*vnode
	order  []*vnode
	links  []*vlink
	nextID engine.LinkID
	cut    map[string]bool   // isolated nodes
	files  map[string][]byte // one volume for all, so that certificates can be exchanged
}

// vnode is one server; it is the engine.Host of its sessions.
type vnode struct {
	c        *vcluster
	name     string
	cfg      engine.Config
	disk     *engine.Disk
	in       *engine.Instance
	run      int
	dead     bool
	listen   bool
	wake     time.Time
	done     map[engine.WaitID]error
	waiting  map[engine.WaitID]*vtask
	sessions map[engine.SessionID]*tsql.Session
	tasks    map[engine.SessionID]*vtask
	log      []string
	files    map[string][]byte
	current  *vtask
}

// vtask is a request that runs as a coroutine.
type vtask struct {
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	cancel context.CancelFunc
	ended  bool
}

type vlink struct {
	a, b   *vnode
	ia, ib engine.LinkID
	ra, rb int
	open   bool
}

type vevent struct {
	at  time.Time
	seq uint64
	run func()
}

type vheap []vevent

func (h vheap) Len() int { return len(h) }
func (h vheap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].seq < h[j].seq
}
func (h vheap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *vheap) Push(x any)   { *h = append(*h, x.(vevent)) }
func (h *vheap) Pop() any {
	o := *h
	e := o[len(o)-1]
	*h = o[:len(o)-1]
	return e
}

func newVCluster() *vcluster {
	return &vcluster{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), nodes: map[string]*vnode{}, nextID: 2, cut: map[string]bool{}, files: map[string][]byte{}}
}

func (c *vcluster) at(t time.Time, f func()) {
	c.seq++
	heap.Push(&c.events, vevent{t, c.seq, f})
}

func (c *vcluster) add(name string, change func(*engine.Config)) *vnode {
	n := &vnode{c: c, name: name, disk: engine.NewDisk(), files: c.files}
	n.cfg = engine.Config{ServerName: name, Seed: 1, SAPassword: "Passw0rd!", HADR: true}
	if change != nil {
		change(&n.cfg)
	}
	c.nodes[name] = n
	c.order = append(c.order, n)
	n.start()
	return n
}

func (n *vnode) start() {
	n.run++
	n.dead, n.listen, n.wake = false, false, time.Time{}
	n.done, n.waiting = map[engine.WaitID]error{}, map[engine.WaitID]*vtask{}
	n.sessions, n.tasks = map[engine.SessionID]*tsql.Session{}, map[engine.SessionID]*vtask{}
	n.in = engine.Open(n.cfg, n.disk, n.c.now)
	n.apply()
}

func (n *vnode) kill() {
	if n.dead {
		return
	}
	n.run++
	n.dead, n.listen = true, false
	for _, s := range n.sessions {
		s.Kill()
	}
	for _, t := range n.tasks {
		t.cancel()
	}
	for _, l := range n.c.links {
		if l.open && (l.a == n || l.b == n) {
			n.c.shut(l, n)
		}
	}
}

func (c *vcluster) shut(l *vlink, by *vnode) {
	l.open = false
	other, id, run := l.b, l.ib, l.rb
	if by == l.b {
		other, id, run = l.a, l.ia, l.ra
	}
	if c.cut[l.a.name] || c.cut[l.b.name] {
		return
	}
	c.at(c.now.Add(time.Millisecond), func() { other.input(run, func(in *engine.Instance) { in.LinkDown(c.now, id, "") }) })
}

func (n *vnode) input(run int, f func(in *engine.Instance)) {
	if n.dead || n.run != run {
		return
	}
	f(n.in)
	n.apply()
}

// apply carries out the effects, in order.
func (n *vnode) apply() {
	c := n.c
	for {
		l := n.in.TakeEffects()
		if len(l) == 0 {
			break
		}
		for _, e := range l {
			switch e := e.(type) {
			case engine.Persist:
				n.disk.Apply(e.Records...)
			case engine.Send:
				c.send(n, e)
			case engine.Dial:
				c.dial(n, e)
			case engine.CloseLink:
				for _, l := range c.links {
					if l.open && (l.a == n && l.ia == e.Link || l.b == n && l.ib == e.Link) {
						c.shut(l, n)
					}
				}
			case engine.Listen:
				n.listen = e.Open
			case engine.Complete:
				n.done[e.Wait] = e.Err
				if t := n.waiting[e.Wait]; t != nil {
					c.at(c.now, t.step)
				}
			case engine.Kill:
				for _, id := range e.Sessions {
					if s := n.sessions[id]; s != nil {
						s.Kill()
					}
					if t := n.tasks[id]; t != nil {
						t.cancel()
						c.at(c.now, t.step)
					}
				}
			case engine.LogLine:
				n.log = append(n.log, e.Text)
			case engine.Exit:
				n.kill()
				return
			}
		}
	}
	if w := n.in.NextWake(); !w.IsZero() && (n.wake.IsZero() || w.Before(n.wake)) {
		n.wake = w
		run := n.run
		c.at(w, func() {
			if n.wake.Equal(w) {
				n.wake = time.Time{}
			}
			n.input(run, func(in *engine.Instance) { in.Tick(c.now) })
		})
	}
}

func (c *vcluster) send(n *vnode, e engine.Send) {
	for _, l := range c.links {
		if !l.open {
			continue
		}
		to, id, run := l.b, l.ib, l.rb
		switch {
		case l.a == n && l.ia == e.Link:
		case l.b == n && l.ib == e.Link:
			to, id, run = l.a, l.ia, l.ra
		default:
			continue
		}
		c.at(c.now.Add(time.Millisecond), func() {
			if l.open && !c.cut[l.a.name] && !c.cut[l.b.name] {
				to.input(run, func(in *engine.Instance) { in.Receive(c.now, id, e.Message) })
			}
		})
		return
	}
}

func (c *vcluster) dial(n *vnode, e engine.Dial) {
	run := n.run
	host := strings.TrimPrefix(strings.ToLower(e.URL), "tcp://")
	host, _, _ = strings.Cut(host, ":")
	to := c.nodes[host]
	if to != nil && (c.cut[n.name] || c.cut[to.name]) {
		return
	}
	c.at(c.now.Add(time.Millisecond), func() {
		if to == nil || to.dead || !to.listen || n.dead || n.run != run {
			n.input(run, func(in *engine.Instance) { in.LinkFailed(c.now, e.Link, 10061, "connection refused") })
			return
		}
		mine, ok1 := n.in.EndpointIdentity()
		theirs, ok2 := to.in.EndpointIdentity()
		if !ok1 || !ok2 {
			n.input(run, func(in *engine.Instance) { in.LinkFailed(c.now, e.Link, 10061, "no certificate") })
			return
		}
		l := &vlink{a: n, b: to, ia: e.Link, ib: c.nextID, ra: n.run, rb: to.run, open: true}
		c.nextID += 2
		c.links = slices.DeleteFunc(c.links, func(l *vlink) bool { return !l.open })
		c.links = append(c.links, l)
		to.input(to.run, func(in *engine.Instance) { in.LinkUp(c.now, l.ib, mine.DER) })
		n.input(run, func(in *engine.Instance) { in.LinkUp(c.now, l.ia, theirs.DER) })
	})
}

// pass lets time pass until end, or until stop is true.
func (c *vcluster) pass(end time.Time, stop func() bool) {
	for !stop() && len(c.events) > 0 && !c.events[0].at.After(end) {
		e := heap.Pop(&c.events).(vevent)
		c.now = e.at
		e.run()
	}
	if !stop() {
		c.now = end
	}
}

// Do implements engine.Host.
func (n *vnode) Do(f func(now time.Time, in *engine.Instance)) {
	f(n.c.now, n.in)
	if !n.dead {
		n.apply()
	}
}

// Now implements engine.Host.
func (n *vnode) Now() time.Time { return n.c.now }

var errNoTask = errors.New("a session outside of a task cannot wait")

// Wait implements engine.Host.
func (n *vnode) Wait(ctx context.Context, id engine.WaitID) error {
	if id == 0 {
		return nil
	}
	t := n.current
	if t == nil {
		return errNoTask
	}
	n.waiting[id] = t
	defer delete(n.waiting, id)
	for {
		if err, ok := n.done[id]; ok {
			delete(n.done, id)
			return err
		}
		if err := ctx.Err(); err != nil {
			if !n.dead {
				n.in.CancelWait(n.c.now, id)
				n.apply()
			}
			return err
		}
		t.park(n)
	}
}

// Sleep implements engine.Host.
func (n *vnode) Sleep(ctx context.Context, d time.Duration) error {
	t := n.current
	if t == nil {
		return errNoTask
	}
	end := n.c.now.Add(d)
	n.c.at(end, t.step)
	for n.c.now.Before(end) {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.park(n)
	}
	return nil
}

// ReadFile implements tsql.Files.
func (n *vnode) ReadFile(path string) ([]byte, error) {
	if b, ok := n.files[path]; ok {
		return b, nil
	}
	return nil, errors.New("no such file")
}

// WriteFile implements tsql.Files.
func (n *vnode) WriteFile(path string, b []byte) error {
	n.files[path] = append([]byte(nil), b...)
	return nil
}

// CreateFile implements tsql.Files.
func (n *vnode) CreateFile(path string, b []byte) error {
	if _, ok := n.files[path]; ok {
		return errors.New("file exists")
	}
	n.files[path] = b
	return nil
}

func (t *vtask) park(n *vnode) {
	t.yield(struct{}{})
	n.current = t
}

func (t *vtask) step() {
	if t.ended {
		return
	}
	if _, more := t.resume(); !more {
		t.ended = true
	}
}

// login opens a session.
func (n *vnode) login(r engine.LoginRequest) (*tsql.Session, error) {
	s, err := tsql.NewSession(n, r)
	if err == nil {
		n.sessions[s.ID()] = s
	}
	return s, err
}

// request is a running or finished request.
type request struct {
	task *vtask
	res  tsql.Results
	err  error
}

// begin starts a request; it runs until it first has to wait.
func (n *vnode) begin(s *tsql.Session, r tsql.Request) *request {
	q := &request{}
	ctx, cancel := context.WithCancel(context.Background())
	t := &vtask{cancel: cancel}
	q.task = t
	t.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		n.current = t
		q.err = s.Run(ctx, r, &q.res)
		cancel()
	})
	n.tasks[s.ID()] = t
	t.step()
	return q
}

// exec runs a request to its end, at most limit of virtual time.
func (n *vnode) exec(s *tsql.Session, r tsql.Request, limit time.Duration) (*request, error) {
	q := n.begin(s, r)
	n.c.pass(n.c.now.Add(limit), func() bool { return q.task.ended })
	if !q.task.ended {
		return q, fmt.Errorf("still running after %v of virtual time", limit)
	}
	return q, nil
}

// sql runs a batch as sa on a session of its own and fails the test on any error.
func (n *vnode) sql(t testing.TB, text string) *tsql.Results {
	t.Helper()
	s, err := n.login(engine.LoginRequest{User: "sa", Password: "Passw0rd!"})
	if err != nil {
		t.Fatalf("%s: login: %v", n.name, err)
	}
	defer s.Close()
	q, err := n.exec(s, tsql.Request{SQL: text}, 10*time.Minute)
	if err == nil {
		err = q.err
	}
	if err == nil {
		err = q.res.Err()
	}
	if err != nil {
		t.Fatalf("%s: %s: %v", n.name, text, err)
	}
	return &q.res
}
