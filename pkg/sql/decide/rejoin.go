package decide

import "github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"

// mayRejoin is why DROP and JOIN are not done on this replica, or nothing. They discard
// its knowledge of the group, and where the log chain does not allow to go on from it, its
// copy (FG 1.7): another one must be proven complete (I4). That is the primary's, unless it
// was forced to its place, or a configuration that nothing of ours explains says otherwise.
func (v *view) mayRejoin(r, p *ag.Replica) refusal {
	switch {
	case !v.rejoinHelps(r, p):
		return refuse("", "the network between it and %s: port 5022 must be open both ways", p.Name)
	case v.lossyForce() && r.Mode == ag.ModeSynchronous && !v.anotherComplete(r):
		return refuse("", "%s was forced to primary and its copy is not proven complete: what is only on %s would be lost", p.Name, r.Name)
	case v.ahead(r, p) && !v.explained(r):
		return refuse("", "no promotion of the record explains its configuration (sequence number %d, the primary's %d): it may have been promoted by hand, and hold what the primary does not",
			r.Local.Sequence, p.Local.Sequence)
	}
	return refusal{}
}

// mayReseed is why the copies of this replica are not dropped and seeded anew, or nothing.
// Nobody may need them: they hold no commit that the primary, whose databases are ONLINE,
// lacks and that was acknowledged (I4).
func (v *view) mayReseed(r, p *ag.Replica) refusal {
	switch {
	case r.Mode == ag.ModeConfigurationOnly:
		return refuse("", "it has no copies that could be seeded anew: replace it, or fence it")
	case !v.pol.AllowReseed:
		return refuse("", "set spec.automaticReseed to have its copies dropped and seeded anew, or do so by hand, or fence it")
	case v.lossyForce():
		return refuse("", "%s was forced to primary: what is only on %s would be lost with its copies; drop them by hand when nothing in them is needed", p.Name, r.Name)
	}
	return v.mayRejoin(r, p)
}

// lossyForce: the newest role change was a FORCE that may have lost something.
func (v *view) lossyForce() bool {
	h := v.in.Memory.History
	return len(h) > 0 && h[0].Kind == changeKind(ag.OperationForced) && h[0].From != h[0].To
}

// rejoinHelps: the replica's knowledge of the group may be what is wrong. Where merely the
// network between the two is, JOIN would fail as well, and leave a replica that no longer
// counts as an answer.
func (v *view) rejoinHelps(r, p *ag.Replica) bool {
	return r.Local.Role == ag.RoleResolving || v.ahead(r, p) || r.Remote != nil && r.Remote.Connected
}

// rejoining names another replica that was rejoined a moment ago and is not back: one at a time.
func (v *view) rejoining(d *draft, but string) string {
	for _, rec := range d.d.Memory.Recoveries {
		if rec.Replica != but && (rec.Rung == ag.RungRejoin || rec.Rung == ag.RungReseed) && elapsed(rec.LastAttemptAt, v.now) < rejoinPatience {
			return rec.Replica
		}
	}
	return ""
}

// anotherComplete: a third replica is in step with the primary.
func (v *view) anotherComplete(r *ag.Replica) bool {
	for i := range v.snap.Replicas {
		if o := &v.snap.Replicas[i]; o.Name != r.Name && v.caughtUp(o) {
			return true
		}
	}
	return false
}

func databaseNames(p *ag.Replica) []string {
	var names []string
	for _, db := range p.Local.Databases {
		names = append(names, db.Name)
	}
	return names
}
