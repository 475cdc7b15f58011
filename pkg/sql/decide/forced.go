package decide

import (
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// forcible is why this replica cannot even be forced.
func (v *view) forcible(t *ag.Replica) refusal {
	switch {
	case t == nil:
		return refuse("R12", "it is not in the spec")
	case t.Mode == ag.ModeConfigurationOnly:
		return refuse("R12", "it is %s", modeText(t.Mode))
	case !reached(t):
		return refuse("R12", "%s", reachText(t))
	case !v.itself(t).none():
		return v.itself(t)
	case t.Fenced:
		return refuse("R12", "it is fenced")
	case runOf(t).Zero():
		return refuse("R12", "its instance manager does not answer: no run can be granted the Lease")
	}
	for _, d := range t.Local.Databases {
		if d.Sync == ag.SyncReverting || d.Sync == ag.SyncInitializing {
			return refuse("R12", "database %s is %s: forcing it now can leave it unable to start (FG 4.9)", d.Name, d.Sync)
		}
		if !grouped(t, d.Name) {
			return refuse("R12", "its copy of database %s does not belong to the group: it would be PRIMARY without that database", d.Name)
		}
	}
	return refusal{}
}

// grouped: this server's copy of a database of the group belongs to the group. One that is
// being seeded, or was left behind by DROP and has not joined again, does not (FG 1.7).
func grouped(t *ag.Replica, name string) bool {
	for _, u := range t.Local.UserDatabases {
		if u.Name == name {
			return u.Grouped
		}
	}
	return false
}

// startForced is FORCE, by a person's word or by the policy's: the loss was stated
// before. It still takes the whole fence.
func (v *view) startForced(d *draft, t *ag.Replica, cause string, req *ag.Request) bool {
	g := grant{to: t}
	if v.dead(v.auth.Holder) != "" {
		g.previous = ag.ProofDeath
	}
	next := v.grant(g)
	next.Operation = v.newOperation(ag.OperationForced, ag.PhaseFencing, v.auth.LastPrimary, t.Name, cause, v.tm.D()+recoverySlack*second, req)
	seal := v.seal(t, next.Epoch, true)
	d.do(seal)
	d.do(ag.Swap{Next: next, Why: "force " + t.Name + ": " + cause, Result: v.running(next.Operation)})
	d.event(ag.EventWarning, ag.EventGranted, "Forcing %s to primary; what it lacks is lost: %s", t.Name, cause)
	d.soon("the fence")
	return true
}

// fencingForced waits for the fence, without an election.
func (v *view) fencingForced(d *draft, op *ag.Operation) bool {
	t := v.snap.Find(op.Target)
	if x := v.forcible(t); !x.none() || !certainlyRun(t, v.auth.Holder) {
		if !v.overdue(op) {
			d.find(op.Target, ag.SymptomNone, "%s", orText(x.why, "it restarted"))
			d.soon("%s to be ready", op.Target)
			return true
		}
		return v.cancel(d, op, orText(x.why, "the target restarted"))
	}
	fences := v.fences()
	if v.offlineOld(d, fences, t.Name) {
		return true
	}
	if v.awaitFence(d, fences) {
		return true
	}
	return v.promote(d, op, t, true, fences)
}

// forcedByPolicy is the only automatic road to FORCE: allowDataLoss, after nobody could
// write and nobody could be promoted for forceFailoverGracePeriodSeconds.
func (v *view) forcedByPolicy(d *draft) bool {
	if !v.pol.AllowDataLoss || v.in.Memory.BlockedSince.IsZero() {
		return false
	}
	if left := v.pol.ForceAfter - elapsed(v.in.Memory.BlockedSince, v.now); left > 0 {
		d.wait(left, "the grace period before a forced failover")
		return false
	}
	var best *ag.Replica
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if p := v.policyOf(r.Name); p == nil || !v.forcible(r).none() {
			continue
		}
		if why := v.tooFarBehind(r); why != "" {
			d.block(ag.ReasonDataLossNotBounded, "", r.Name, "it is not forced: %s", why)
			continue
		}
		if best == nil || v.lessLoss(r, best) {
			best = r
		}
	}
	if best == nil {
		return false
	}
	return v.startForced(d, best, "allowDataLoss: nobody could be promoted without loss for "+v.pol.ForceAfter.String(), nil)
}

// lessLoss: synchronous before asynchronous, then the higher number, then the one that
// is not behind.
func (v *view) lessLoss(a, b *ag.Replica) bool {
	if sa, sb := a.Mode == ag.ModeSynchronous, b.Mode == ag.ModeSynchronous; sa != sb {
		return sa
	}
	if a.Mode == ag.ModeSynchronous && a.Local.Sequence != b.Local.Sequence {
		return a.Local.Sequence > b.Local.Sequence
	}
	return behind(b, a) && !behind(a, b)
}
