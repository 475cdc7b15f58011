package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// cluster runs instances in virtual time: a heap of events, a network with delays, partitions and
// resets, and one disk an instance.
type cluster struct {
	t      testing.TB
	now    time.Time
	events eventHeap
	seq    uint64
	nodes  []*node
	delay  time.Duration
	trace  []string // when tracing
	traced bool
	links  []*wire
	nextID engine.LinkID
	cut    map[[2]string]bool
	lanes  bool // a message came on another lane than 0
	// crashAt ends a node at its n-th Persist, before (even) or after (odd half) it is durable.
	onPersist func(n *node, before bool) bool
}

type node struct {
	c      *cluster
	name   string
	cfg    engine.Config
	disk   *engine.Disk
	in     *engine.Instance
	run    int // counts starts: events of an earlier run are void
	frozen bool
	thawed []func()
	listen bool
	wakeAt time.Time
	done   map[engine.WaitID]error
	killed map[engine.SessionID]bool
	lines  []string
	dead   bool
	// record, if set, takes every durable record in its encoded form; messages then go through the codec too.
	record *bytes.Buffer
}

// wire is one link between two nodes.
type wire struct {
	a, b   *node
	ia, ib engine.LinkID
	ra, rb int
	open   bool
	last   [2][2]time.Time // FIFO per direction and lane
	held   []func()        // deliveries that a partition keeps back, as TCP would
}

type event struct {
	at  time.Time
	seq uint64
	run func()
}

type eventHeap []event

func (h eventHeap) less(i, j int) bool {
	if d := h[i].at.Compare(h[j].at); d != 0 {
		return d < 0
	}
	return h[i].seq < h[j].seq
}

// push and pop keep the earliest event first. They are written out because container/heap boxes every
// element, which would dominate the benchmark.
func (h *eventHeap) push(e event) {
	*h = append(*h, e)
	l := *h
	for i := len(l) - 1; i > 0; {
		p := (i - 1) / 2
		if !l.less(i, p) {
			return
		}
		l[i], l[p] = l[p], l[i]
		i = p
	}
}

func (h *eventHeap) pop() event {
	l := *h
	e := l[0]
	n := len(l) - 1
	l[0], l[n] = l[n], event{}
	l = l[:n]
	*h = l
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			return e
		}
		if c+1 < n && l.less(c+1, c) {
			c++
		}
		if !l.less(c, i) {
			return e
		}
		l[i], l[c] = l[c], l[i]
		i = c
	}
}

func newCluster(t testing.TB) *cluster {
	return &cluster{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), delay: time.Millisecond, cut: map[[2]string]bool{}, nextID: 2}
}

func (c *cluster) at(t time.Time, run func()) {
	c.seq++
	c.events.push(event{t, c.seq, run})
}

// add makes a server with an empty volume and starts it.
func (c *cluster) add(name string, change ...func(*engine.Config)) *node {
	cfg := engine.Config{ServerName: name, Seed: 1, SAPassword: "Passw0rd!", HADR: true}
	for _, f := range change {
		f(&cfg)
	}
	n := &node{c: c, name: name, cfg: cfg, disk: engine.NewDisk()}
	c.nodes = append(c.nodes, n)
	n.start()
	return n
}

func (n *node) start() {
	n.run++
	n.dead, n.listen = false, false
	n.done, n.killed = map[engine.WaitID]error{}, map[engine.SessionID]bool{}
	n.wakeAt = time.Time{}
	n.in = engine.Open(n.cfg, n.disk, n.c.now)
	n.apply()
}

// kill is kill -9: everything but the disk is gone, its connections are reset.
func (n *node) kill() {
	n.run++
	n.dead, n.listen = true, false
	for _, w := range n.c.links {
		if w.open && (w.a == n || w.b == n) {
			n.c.shut(w, n)
		}
	}
}

// shut ends a wire; the other end learns of it.
func (c *cluster) shut(w *wire, by *node) {
	w.open = false
	other, id, run := w.b, w.ib, w.rb
	if by == w.b {
		other, id, run = w.a, w.ia, w.ra
	}
	if c.isCut(w.a, w.b) {
		return
	}
	c.at(c.now.Add(c.delay), func() {
		other.do(run, func(in *engine.Instance) { in.LinkDown(c.now, id, "") })
	})
}

func key(a, b *node) [2]string {
	if a.name < b.name {
		return [2]string{a.name, b.name}
	}
	return [2]string{b.name, a.name}
}

func (c *cluster) isCut(a, b *node) bool { return c.cut[key(a, b)] }

// partition stops everything between two nodes in silence; what was sent arrives when it ends, unless
// the link is given up before.
func (c *cluster) partition(a, b *node, on bool) {
	c.cut[key(a, b)] = on
	if on {
		return
	}
	for _, w := range c.links {
		if key(w.a, w.b) == key(a, b) {
			held := w.held
			w.held = nil
			for _, f := range held {
				f()
			}
		}
	}
}

// isolate cuts a node from all others.
func (c *cluster) isolate(n *node, on bool) {
	for _, o := range c.nodes {
		if o != n {
			c.partition(n, o, on)
		}
	}
}

// do runs an input on a node in its run, later if it is frozen.
func (n *node) do(run int, f func(in *engine.Instance)) {
	if n.dead || n.run != run {
		return
	}
	if n.frozen {
		n.thawed = append(n.thawed, func() { n.do(run, f) })
		return
	}
	f(n.in)
	n.apply()
}

func (n *node) freeze(on bool) {
	n.frozen = on
	if on {
		return
	}
	l := n.thawed
	n.thawed = nil
	n.do(n.run, func(in *engine.Instance) { in.Tick(n.c.now) })
	for _, f := range l {
		f()
	}
}

func (c *cluster) byURL(url string) *node {
	for _, n := range c.nodes {
		if strings.EqualFold(url, urlOf(n.name)) {
			return n
		}
	}
	return nil
}

func urlOf(name string) string { return "TCP://" + name + ".ag:5022" }

// apply carries out the effects.
func (n *node) apply() {
	c := n.c
	for {
		l := n.in.TakeEffects()
		if len(l) == 0 {
			break
		}
		for _, e := range l {
			if c.traced {
				c.trace = append(c.trace, fmt.Sprintf("%s %s %T %s", c.now.Format("05.000000"), n.name, e, describe(e)))
			}
			switch e := e.(type) {
			case engine.Persist:
				if c.onPersist != nil && c.onPersist(n, true) {
					n.kill()
					return
				}
				if n.record != nil {
					b, err := engine.EncodeRecords(e.Records)
					if err != nil {
						c.t.Fatal(err)
					}
					n.record.Write(b)
				}
				n.disk.Apply(e.Records...)
				if c.onPersist != nil && c.onPersist(n, false) {
					n.kill()
					return
				}
			case engine.Send:
				c.send(n, e)
			case engine.Dial:
				c.dial(n, e)
			case engine.CloseLink:
				for _, w := range c.links {
					if w.open && (w.a == n && w.ia == e.Link || w.b == n && w.ib == e.Link) {
						c.shut(w, n)
					}
				}
			case engine.Listen:
				n.listen = e.Open
			case engine.Complete:
				n.done[e.Wait] = e.Err
			case engine.Kill:
				for _, s := range e.Sessions {
					n.killed[s] = true
				}
			case engine.LogLine:
				n.lines = append(n.lines, e.Text)
			case engine.Exit:
				n.kill()
				return
			}
		}
	}
	if w := n.in.NextWake(); !w.IsZero() && (n.wakeAt.IsZero() || w.Before(n.wakeAt) || !n.wakeAt.After(c.now)) {
		n.wakeAt = w
		run := n.run
		c.at(w, func() {
			if n.wakeAt.Equal(w) {
				n.wakeAt = time.Time{}
			}
			n.do(run, func(in *engine.Instance) { in.Tick(c.now) })
		})
	}
}

func describe(e engine.Effect) string {
	switch e := e.(type) {
	case engine.Send:
		return fmt.Sprintf("%d %T", e.Link, e.Message)
	case engine.Complete:
		return fmt.Sprint(e.Wait, e.Err)
	case engine.LogLine:
		return e.Text
	case engine.Dial:
		return e.URL
	}
	return ""
}

func (c *cluster) send(n *node, e engine.Send) {
	for _, w := range c.links {
		if !w.open {
			continue
		}
		to, id, run, dir := w.b, w.ib, w.rb, 0
		switch {
		case w.a == n && w.ia == e.Link:
		case w.b == n && w.ib == e.Link:
			to, id, run, dir = w.a, w.ia, w.ra, 1
		default:
			continue
		}
		c.lanes = c.lanes || e.Lane != 0
		at := c.now.Add(c.delay)
		if at.Before(w.last[dir][e.Lane]) {
			at = w.last[dir][e.Lane]
		}
		w.last[dir][e.Lane] = at
		m := e.Message
		if n.record != nil {
			b, err := engine.EncodeMessage(m)
			if err != nil {
				c.t.Fatal(err)
			}
			if m, err = engine.DecodeMessage(b); err != nil {
				c.t.Fatal(err)
			}
		}
		var deliver func()
		deliver = func() {
			switch {
			case !w.open || to.dead || to.run != run:
			case len(c.cut) > 0 && c.isCut(w.a, w.b):
				w.held = append(w.held, deliver)
			case to.frozen: // in its socket by now, whatever happens to the link
				to.thawed = append(to.thawed, func() { to.do(run, func(in *engine.Instance) { in.Receive(c.now, id, m) }) })
			default:
				to.in.Receive(c.now, id, m)
				to.apply()
			}
		}
		c.at(at, deliver)
		return
	}
	// The other end has closed it: a reset comes back.
	run := n.run
	c.at(c.now.Add(c.delay), func() { n.do(run, func(in *engine.Instance) { in.LinkDown(c.now, e.Link, "") }) })
}

func (c *cluster) dial(n *node, e engine.Dial) {
	to := c.byURL(e.URL)
	run := n.run
	if to != nil && c.isCut(n, to) {
		return // silence: the engine's own time-out ends it
	}
	c.at(c.now.Add(c.delay), func() {
		if to == nil || to.dead || !to.listen || n.dead || n.run != run {
			n.do(run, func(in *engine.Instance) { in.LinkFailed(c.now, e.Link, 10061, "connection refused") })
			return
		}
		mine, ok1 := n.in.EndpointIdentity()
		theirs, ok2 := to.in.EndpointIdentity()
		if !ok1 || !ok2 {
			n.do(run, func(in *engine.Instance) { in.LinkFailed(c.now, e.Link, 10061, "no certificate") })
			return
		}
		w := &wire{a: n, b: to, ia: e.Link, ib: c.nextID, ra: n.run, rb: to.run, open: true}
		c.nextID += 2
		c.links = slices.DeleteFunc(c.links, func(w *wire) bool { return !w.open })
		c.links = append(c.links, w)
		to.do(to.run, func(in *engine.Instance) { in.LinkUp(c.now, w.ib, mine.DER) })
		n.do(run, func(in *engine.Instance) { in.LinkUp(c.now, w.ia, theirs.DER) })
	})
}

// run lets time pass.
func (c *cluster) run(d time.Duration) {
	end := c.now.Add(d)
	for len(c.events) > 0 && !c.events[0].at.After(end) {
		e := c.events.pop()
		c.now = e.at
		e.run()
	}
	c.now = end
}

// until runs until the condition holds, at most for d.
func (c *cluster) until(what string, d time.Duration, ok func() bool) {
	c.t.Helper()
	end := c.now.Add(d)
	for !ok() {
		if len(c.events) == 0 || c.events[0].at.After(end) {
			c.now = end
			if ok() {
				return
			}
			for _, n := range c.nodes {
				c.t.Logf("%s: role %v\n  %s", n.name, n.role("ag"), strings.Join(last(n.lines, 12), "\n  "))
			}
			c.t.Fatalf("after %v: %s did not happen", d, what)
		}
		e := c.events.pop()
		c.now = e.at
		e.run()
	}
}

func last(l []string, n int) []string { return l[max(0, len(l)-n):] }

// session is a client of a node.
type session struct {
	n  *node
	id engine.SessionID
}

// sa logs in as sa.
func (n *node) sa() *session {
	n.c.t.Helper()
	var id engine.SessionID
	var err error
	n.do(n.run, func(in *engine.Instance) {
		id, err = in.Login(n.c.now, engine.LoginRequest{User: "sa", Password: "Passw0rd!"})
	})
	if err != nil {
		n.c.t.Fatalf("log in to %s: %v", n.name, err)
	}
	return &session{n, id}
}

// call runs a statement and, if it waits, lets time pass until it ends, at most a minute.
func (s *session) call(f func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error)) error {
	w, err := s.start(f)
	if w == 0 {
		return err
	}
	return s.wait(w, time.Minute)
}

func (s *session) start(f func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error)) (engine.WaitID, error) {
	var w engine.WaitID
	var err error
	s.n.do(s.n.run, func(in *engine.Instance) { w, err = f(in, s.n.c.now, s.id) })
	return w, err
}

func (s *session) wait(w engine.WaitID, d time.Duration) error {
	s.n.c.t.Helper()
	run := s.n.run
	s.n.c.until(fmt.Sprintf("the end of a statement on %s", s.n.name), d, func() bool {
		_, ok := s.n.done[w]
		return ok || s.n.run != run
	})
	if s.n.run != run {
		return fmt.Errorf("connection to %s lost", s.n.name)
	}
	return s.n.done[w]
}

func (s *session) must(f func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error)) {
	s.n.c.t.Helper()
	if err := s.call(f); engine.Failed(err) {
		s.n.c.t.Fatalf("statement on %s: %v", s.n.name, err)
	}
}

// role is the local role, -1 without a group.
func (n *node) role(ag string) int {
	if n.dead {
		return -1
	}
	role := -1
	n.do(n.run, func(in *engine.Instance) {
		id, err := in.Login(n.c.now, engine.LoginRequest{User: "sa", Password: "Passw0rd!"})
		if err != nil {
			return
		}
		defer in.Logout(n.c.now, id)
		rows, _ := in.ReplicaStates(n.c.now, id)
		for _, r := range rows {
			if r.IsLocal {
				role = int(r.Role.V)
			}
		}
	})
	return role
}
