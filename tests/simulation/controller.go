//go:build linux

package simulation

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/observe"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// controller is one of the two processes that compete for the controllers' lock, or the plugin with
// --direct, which asks nobody.
type controller struct {
	*proc
	c       *cluster
	name    string
	host    *host
	station int
	starts  int
	leads   bool
	since   time.Time // of the newest renewal of the lock
	report  agops.Report
	known   bool
}

var groupKey = ag.Key{Namespace: namespace, Name: groupName}

// drivers makes the engine of a process, wired as pkg/sql/live does.
func (c *cluster) engine(p *proc, identity string) *agops.Engine {
	cached := &kube{p: p, a: c.api, cached: true}
	link := &links{c: c, p: p, idle: map[string]*conn{}}
	seed := mix(c.w.seed, uint64(p.station), uint64(c.w.procs)) //nolint:gosec // a seed
	rc := clock.RealClock{}                                     // the bubble's
	return agops.NewEngine(agops.Options{
		Observer: observe.Observer{Cluster: state.Cluster{Reader: cached}, Servers: pooled{link}, Managers: link, Clock: rc},
		Store:    state.Store{Reader: cached, Client: cached, Records: &state.Records{}},
		Executor: agops.SQLExecutor{Servers: link, Managers: link, Kube: state.Kube{Client: cached}, Clock: rc},
		Setup: &agops.Setup{Servers: link, Clock: rc, Omit: c.omit, Random: func(b []byte) error {
			for i := range b {
				seed = mix(seed)
				var x [8]byte
				binary.LittleEndian.PutUint64(x[:], seed)
				b[i] = x[0]
			}
			return nil
		}},
		Clock: rc, Identity: identity, Omit: c.omit,
		Progress: func(d agops.Done) { c.w.say(p.name, "%s: %v", d.What, d.Err) },
	})
}

// start runs a controller; mu is held.
func (k *controller) start() {
	k.starts++
	k.c.w.procs++
	k.proc = k.c.w.newProc(k.name, k.station, k.host)
	k.leads, k.known = false, false
	identity := fmt.Sprintf("%s-%d", k.name, k.starts)
	p := k.proc
	p.spawn(func(ctx context.Context) { k.elect(ctx, p, identity) })
}

// die ends the process; it starts again after a while. mu is held.
func (k *controller) die(why string) {
	if k.dead {
		return
	}
	k.c.w.fact(k.name, "controller ends: %s", why)
	k.kill()
	k.c.w.after(3*time.Second, k.start)
}

// The controllers' lock as client-go's leader election has it.
const (
	lockExpires = 15 * time.Second
	lockRenew   = 10 * time.Second
	lockRetry   = 2 * time.Second
)

func (k *controller) elect(ctx context.Context, p *proc, identity string) {
	api := &kube{p: p, a: k.c.api}
	seen, since := int64(-1), time.Now()
	renewed := time.Now()
	leads := false
	for p.sleep(lockRetry) {
		steal := time.Since(since) > lockExpires
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		sent := time.Now()
		r, err := ask(call, api, func(a *apiServer) (leaderRecord, error) {
			if a.leader.holder == "" || a.leader.holder == identity || steal && a.leader.version == seen {
				a.leader.holder = identity
				a.leader.version++
			}
			return a.leader, nil
		})
		cancel()
		if err == nil && r.version != seen {
			seen, since = r.version, time.Now()
		}
		switch {
		case err == nil && r.holder == identity:
			renewed = sent
			if !leads {
				leads = true
				k.c.w.mu.Lock()
				k.leads = true
				k.c.w.fact(k.name, "leads")
				p.spawn(func(ctx context.Context) { k.passes(ctx, p, identity) })
				k.c.w.mu.Unlock()
			}
		case leads && (err == nil || time.Since(renewed) > lockRenew):
			k.c.w.mu.Lock()
			if k.proc == p {
				k.die("lost the controllers' lock")
			}
			k.c.w.mu.Unlock()
			return
		}
	}
}

// passes is the controller's work queue for the one group.
func (k *controller) passes(ctx context.Context, p *proc, identity string) {
	e := k.c.engine(p, "controller/"+identity)
	for {
		r, err := e.Step(ctx, groupKey)
		pause := max(r.Next, 100*time.Millisecond)
		if err != nil {
			k.c.w.say(p.name, "pass: %v", err)
			pause = time.Second
		} else {
			k.c.w.mu.Lock()
			if k.proc == p {
				k.report, k.known = r, true
			}
			k.c.w.mu.Unlock()
		}
		if !p.sleep(pause) {
			return
		}
	}
}

// links are a process' ways to servers and managers.
type links struct {
	c    *cluster
	p    *proc
	idle map[string]*conn // guarded by mu
}

// Connect implements agops.Servers.
func (l *links) Connect(ctx context.Context, _ ag.Key, replica string, pod ag.Pod) (mssql.Conn, error) {
	n := l.c.node(replica)
	if n == nil {
		return nil, &ag.Error{Kind: ag.ErrUnreachable, Message: "no such host"}
	}
	c, err := n.connect(ctx, l.p, operatorLogin, operatorPassword)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Status implements observe.Managers.
func (l *links) Status(ctx context.Context, _ ag.Key, replica string, _ ag.Pod) (ag.Manager, error) {
	m, err := askManager(ctx, l.p, l.c.node(replica), func(h managerapi.Handler) (ag.Manager, error) { return h.Status(ctx), nil })
	if err != nil {
		reach := ag.ReachTimeout
		if ctx.Err() == nil {
			reach = ag.ReachRefused
		}
		return ag.Manager{Reach: reach, Error: err.Error()}, err
	}
	return m, nil
}

// Seal implements agops.Managers.
func (l *links) Seal(ctx context.Context, _ ag.Key, replica string, _ ag.Pod, o agops.SealOrder) error {
	a, err := askManager(ctx, l.p, l.c.node(replica), func(h managerapi.Handler) (managerapi.SealAnswer, error) {
		return h.Seal(ctx, managerapi.SealRequest{AGUID: o.AGUID, Epoch: o.Epoch, Version: o.Version})
	})
	if err == nil && !a.Sealed {
		err = fmt.Errorf("refused: %s", a.Reason)
	}
	return err
}

// pooled keeps one idle session a server between passes, as pkg/sql/live does.
type pooled struct{ *links }

// Connect implements observe.Servers.
func (l pooled) Connect(ctx context.Context, key ag.Key, replica string, pod ag.Pod) (mssql.Conn, error) {
	w := l.c.w
	w.mu.Lock()
	c := l.idle[replica]
	delete(l.idle, replica)
	w.mu.Unlock()
	if c == nil {
		v, err := l.links.Connect(ctx, key, replica, pod)
		if err != nil {
			return nil, err
		}
		c, _ = v.(*conn)
	}
	return &kept{conn: c, links: l.links, replica: replica}, nil
}

type kept struct {
	*conn
	links   *links
	replica string
	failed  bool
}

// Query implements mssql.Conn.
func (k *kept) Query(ctx context.Context, batch string) ([]mssql.Result, error) {
	r, err := k.conn.Query(ctx, batch)
	k.failed = k.failed || err != nil
	return r, err
}

// Close implements mssql.Conn.
func (k *kept) Close() error {
	if k.failed {
		return k.conn.Close()
	}
	k.links.c.w.mu.Lock()
	defer k.links.c.w.mu.Unlock()
	k.links.idle[k.replica] = k.conn
	return nil
}
