//go:build linux

package simulation

import (
	"fmt"
	"regexp"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// FORCE by hand. What it loses is the person's loss, and so is what clients write to a forced
// replica before it is confirmed. From there on there is one writer again, and nothing more is lost.

// confirmAfter is how long after FORCE the person confirms it with a request, as the runbook says.
const confirmAfter = 45 * time.Second

// forceByHand is a person's FORCE_FAILOVER_ALLOW_DATA_LOSS on a replica; mu is held.
func (i *injector) forceByHand(n *node) {
	if n.server == nil || n.server.dead || n.server.role == "PRIMARY" || n.server.role == "" {
		return
	}
	k := &i.c.check
	n.forced = true
	i.c.w.after(20*time.Second, func() { n.forced = false }) // it was refused
	k.byHand = true
	i.sql(n, "EXEC sp_set_session_context @key = N'external_cluster', @value = N'yes'; ALTER AVAILABILITY GROUP [ag1] FORCE_FAILOVER_ALLOW_DATA_LOSS")
	i.c.w.after(confirmAfter, func() {
		if k.forcing == nil {
			k.forcing = map[string]bool{}
		}
		k.forcing[n.name] = true
		i.moves++
		i.c.api.annotate(v1alpha1.AnnotationRequest, v1alpha1.Request{
			ID: fmt.Sprintf("force-%d", i.moves), Kind: v1alpha1.RequestFailover, Target: n.name, AllowDataLoss: true, By: "somebody",
		}.String())
	})
}

// obeyAfter is how long after the faults a person reads what the group is blocked for, and does what
// the block says; several times, as one order may lead to the next block.
const (
	obeyAfter = 60 * time.Second
	maxOrders = 3
)

// ordered is the command that a block names.
var ordered = regexp.MustCompile(`kubectl mssql failover NAME --to (\S+) --allow-data-loss=unlimited`)

// obey gives the order that a block names, as the person who has sent FORCE or FAILOVER would. What it
// loses was stated; that it helps is what the end of the run shows. mu is held.
func (k *checker) obey() {
	if k.finished || k.obeyed >= maxOrders {
		return
	}
	k.c.w.after(obeyAfter, k.obey)
	if k.working() {
		return
	}
	for _, b := range k.blocks() {
		m := ordered.FindStringSubmatch(b.Message)
		if m == nil || k.c.node(m[1]) == nil {
			continue
		}
		k.obeyed++
		k.forcing = map[string]bool{m[1]: true}
		k.c.w.fact("PERSON", "orders what the block says: --to %s", m[1])
		k.c.api.annotate(v1alpha1.AnnotationRequest, v1alpha1.Request{
			ID: fmt.Sprintf("obey-%d", k.obeyed), Kind: v1alpha1.RequestFailover, Target: m[1], AllowDataLoss: true, By: "somebody",
		}.String())
		return
	}
}

// outlawed tells whether this server's role is a FORCE that nobody has confirmed; mu is held.
func (n *node) outlawed() bool { return n.outlaw && n.server != nil && n.server.role == "PRIMARY" }

// legalized hears of a new holder: a forced replica that gets the Lease while it is PRIMARY is
// the primary from now on, with what it has; mu is held.
func (k *checker) legalized(a ag.Authority) {
	n := k.c.node(a.Holder.Replica)
	if n == nil || !n.outlawed() {
		return
	}
	n.outlaw = false
	k.forcing = map[string]bool{n.name: true}
	k.promoted(n.server)
}
