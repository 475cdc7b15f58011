package decide

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ruleFailback moves the primary to the preferred replica once all is well and has been
// for the stability window.
func ruleFailback(v *view, d *draft) bool {
	p, want := v.primary(), v.pol.Preferred
	if p == nil || want == "" || p.Name == want || !v.pol.External || !v.pol.AutoFailover || p.Pod.Terminating || !online(p) {
		return false
	}
	t := v.snap.Find(want)
	pol := v.policyOf(want)
	if t == nil || pol == nil || pol.Fenced || !v.plannedRefusal(t).none() || len(v.auth.Unfenced) > 0 || len(d.d.Memory.Recoveries) > 0 {
		return false
	}
	if since := d.d.Memory.LastRoleChangeAt; !since.IsZero() {
		if left := max(v.pol.Stability, v.pol.MinBetween) - elapsed(since, v.now); left > 0 {
			d.wait(min(left, time.Hour), "primaryStabilityWindow before the move back to %s", want)
			return false
		}
	}
	return v.startSwitchover(d, ag.OperationSwitchover, want, want+" is the preferred primary", v.pol.SwitchoverMax, nil)
}
