package decide

import "github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"

// ruleLabels publishes roles: the old primary's label goes before the new one's comes,
// and only a replica that is PRIMARY, ONLINE and holds the Lease gets that label. What
// is not known is left as it is, but for a primary's label: a replica that lost the
// Lease loses it at once.
func ruleLabels(v *view, d *draft) bool {
	primary := v.publishable()
	if p := v.snap.Find(primary); v.knobs.without("old label first") && p != nil && p.Pod.Exists && p.Pod.RoleLabel != ag.RolePrimary {
		d.label(primary, ag.RolePrimary)
	}
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Pod.Exists && r.Name != primary {
			v.labelOther(d, r)
		}
	}
	if p := v.snap.Find(primary); p != nil && p.Pod.Exists && p.Pod.RoleLabel != ag.RolePrimary {
		d.label(primary, ag.RolePrimary)
	}
	return false
}

// publishable is the replica that may carry the primary's label, or nothing.
func (v *view) publishable() string {
	p := v.primary()
	if p == nil {
		return ""
	}
	if op := v.auth.Operation; op != nil && (op.Phase == ag.PhaseDemoting || op.Phase == ag.PhaseFencing || op.Phase == ag.PhaseAborting) {
		return ""
	}
	// One that carries it keeps it while a database is in trouble: clients of the others need it.
	if !online(p) && p.Pod.RoleLabel != ag.RolePrimary && !v.knobs.without("online first") {
		return ""
	}
	return p.Name
}

func (v *view) labelOther(d *draft, r *ag.Replica) {
	want := r.Pod.RoleLabel
	switch {
	case reached(r) && r.Local.Role == ag.RoleSecondary && !sameRun(r, v.auth.Holder):
		want = ag.RoleSecondary
	case reached(r):
		want = ag.RoleUnknown
	case r.Pod.RoleLabel == ag.RolePrimary && !sameRun(r, v.auth.Holder):
		want = ag.RoleUnknown
	}
	if want != r.Pod.RoleLabel {
		d.label(r.Name, want)
	}
}
