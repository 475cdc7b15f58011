package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// startSwitchover is the one path of every planned move: the operation is recorded, the
// label goes, the primary is taken offline.
func (v *view) startSwitchover(d *draft, kind ag.OperationKind, target, cause string, limit time.Duration, req *ag.Request) bool {
	p := v.holder()
	next := v.auth.Clone()
	next.Operation = v.newOperation(kind, ag.PhaseDemoting, p.Name, target, cause, limit, req)
	d.do(ag.Swap{Next: next, Why: fmt.Sprintf("%s from %s to %s: %s", kind, p.Name, target, cause), Result: v.running(next.Operation)})
	d.event(ag.EventNormal, ag.EventRequested, "Moving the primary from %s to %s: %s", p.Name, target, cause)
	v.demote(d, p, "planned move to "+target)
	return true
}

func demoteReason(op *ag.Operation) string {
	if renewing(op) {
		return "to be promoted again"
	}
	return "planned move to " + op.Target
}

// demote takes the label away and then takes the primary offline.
func (v *view) demote(d *draft, p *ag.Replica, why string) {
	if p.Pod.RoleLabel != ag.RoleUnknown {
		d.label(p.Name, ag.RoleUnknown)
	}
	d.do(ag.TakeOffline{Replica: p.Name, Why: why, Guard: ag.Guard{PodUID: p.Pod.UID, Role: ag.RolePrimary}})
	d.soon("%s to be offline", p.Name)
}

// demoting: the old primary is being taken offline; it still holds the Lease.
func (v *view) demoting(d *draft, op *ag.Operation) bool {
	p, t := v.holder(), v.snap.Find(op.Target)
	switch st := v.standing(); {
	case st == holderDead:
		return v.cancel(d, op, "the primary's run has ended: "+v.dead(v.auth.Holder))
	case st == holderWriting && v.overdue(op):
		return v.cancel(d, op, "the primary was not offline in time")
	case st == holderWriting:
		if x := v.plannedRefusal(t); !x.none() && !renewing(op) {
			return v.cancel(d, op, fmt.Sprintf("%s: %s: %s", op.Target, x.rule, x.why))
		}
		v.demote(d, p, demoteReason(op))
		return true
	case st == holderNotPrimary && sameRun(p, v.auth.Holder) && renewing(op):
		return v.renew(d, op, p)
	case st == holderNotPrimary && sameRun(p, v.auth.Holder):
		return v.handOver(d, op, p, t)
	case v.overdue(op):
		return v.cancel(d, op, "the primary did not answer in time")
	}
	d.find(v.auth.Holder.Replica, ag.SymptomNone, "%s", reachText(p))
	d.soon("%s to answer", v.auth.Holder.Replica)
	return true
}

// handOver: the old primary is confirmed offline. R20 reads both again: the target must
// hold all that the old primary holds. Otherwise the old primary, which never lost the
// Lease, is promoted again.
func (v *view) handOver(d *draft, op *ag.Operation, p, t *ag.Replica) bool {
	why := v.incomplete(t, p)
	if why == "" && v.overdue(op) && !v.pol.External {
		why = "" // without a Lease there is nothing to give back: go on
	} else if why == "" && v.overdue(op) {
		why = "the time for the move is over"
	}
	if why != "" {
		if v.awaitEarlier(d, p) {
			return true
		}
		next := v.auth.Clone()
		next.Unfenced = nil
		next.Operation = v.step(op, ag.PhasePromoting, "%s; %s is promoted again", why, p.Name)
		next.Operation.Before = 0
		next.Operation.Aborted, next.Operation.Target = why, p.Name
		next.Operation.Deadline = next.Operation.StartedAt.Add(elapsed(op.StartedAt, v.now) + recoverySlack*time.Second)
		d.do(ag.Swap{Next: next, Why: why + "; " + p.Name + " is promoted again"})
		d.do(v.failoverStatement(p, v.auth.Epoch, false))
		d.event(ag.EventWarning, ag.EventAborted, "The move to %s was given up: %s; %s is promoted again", op.Target, why, p.Name)
		d.soon("%s to become PRIMARY", p.Name)
		return true
	}
	if _, open := v.openFences(v.fences()); open {
		return v.toFencing(d, op, t)
	}
	next := v.grant(grant{to: t, previous: ag.ProofDemoted, planned: true})
	next.Unfenced, next.Rule = nil, v.weaker(t)
	next.MaybePrimary = append(less(next.MaybePrimary, t.Name), t.Name)
	next.Operation = v.step(op, ag.PhasePromoting, "%s is offline; %s holds all of it (sequence %d); promote %s", p.Name, t.Name, t.Local.Sequence, t.Name)
	next.Operation.Before = v.before(op, t)
	d.do(v.seal(t, next.Epoch, false))
	d.do(ag.Swap{Next: next, Why: p.Name + " is offline and " + t.Name + " holds all of it"})
	d.do(v.failoverStatement(t, next.Epoch, false))
	d.event(ag.EventNormal, ag.EventPromoted, "Promoting %s (epoch %d)", t.Name, next.Epoch)
	d.soon("%s to become PRIMARY", t.Name)
	return true
}

// awaitEarlier: the old primary is to be promoted again, and an earlier holder than it is
// not fenced yet. FAILOVER waits for that (R9).
func (v *view) awaitEarlier(d *draft, p *ag.Replica) bool {
	fences := v.fences()
	return v.offlineOld(d, fences, p.Name) || v.awaitFence(d, fences)
}

// toFencing: an earlier holder is not fenced yet; the move goes on as a failover does.
func (v *view) toFencing(d *draft, op *ag.Operation, t *ag.Replica) bool {
	next := v.grant(grant{to: t, previous: ag.ProofDemoted, planned: true})
	next.Operation = v.step(op, ag.PhaseFencing, "%s nominated; an earlier holder is not fenced yet", t.Name)
	d.do(v.seal(t, next.Epoch, false))
	d.do(ag.Swap{Next: next, Why: t.Name + " nominated; an earlier holder is not fenced yet"})
	d.soon("the fence")
	return true
}

// incomplete is R20: why the target does not hold all that the old primary holds.
func (v *view) incomplete(t, p *ag.Replica) string {
	if t == nil {
		return "the target is not in the spec"
	}
	if x := v.answers(t); !x.none() {
		return fmt.Sprintf("%s: %s", t.Name, x.why)
	}
	if x := v.mayWin(t, true); !x.none() {
		return fmt.Sprintf("%s: %s", t.Name, x.why)
	}
	if v.knobs.without("R20") {
		return ""
	}
	if t.Local.Sequence != p.Local.Sequence {
		return fmt.Sprintf("R20: the sequence number of %s is %d, that of %s is %d", t.Name, t.Local.Sequence, p.Name, p.Local.Sequence)
	}
	if behind(t, p) {
		return fmt.Sprintf("R20: %s is behind %s in some database", t.Name, p.Name)
	}
	return ""
}

// plannedRefusal is why a live primary would not be moved to this replica: the same as
// for a failover, and it must be synchronised in the primary's own view.
func (v *view) plannedRefusal(t *ag.Replica) refusal {
	if t == nil {
		return refuse("R12", "it is not in the spec")
	}
	if x := v.answers(t); !x.none() {
		return x
	}
	if x := v.mayWin(t, true); !x.none() {
		return x
	}
	if x := v.disputed(); !x.none() {
		return x
	}
	return v.notSynchronized(t)
}

// notSynchronized: what the primary says about the replica's copies.
func (v *view) notSynchronized(t *ag.Replica) refusal {
	switch {
	case t.Remote == nil:
		return refuse("R12", "the primary does not say that it is synchronised")
	case !t.Remote.Connected:
		return refuse("R12", "it is not connected to the primary")
	}
	for _, db := range t.Remote.Databases {
		if db.Sync != ag.SyncSynchronized {
			return refuse("R12", "database %s is %s", db.Name, orText(string(db.Sync), "in an unknown state"))
		}
	}
	return refusal{}
}
