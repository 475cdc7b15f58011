package decide

import "github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"

// ruleHandover: the primary's pod was told to stop. The primary moves first, if another
// replica can take over without loss; else the pod stops cleanly and its end is the proof.
func ruleHandover(v *view, d *draft) bool {
	p := v.primary()
	if p == nil || !p.Pod.Terminating || !v.pol.Handover || !v.pol.External {
		return false
	}
	target := v.plannedTarget()
	if target == "" {
		d.find(p.Name, ag.SymptomNone, "its pod is terminating and no replica could take over without loss now: %s", v.readinessText(p.Name))
		d.soon("a replica that could take over")
		return false
	}
	return v.startSwitchover(d, ag.OperationHandover, target, "the pod of "+p.Name+" is terminating", v.pol.HandoverMax, nil)
}
