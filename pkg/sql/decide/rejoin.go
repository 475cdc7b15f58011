package decide

import "github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"

// mayRejoin is why DROP and JOIN are not done on this replica, or nothing. They discard
// its knowledge of the group, and where the log chain does not allow to go on from it, its
// copy (FG 1.7): another one must be proven complete (I4). That is the primary's, unless a
// forced failover or a configuration that nothing of ours explains says otherwise.
func (v *view) mayRejoin(r, p *ag.Replica) refusal {
	switch {
	case !v.rejoinHelps(r, p):
		return refuse("", "the network between it and %s: port 5022 must be open both ways", p.Name)
	case v.knobs.without("I4"):
		return refusal{}
	case v.mayHoldMore(r):
		return refuse("", "another replica was forced to primary, and what that has lost may be on %s alone: drop the group there by hand when nothing in its copies is needed", r.Name)
	case v.ahead(r, p) && !v.explained(r) && !v.wroteNothing(r, p):
		return refuse("", "no promotion of the record explains its configuration (sequence number %d, the primary's %d): it may have been promoted by hand, and hold what the primary does not",
			r.Local.Sequence, p.Local.Sequence)
	}
	return refusal{}
}

// wroteNothing: r, whose configuration is later than that of the primary p, has acknowledged
// nothing in it that p lacks. Its commits would have waited for as many secondaries as that
// configuration asks for. Where it asks for all others, p was one of them. Else fewer can have
// followed it: the others hold an earlier one, of an earlier promotion, or of no later number
// than r had itself before (FG 5.1). p is none of them: had it followed r, its own promotion
// would be a later one than r's.
func (v *view) wroteNothing(r, p *ag.Replica) bool {
	if _, chosen := v.byHand(r.Name); !chosen && v.neededBy(r, p) {
		return true
	}
	before := v.recordedSequence(r.Name)
	if before > p.Local.Sequence {
		before = 0 // not from before
	}
	followers, cleared := 0, 0
	for _, name := range v.auth.Rule.Names() {
		z := v.snap.Find(name)
		if name == p.Name && p.Local.Sequence>>32 > 0 && p.Local.Sequence < r.Local.Sequence && v.answersOwnVolume(z).none() {
			continue
		}
		switch {
		case name == r.Name:
		case !v.answersOwnVolume(z).none() || z.Local.Sequence>>32 >= r.Local.Sequence>>32 && z.Local.Sequence > before:
			followers++
		default:
			cleared++
		}
	}
	if r.Mode == ag.ModeConfigurationOnly && cleared == 0 && followers > 0 {
		followers-- // one of them was the primary itself, which the witness cannot have been
	}
	return followers < int(r.Local.RequiredToCommit)
}

// neededBy: every commit in the configuration of r waits for all other synchronous replicas, p
// among them, which is on its own volume. What was acknowledged there is on p too: it was
// before p was promoted, and p has followed nobody since.
func (v *view) neededBy(r, p *ag.Replica) bool {
	others, member := 0, false
	for _, c := range r.Local.Configured {
		if c.Mode == ag.ModeSynchronous {
			others++
			member = member || sameServer(c.Server, p.Name)
		}
	}
	others = max(others, len(v.auth.Rule.Set)) - 1
	return r.Mode == ag.ModeSynchronous && member && others > 0 && int(r.Local.RequiredToCommit) >= others && v.answersOwnVolume(p).none()
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
	}
	return v.mayRejoin(r, p)
}

// mayHoldMore: a FORCE has lost something, or may have, and this replica has not caught up
// since: what is missed may be on it, and nowhere else.
func (v *view) mayHoldMore(r *ag.Replica) bool {
	for i, h := range v.in.Memory.History {
		if h.Kind != changeKind(ag.OperationForced) || h.From == h.To {
			continue
		}
		if contains(v.auth.Stale, r.Name) || i == 0 && r.Mode == ag.ModeAsynchronous {
			return true
		}
	}
	return false
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

func databaseNames(p *ag.Replica) []string {
	var names []string
	for _, db := range p.Local.Databases {
		names = append(names, db.Name)
	}
	return names
}
