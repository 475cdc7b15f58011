//go:build linux

package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// cluster is one group with all that it runs on.
type cluster struct {
	w           *world
	topology    topology
	readings    engine.Readings
	timings     engine.Timings
	options     instance.Options
	config      instance.Config
	api         *apiServer
	nodes       []*node
	byName      map[string]*node
	controllers []*controller
	clients     *proc
	writers     []*writer
	nextLink    engine.LinkID
	check       checker
	faults      *injector
	omit        ag.Omit
	generation  int           // of the custom resource: how often it was made anew
	stopped     chan struct{} // closed when there is no reason to go on
}

// newCluster makes everything and starts it; mu is not held.
func newCluster(w *world, p plan, options instance.Options) *cluster {
	c := &cluster{w: w, topology: p.topology, readings: p.readings, timings: p.timings, options: options, byName: map[string]*node{}, stopped: make(chan struct{})}
	c.check.c = c
	c.omit = ag.OmitRules(p.without...)
	c.faults = &injector{c: c, plan: p}
	g := c.topology.resource()
	p.resource(g)
	c.config = instance.ConfigForGroup(g, 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &apiServer{c: c, group: g, version: 1, pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}, nodes: map[string]*corev1.Node{}}
	a.proc = w.newProc("api", 1, w.newHost("api"))
	c.api = a
	for i := range c.topology.modes {
		n := &node{c: c, index: i, name: fmt.Sprintf("%s-%d", groupName, i), disk: engine.NewDisk(), boot: 1}
		n.host = w.newHost(n.name)
		n.podUID, n.pvc = "pod-"+n.name, "pvc-"+n.name+"-0"
		n.config = engine.Config{ServerName: n.name, Seed: mix(w.seed, uint64(i)), SAPassword: saPassword, HADR: true, Readings: c.readings, Timings: c.timings} //nolint:gosec // a seed
		c.nodes = append(c.nodes, n)
		c.byName[n.name] = n
		a.pods[n.name], a.claims["data-"+n.name], a.nodes[n.name] = n.podObject(), n.claimObject(), nodeObject(n.name, n.bootID())
		w.after(time.Duration(i)*137*time.Millisecond, n.startContainer)
	}
	for i := range 2 {
		host := w.newHost(fmt.Sprintf("ctl-%d", i))
		if p.colocated && i == 0 {
			host = c.nodes[0].host
		}
		k := &controller{c: c, name: fmt.Sprintf("ctl-%d", i), host: host, station: 50 + i}
		c.controllers = append(c.controllers, k)
		w.after(time.Duration(i)*time.Second+time.Second, k.start)
	}
	c.clients = w.newProc("clients", 70, w.newHost("clients"))
	for _, n := range c.nodes {
		wr := &writer{c: c, node: n, kick: make(chan struct{}, 1)}
		c.writers = append(c.writers, wr)
		c.clients.spawn(wr.write)
	}
	c.faults.arm()
	return c
}

func (c *cluster) node(name string) *node {
	if n := c.byName[name]; n != nil {
		return n
	}
	return c.byName[strings.ToLower(name)]
}

// kill ends every process; mu is held.
func (c *cluster) kill() {
	for _, k := range c.controllers {
		if k.proc != nil {
			k.proc.kill()
		}
	}
	for _, n := range c.nodes {
		if n.manager != nil {
			n.manager.kill()
		}
		if n.server != nil {
			n.server.proc.kill()
		}
	}
	c.faults.kill()
	c.clients.kill()
	c.api.proc.kill()
}

// roleChanged hears of every change of a server's role; mu is held.
func (c *cluster) roleChanged(s *server) {
	if s.role != "PRIMARY" && s.role != "RESOLVING" {
		s.node.outlaw = false
	}
	if s.role == "PRIMARY" {
		c.check.promoted(s)
		c.writers[s.node.index].wake()
	}
	c.faults.trigger("role " + s.role)
}

// recordChanged hears of every change of the record in the Lease; mu is held.
func (c *cluster) recordChanged(by *proc, before, after ag.Authority) {
	phase := func(a ag.Authority) string {
		if a.Operation == nil {
			return "-"
		}
		return string(a.Operation.Kind) + "/" + string(a.Operation.Phase)
	}
	unfenced := make([]string, len(after.Unfenced))
	for i, g := range after.Unfenced {
		unfenced[i] = fmt.Sprintf("%s@%d%s", g.Run.Nonce, g.Epoch, map[bool]string{true: "!", false: ""}[g.Proven != ""])
	}
	if before.Epoch != after.Epoch && after.Operation == nil {
		c.check.legalized(after)
	}
	c.w.fact("lease", "by %s: holder %s, epoch %d, %s, k %d of %v (rule %d), unfenced %v, stale %v, last %s, maybe %v", by.name, after.Holder.Nonce, after.Epoch,
		phase(after), after.Rule.K, after.Rule.Names(), after.Rule.Number, unfenced, after.Stale, after.LastPrimary, after.MaybePrimary)
	switch {
	case before.Epoch != after.Epoch:
		c.faults.trigger("grant")
	case before.Rule.Number != after.Rule.Number:
		c.faults.trigger("rule")
	}
	if phase(before) != phase(after) {
		c.faults.trigger("phase " + phase(after))
	}
	c.faults.trigger("record")
	for _, wr := range c.writers {
		wr.wake()
	}
}

// labelled hears of every change of a pod's labels; mu is held.
func (c *cluster) labelled() {
	var primaries []string
	for _, n := range c.nodes {
		if c.api.pods[n.name].Labels[v1alpha1.LabelRole] == v1alpha1.RolePrimary {
			primaries = append(primaries, n.name)
		}
	}
	c.w.fact("labels", "primary %v", primaries)
	c.published(primaries)
	if len(primaries) > 1 {
		c.violation("labels: %s carry the primary's label at once", strings.Join(primaries, " and "))
	}
}

func (c *cluster) violation(format string, args ...any) {
	c.check.violation(format, args...)
}

// primary is the server that the newest promotion made, if it still is one; mu is held.
func (c *cluster) primary() *node {
	var best *node
	for _, n := range c.nodes {
		if n.server != nil && !n.server.dead && n.server.role == "PRIMARY" && (best == nil || n.promoted > best.promoted) {
			best = n
		}
	}
	return best
}

// spawnTask runs a task of a process of its own.
func (c *cluster) spawnTask(p *proc, f func(ctx context.Context)) { p.spawn(f) }
