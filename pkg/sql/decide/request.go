package decide

import (
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// requestFailover is the kind of order that is decided here; other kinds are the
// controller's own.
const requestFailover = "failover"

// ruleRequest carries out a person's order to move the primary, or refuses it with the
// rule that does.
func ruleRequest(v *view, d *draft) bool {
	q := v.in.Request
	if q == nil || q.Kind != requestFailover || q.ID == v.in.Memory.HandledRequest {
		return false
	}
	if last := v.in.Memory.LastResult; last != nil && last.ID == q.ID && last.Result == ResultRunning {
		return v.settle(d, q)
	}
	p := v.primary()
	if p == nil && v.auth.Holder.Replica != "" && q.ExpectedPrimary != "" && q.ExpectedPrimary != v.auth.Holder.Replica ||
		p != nil && q.ExpectedPrimary != "" && q.ExpectedPrimary != p.Name {
		return d.answer(q, ResultRefused, ag.ReasonStaleView, "the primary is %s, not %s", orText(v.auth.Holder.Replica, "nobody"), q.ExpectedPrimary)
	}
	if p != nil && q.ExpectedSequence > 0 && p.Local.Sequence > 0 && q.ExpectedSequence != p.Local.Sequence {
		return d.answer(q, ResultRefused, ag.ReasonStaleView, "the group's configuration has sequence number %d now, not %d: look again", p.Local.Sequence, q.ExpectedSequence)
	}
	if q.Target != "" && v.snap.Find(q.Target) == nil {
		return d.answer(q, ResultRefused, ag.ReasonUnknownReplica, "there is no replica %s", q.Target)
	}
	if p != nil && q.Target == p.Name && q.AllowDataLoss && (v.commitStuck(p) || v.openByHand()) && v.pol.External {
		return v.startRenewal(d, p, ag.OperationForced, requestCause(q), q)
	}
	if p != nil && q.Target == p.Name {
		return d.answer(q, ResultDone, ag.ReasonAlreadyPrimary, "%s is primary already", p.Name)
	}
	if q.AllowDataLoss {
		return v.requestForced(d, q, p)
	}
	if p != nil {
		return v.requestPlanned(d, q, p)
	}
	return v.requestNow(d, q)
}

// settle: the order was begun and no operation runs any more, but its end was not
// recorded: the process that drove it was interrupted.
func (v *view) settle(d *draft, q *ag.Request) bool {
	p := v.primary()
	target := v.in.Memory.LastResult.Target
	if p != nil && (p.Name == q.Target || p.Name == target) {
		return d.answer(q, ResultDone, "", "%s is primary", p.Name)
	}
	if p == nil && v.standing() == holderSilent {
		return false // cannot tell yet
	}
	return d.answer(q, ResultFailed, ag.ReasonNoSafeCandidate, "the move to %s was given up", orText(target, q.Target))
}

// requestPlanned moves a live primary.
func (v *view) requestPlanned(d *draft, q *ag.Request, p *ag.Replica) bool {
	target := q.Target
	if target == "" {
		target = v.plannedTarget()
	}
	if target == "" {
		return d.answer(q, ResultRefused, ag.ReasonNoSafeCandidate, "no replica could take over without loss now: %s", v.readinessText(p.Name))
	}
	if x := v.plannedRefusal(v.snap.Find(target)); !x.none() {
		return d.answer(q, ResultRefused, ag.ReasonNoSafeCandidate, "%s: %s: %s", target, x.rule, x.why)
	}
	return v.startSwitchover(d, ag.OperationSwitchover, target, requestCause(q), v.pol.SwitchoverMax, q)
}

// plannedTarget is the replica to which a live primary would be moved, or nothing.
func (v *view) plannedTarget() string {
	p := v.holder()
	b := v.elect(question{without: []string{p.Name}, live: true})
	best := ""
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Name == p.Name || r.Mode != ag.ModeSynchronous || !v.plannedRefusal(r).none() {
			continue
		}
		if pol := v.policyOf(r.Name); pol == nil || !pol.Auto {
			continue
		}
		if r.Name == b.winner {
			return r.Name
		}
		if best == "" {
			best = r.Name
		}
	}
	return best
}

// requestNow: the primary does not answer, or there is none, and a person does not want
// to wait for the suspicion to ripen. All other rules hold.
func (v *view) requestNow(d *draft, q *ag.Request) bool {
	if !v.pol.External {
		return d.answer(q, ResultRefused, ag.ReasonAutomaticFailoverOff, "clusterType NONE moves only a primary that answers; without one only a failover that accepts data loss is possible")
	}
	b := v.elect(question{planned: true})
	if b.winner == "" {
		return d.answer(q, ResultRefused, b.reason, "%s: %s", b.rule, b.why)
	}
	if q.Target != "" && q.Target != b.winner {
		x, _ := b.refusalOf(q.Target)
		return d.answer(q, ResultRefused, ag.ReasonNoSafeCandidate, "%s would win, not %s%s", b.winner, q.Target, colon(x))
	}
	return v.startFailover(d, b, ag.OperationFailover, requestCause(q), q)
}

// requestForced: a person accepts the loss.
func (v *view) requestForced(d *draft, q *ag.Request, p *ag.Replica) bool {
	t := v.snap.Find(q.Target)
	if q.Target == "" {
		return d.answer(q, ResultRefused, ag.ReasonUnknownReplica, "a failover that accepts data loss must name its target")
	}
	if x := v.forcible(t); !x.none() {
		return d.answer(q, ResultRefused, ag.ReasonNoSafeCandidate, "%s: %s: %s", q.Target, x.rule, x.why)
	}
	if p != nil && v.plannedRefusal(t).none() {
		// Nothing need be lost: the planned path.
		return v.startSwitchover(d, ag.OperationSwitchover, t.Name, requestCause(q), v.pol.SwitchoverMax, q)
	}
	if q.MaxLossSeconds > 0 {
		lag, known := lagOf(t)
		if !known {
			return d.answer(q, ResultRefused, ag.ReasonDataLossNotBounded, "%s: how far it is behind is not known, and at most %d s may be lost", t.Name, q.MaxLossSeconds)
		}
		if lag > int64(q.MaxLossSeconds) {
			return d.answer(q, ResultRefused, ag.ReasonDataLossNotBounded, "%s is %d s behind, and at most %d s may be lost", t.Name, lag, q.MaxLossSeconds)
		}
	}
	return v.startForced(d, t, requestCause(q), q)
}

// lagOf is how far the primary says that the replica is behind, at worst.
func lagOf(t *ag.Replica) (int64, bool) {
	if t.Remote == nil {
		return 0, false
	}
	return ag.WorstLag(t.Remote.Databases)
}

func requestCause(q *ag.Request) string {
	s := "requested"
	if q.By != "" {
		s += " by " + q.By
	}
	if q.Reason != "" {
		s += ": " + q.Reason
	}
	return s
}

func colon(r refusal) string {
	if r.none() {
		return ""
	}
	return ": " + string(r.rule) + ": " + r.why
}

// answer ends an order.
func (d *draft) answer(q *ag.Request, result, reason, format string, args ...any) bool {
	r := &ag.Result{ID: q.ID, Kind: q.Kind, Target: q.Target, Result: result, Reason: reason, Message: fmt.Sprintf(format, args...), CompletedAt: d.v.now}
	d.d.Memory.LastResult, d.d.Memory.HandledRequest = r, q.ID
	if result == ResultRefused {
		d.event(ag.EventWarning, ag.EventRefused, "Failover request %s was refused: %s", q.ID, r.Message)
	}
	return false
}
