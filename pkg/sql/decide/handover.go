package decide

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ruleHandover: the primary is about to stop, because its pod was told to or because a
// person fenced it. The primary moves first, if another replica can take over without
// loss; else it stops cleanly, and its end is the proof.
func ruleHandover(v *view, d *draft) bool {
	p := v.primary()
	if p == nil {
		return false
	}
	why, limit := v.leaving(p)
	if why == "" {
		return false
	}
	target := v.plannedTarget()
	if target == "" {
		d.find(p.Name, ag.SymptomNone, "%s and no replica could take over without loss now: %s", why, v.readinessText(p.Name))
		d.soon("a replica that could take over")
		return false
	}
	return v.startSwitchover(d, ag.OperationHandover, target, why, limit, nil)
}

// leaving says why the primary is about to stop, and how long it waits for a successor;
// empty when it stays. A fence is a person's word, so that preStopFailover has no say.
func (v *view) leaving(p *ag.Replica) (why string, limit time.Duration) {
	switch {
	case p.Fenced:
		why = p.Name + " was fenced"
		if pol := v.policyOf(p.Name); pol != nil && pol.FencedWhy != "" {
			why += " " + pol.FencedWhy
		}
		return why, v.pol.SwitchoverMax
	case p.Pod.Terminating && v.pol.Handover && v.pol.External:
		return "the pod of " + p.Name + " is terminating", v.pol.HandoverMax
	}
	return "", 0
}
