package decide

import "github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"

// ruleGate stops everything while the group is paused or was never made.
func ruleGate(v *view, d *draft) bool {
	switch {
	case v.pol.Paused:
		d.stopped = true
		d.block(ag.ReasonPaused, "", "", "the group is paused: nothing is done until it is resumed")
		return true
	case !v.pol.Initialized:
		d.stopped = true
		d.find("", ag.SymptomNone, "the group was not made yet")
		return true
	}
	return false
}
