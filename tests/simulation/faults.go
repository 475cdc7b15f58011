//go:build linux

package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// injector carries out the plan's faults; everything here runs with mu held.
type injector struct {
	c      *cluster
	plan   plan
	armed  []*aimed
	moves  int
	healed bool
	undo   []func() // of faults in force, for the end of all faults
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
	case "one-way":
		if o := i.find(f.other); o != nil && o != n {
			i.during(f.length, func() { w.cut(n.host, o.host, 1) }, func() { w.cut(n.host, o.host, -1); i.release() })
		}
	case "freeze":
		i.freeze(f.length, n.procs(), nil)
	case "stand":
		i.freeze(f.length, n.procs(), n.host)
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
	default:
		c.violation("the schedule has an unknown fault %q", f.what)
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
	for _, f := range i.undo {
		f()
	}
	for _, n := range i.c.nodes {
		n.powerOn()
	}
	i.c.check.healed()
}

func (i *injector) kill() {}
