//go:build linux

package simulation

import (
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// aimedAt carries out the disturbances that only the schedules of single rules use; it
// tells whether it knows this one. mu is held.
func (i *injector) aimedAt(f fault, n *node) bool {
	c, w := i.c, i.c.w
	switch f.what {
	case "unseen": // neither the control plane nor another manager reaches it; clients and servers do
		var others []*host
		for _, o := range c.nodes {
			others = append(others, o.host)
		}
		i.cutBoth(f.length, n.host, others, kindManager)
		i.cutBoth(f.length, n.host, i.controlPlane(), kindAPI, kindManager, kindSQL)
	case "deaf": // the controllers never reach it again; its own way to the API server is open
		for _, k := range c.controllers {
			w.cut(k.host, n.host, 1, kindSQL, kindManager)
		}
	case "cut-api":
		i.cutBoth(f.length, n.host, []*host{c.api.host}, kindAPI)
	case "unheard": // what the controllers send to the server is lost
		i.during(f.length, func() {
			for _, k := range c.controllers {
				w.cut(k.host, n.host, 1, kindSQL)
			}
		}, func() {
			for _, k := range c.controllers {
				w.cut(k.host, n.host, -1, kindSQL)
			}
		})
	case "mute": // its answers to the controllers are lost
		i.during(f.length, func() {
			for _, k := range c.controllers {
				w.cut(n.host, k.host, 1, kindSQL)
			}
		}, func() {
			for _, k := range c.controllers {
				w.cut(n.host, k.host, -1, kindSQL)
			}
		})
	case "estrange": // two managers do not reach each other
		if o := i.find(f.other); o != nil && o != n {
			i.cutBoth(f.length, n.host, []*host{o.host}, kindManager)
		}
	case "cast-off": // its sessions with the other endpoints end at once, and are not dialled again
		for _, l := range c.allLinks() {
			if l.ends[0].node == n || l.ends[1].node == n {
				l.reset()
			}
		}
		i.cutBoth(f.length, n.host, w.hosts, kindEndpoint)
	case "split": // these two and all others do not reach each other's endpoints
		o := i.find(f.other)
		for _, x := range c.nodes {
			if x != n && x != o {
				i.cutBoth(f.length, n.host, []*host{x.host}, kindEndpoint)
				i.cutBoth(f.length, o.host, []*host{x.host}, kindEndpoint)
			}
		}
	case "flood": // one large transaction, of which nobody waits for the end
		rows := make([]string, 900)
		for v := range rows {
			rows[v] = fmt.Sprintf("(%d)", 90_000_000+v)
		}
		i.sql(n, "INSERT INTO app.dbo.t (v) VALUES "+strings.Join(rows, ", "))
	case "mode": // the custom resource asks for another availability mode
		g := c.api.group.DeepCopy()
		g.Spec.Replicas[n.index].AvailabilityMode = synchronous
		g.Spec.Replicas[n.index].FailoverMode = v1alpha1.FailoverAutomatic
		if f.other == "async" {
			g.Spec.Replicas[n.index].AvailabilityMode = asynchronous
			g.Spec.Replicas[n.index].FailoverMode = v1alpha1.FailoverManual
		}
		g.ResourceVersion = c.api.next()
		c.api.group = g
	case "force": // a person accepts the loss
		if c.check.forcing == nil {
			c.check.forcing = map[string]bool{}
		}
		c.check.forcing[n.name] = true
		i.moves++
		c.api.annotate(v1alpha1.AnnotationRequest, v1alpha1.Request{
			ID: fmt.Sprintf("force-%d", i.moves), Kind: v1alpha1.RequestFailover, Target: n.name, AllowDataLoss: true, By: "somebody",
		}.String())
	default:
		return false
	}
	return true
}

func (i *injector) controlPlane() []*host {
	hosts := []*host{i.c.api.host}
	for _, k := range i.c.controllers {
		hosts = append(hosts, k.host)
	}
	return hosts
}

// operation is the one in the record, or nil; mu is held.
func (c *cluster) operation() *ag.Operation {
	if c.api.lease == nil {
		return nil
	}
	a, _ := state.Decode(c.api.lease, "")
	return a.Operation
}
