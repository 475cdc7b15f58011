//go:build linux

package simulation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// injector carries out the plan's faults; everything here runs with mu held.
type injector struct {
	c      *cluster
	plan   plan
	armed  []*aimed
	moves  int
	healed bool
	undo   []func() // of faults in force, for the end of all faults
	saved  *coordinationv1.Lease
	laptop *proc
	handed bool // a person has sent FAILOVER
	// snapshots of the volumes, by replica, where the schedule has a use for them.
	snapshots map[string]snapshot
}

// aimed waits for its event.
type aimed struct {
	fault
	seen int
	done bool
}

func (i *injector) arm() {
	for _, f := range i.plan.faults {
		if f.aim == "" {
			i.c.w.after(f.at, func() { i.strike(f) })
			continue
		}
		a := &aimed{fault: f}
		i.armed = append(i.armed, a)
	}
	i.c.w.after(i.plan.heal, i.heal)
	i.c.w.after(quiet, func() { i.c.check.watched = true })
	i.c.w.after(quiet, i.c.check.lookForCopies)
	for d := quiet; d < i.plan.heal; d += 90 * time.Second { // what a backup of etcd may hold
		i.c.w.after(d, i.backUp)
	}
}

// backUp keeps the Lease, and the volumes where the schedule restores one.
func (i *injector) backUp() {
	i.saved = i.c.api.lease
	if !slices.ContainsFunc(i.plan.faults, func(f fault) bool { return f.what == "restore-volume" }) {
		return
	}
	i.snapshots = map[string]snapshot{}
	for _, n := range i.c.nodes {
		i.snapshots[n.name] = snapshot{disk: n.disk.Clone(), memory: n.remembered()}
	}
}

// trigger tells of an event at which faults may be aimed.
func (i *injector) trigger(event string) {
	if i == nil || i.healed {
		return
	}
	now := i.c.w.now()
	for _, a := range i.armed {
		if a.done || now < a.at || !strings.HasPrefix(event, a.aim) {
			continue
		}
		a.seen++
		if a.seen < a.nth {
			continue
		}
		a.done = true
		i.c.w.after(a.delay, func() { i.strike(a.fault) })
	}
}

// find resolves who is meant now; nil when there is nobody.
func (i *injector) find(who string) *node {
	c := i.c
	kind, number, _ := strings.Cut(who, ":")
	k, _ := strconv.Atoi(number)
	switch kind {
	case "node":
		return c.nodes[k%len(c.nodes)]
	case "primary":
		return c.primary()
	case "holder":
		if l := c.api.lease; l != nil && l.Spec.HolderIdentity != nil {
			name, _, _ := strings.Cut(*l.Spec.HolderIdentity, "/")
			return c.node(name)
		}
	case "target":
		if c.api.lease != nil {
			if a, _ := state.Decode(c.api.lease, ""); a.Operation != nil {
				return c.node(a.Operation.Target)
			}
		}
	case "secondary":
		p := c.primary()
		var others []*node
		for _, n := range c.nodes {
			if n != p {
				others = append(others, n)
			}
		}
		if len(others) > 0 {
			return others[k%len(others)]
		}
	}
	return nil
}

func (i *injector) leader() *controller {
	for _, k := range i.c.controllers {
		if k.leads && !k.dead {
			return k
		}
	}
	return nil
}

// during does something now and undoes it after the length, at the latest when all faults end.
func (i *injector) during(d time.Duration, do, undo func()) {
	do()
	done := false
	once := func() {
		if !done {
			done = true
			undo()
		}
	}
	i.undo = append(i.undo, once)
	i.c.w.after(d, once)
}

func (i *injector) strike(f fault) {
	if i.healed {
		return
	}
	c, w := i.c, i.c.w
	n := i.find(f.who)
	label := f.what
	if n != nil {
		label += " " + n.name
	}
	if f.length > 0 {
		label += " for " + f.length.Round(10*time.Millisecond).String()
	}
	w.fact("FAULT", "%s", label)
	if n == nil && f.who != "" && f.who != "leader" {
		return
	}
	switch f.what {
	case "kill":
		n.kill("killed", 137)
	case "poweroff":
		n.powerOff()
		w.after(f.length, n.powerOn)
	case "never":
		n.powerOff()
		n.gone = true
	case "isolate":
		i.cutBoth(f.length, n.host, w.hosts)
	case "cut-control":
		others := []*host{c.api.host}
		for _, k := range c.controllers {
			others = append(others, k.host)
		}
		i.cutBoth(f.length, n.host, others)
	case "cut-controller":
		if k := i.leader(); k != nil {
			i.cutBoth(f.length, k.host, w.hosts)
		}
	case "cut-endpoint":
		if o := i.find(f.other); o != nil && o != n {
			i.cutBoth(f.length, n.host, []*host{o.host}, kindEndpoint)
		}
	case "only-endpoints": // nothing but the sessions between the servers gets through
		i.cutBoth(f.length, n.host, w.hosts, kindAPI, kindSQL, kindManager)
	case "cut-endpoints":
		i.cutBoth(f.length, n.host, w.hosts, kindEndpoint)
	case "sever": // at once, and not to be dialled again
		if o := i.find(f.other); o != nil && o != n {
			for _, l := range c.allLinks() {
				if l.ends[0].node == n && l.ends[1].node == o || l.ends[0].node == o && l.ends[1].node == n {
					l.reset()
				}
			}
			i.cutBoth(f.length, n.host, []*host{o.host}, kindEndpoint)
		}
	case "one-way":
		if o := i.find(f.other); o != nil && o != n {
			i.during(f.length, func() { w.cut(n.host, o.host, 1) }, func() { w.cut(n.host, o.host, -1); i.release() })
		}
	case "freeze":
		i.freeze(f.length, n.procs(), nil)
	case "stand":
		h := n.host
		if !i.twoLocks() {
			h = nil // with k = 0 time is the only lock, and it is known to be one that a pause defeats
		}
		i.freeze(f.length, n.procs(), h)
	case "freeze-sql":
		if n.server != nil {
			i.freeze(f.length, []*proc{n.server.proc}, nil)
		}
	case "freeze-manager":
		if n.manager != nil {
			i.freeze(f.length, []*proc{n.manager.proc}, nil)
		}
	case "freeze-controller":
		if k := i.leader(); k != nil {
			i.freeze(f.length, []*proc{k.proc}, nil)
		}
	case "kill-controller":
		if k := i.leader(); k != nil {
			k.die("killed")
		}
	case "api-away":
		i.during(f.length, func() { c.api.away++ }, func() { c.api.away-- })
	case "api-chaos":
		i.during(f.length, func() { c.api.late, c.api.slow, c.api.lost = 60, 40, 60 }, func() { c.api.late, c.api.slow, c.api.lost = 0, 0, 0 })
	case "reset":
		for _, l := range c.allLinks() {
			if l.ends[0].node == n || l.ends[1].node == n {
				l.reset()
			}
		}
	case "move":
		i.moves++
		c.api.annotate(v1alpha1.AnnotationRequest, v1alpha1.Request{
			ID: fmt.Sprintf("move-%d", i.moves), Kind: v1alpha1.RequestFailover, Target: n.name, By: "somebody",
		}.String())
	case "crash-at":
		i.sql(n, "EXEC mssqlsim.fault @kind = N'crash', @at = N'"+f.other+"'")
	case "hand-offline":
		i.sql(n, "ALTER AVAILABILITY GROUP [ag1] OFFLINE")
	case "hand-failover":
		// A person's promotion is under no rule of ours: one that is slow may end beside the product's own.
		if i.untroubled(n) && c.timings.PromotionMax < 3*time.Second && !c.omit.Has(noWait) {
			i.handed = true
			i.sql(n, "EXEC sp_set_session_context @key = N'external_cluster', @value = N'yes'; ALTER AVAILABILITY GROUP [ag1] FAILOVER")
		}
	case "hand-k":
		i.sql(n, "ALTER AVAILABILITY GROUP [ag1] SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 0)")
	case "clock-jump":
		n.host.wall.Add(int64(f.length))
		i.sql(n, fmt.Sprintf("EXEC mssqlsim.fault @kind = N'clock', @offset = N'%s'", time.Duration(n.host.wall.Load())))
	case "direct":
		i.direct(n, f.length)
	case "lease-delete":
		c.api.lease = nil
	case "lease-restore":
		if i.saved != nil {
			i.c.api.lease = i.saved.DeepCopy()
			i.c.api.lease.ResourceVersion = i.c.api.next()
		}
	case "blank":
		n.blank()
	case "delete-pod":
		n.deletePod()
	case "swap-volumes":
		if o := i.find(f.other); n != nil && o != nil && o != n && !n.swapped && !o.swapped {
			i.during(f.length, func() { n.swapVolumes(o) }, func() { n.swapVolumes(o) })
		}
	case "restore-volume":
		n.restoreVolume(i.snapshots[n.name])
	case "hand-force":
		i.forceByHand(n)
	case "recreate":
		c.recreate()
	default:
		if !i.aimedAt(f, n) {
			c.violation("the schedule has an unknown fault %q", f.what)
		}
	}
}

func (i *injector) cutBoth(d time.Duration, h *host, others []*host, what ...kind) {
	w := i.c.w
	set := func(n int) {
		for _, o := range others {
			if o != h {
				w.cut(h, o, n, what...)
				w.cut(o, h, n, what...)
			}
		}
	}
	i.during(d, func() { set(1) }, func() { set(-1); i.release() })
}

// release lets held traffic go where the way is free again.
func (i *injector) release() {
	for _, l := range i.c.allLinks() {
		l.release()
	}
}

// procs are the processes of the node's machine.
func (n *node) procs() []*proc {
	var all []*proc
	if n.server != nil {
		all = append(all, n.server.proc)
	}
	if n.manager != nil {
		all = append(all, n.manager.proc)
	}
	for _, k := range n.c.controllers {
		if k.host == n.host && k.proc != nil {
			all = append(all, k.proc)
		}
	}
	return all
}

// freeze stops processes; with a host its clocks stand still meanwhile.
func (i *injector) freeze(d time.Duration, procs []*proc, h *host) {
	began := i.c.w.now()
	i.during(d, func() {
		for _, p := range procs {
			p.freeze()
		}
	}, func() {
		if h != nil {
			h.stood.Add(int64(i.c.w.now() - began))
		}
		for _, p := range procs {
			p.thaw()
		}
	})
}

// heal ends all faults: what can come back comes back.
func (i *injector) heal() {
	w := i.c.w
	i.healed = true
	w.fact("FAULT", "all faults end")
	i.kill() // a second driver beside the controllers is one
	for _, f := range i.undo {
		f()
	}
	for _, n := range i.c.nodes {
		n.powerOn()
	}
	i.c.check.healed()
}

func (i *injector) kill() {
	if i.laptop != nil {
		i.laptop.kill()
	}
}

// twoLocks: the recorded rule makes every commit wait for another replica.
func (i *injector) twoLocks() bool {
	if i.c.api.lease == nil {
		return false
	}
	a, _ := state.Decode(i.c.api.lease, "")
	return a.Exists && a.Rule.K > 0
}

// untroubled tells whether a person who looks at the replica sees a complete, connected copy.
func (i *injector) untroubled(n *node) bool {
	if n.server == nil || n.server.dead || n.server.role != "SECONDARY" || n.server.frozen {
		return false
	}
	for p, cuts := range i.c.w.cuts {
		if cuts > 0 && (p.from == n.host.id || p.to == n.host.id) {
			return false
		}
	}
	have := holds(n.disk)
	for v := range i.c.check.acked {
		if !have[v] {
			return false
		}
	}
	return true
}

// sql lets a person run a batch as sa, on the server itself.
func (i *injector) sql(n *node, batch string) {
	i.c.clients.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		c, err := n.connect(ctx, i.c.clients, "sa", saPassword)
		if err != nil {
			return
		}
		err = c.Exec(ctx, batch)
		i.c.w.say("person", "%s: %s: %v", n.name, batch, err)
		_ = c.Close()
	})
}

// direct is the plugin with --direct on a laptop that sleeps for a while in the middle.
func (i *injector) direct(target *node, nap time.Duration) {
	c := i.c
	if i.laptop != nil {
		return
	}
	i.moves++
	c.api.annotate(v1alpha1.AnnotationRequest, v1alpha1.Request{
		ID: fmt.Sprintf("move-%d", i.moves), Kind: v1alpha1.RequestFailover, Target: target.name, By: "somebody",
	}.String())
	p := c.w.newProc("laptop", 60, c.w.newHost("laptop"))
	i.laptop = p
	p.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		e := c.engine(p, "direct/somebody@laptop")
		for ctx.Err() == nil {
			r, err := e.Step(ctx, groupKey)
			if err != nil {
				c.w.say(p.name, "pass: %v", err)
			}
			if !p.sleep(max(r.Next, time.Second)) {
				return
			}
		}
	})
	c.w.after(within(mix(c.w.seed, uint64(nap)), 100*time.Millisecond, 8*time.Second), func() { //nolint:gosec // a draw
		if nap == forGood {
			c.w.fact(p.name, "is closed for good")
			p.kill()
			return
		}
		i.freeze(nap, []*proc{p}, nil)
	})
}

// blank loses the node's volume: the pod comes back with an empty one.
func (n *node) blank() {
	if !n.alive() || n == n.c.primary() {
		return
	}
	n.kill("its volume is lost", 137)
	n.c.check.discarded(n, nil)
	n.disk = engine.NewDisk()
	n.config.Seed = mix(n.config.Seed) // another server: other keys
	n.recall(nil)
	n.volumes++
	n.pvc = fmt.Sprintf("pvc-%s-%d", n.name, n.volumes)
	a := n.c.api
	a.claims[v1alpha1.VolumeData+"-"+n.name] = n.claimObject()
	a.next()
	a.podsSeen = a.version
}
