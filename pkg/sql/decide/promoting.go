package decide

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// promoting: FAILOVER was, or may have been, sent to the target.
func (v *view) promoting(d *draft, op *ag.Operation) bool {
	t := v.snap.Find(v.auth.Holder.Replica)
	if isPrimary(t) && sameRun(t, v.auth.Holder) {
		return v.arrived(d, op, t)
	}
	answer := v.answerOf(t)
	switch {
	case answer != nil && answer.Msg == ag.MsgNotSynchronized && notPrimary(t):
		return v.giveBack(d, op, t)
	case v.dead(v.auth.Holder) != "":
		return v.failAway(d, op, "the target's run has ended: "+v.dead(v.auth.Holder), ag.ProofDeath)
	case v.endGivenUp(d): // an earlier target that is back must not take the votes
		return true
	case v.inPhase() < v.statementsExpired():
		d.wait(v.statementsExpired()-v.inPhase(), "%s to become PRIMARY", v.auth.Holder.Replica)
		return true
	// An operation that was extended is given all that time again by a controller that has just come.
	case v.overdue(op), v.inPhase() >= v.tm.D()+recoverySlack*second:
		return v.failAway(d, op, "it did not become PRIMARY in time", ag.ProofNone)
	case answer != nil && answer.Accepted || t == nil || !notPrimary(t):
		text := "FAILOVER was sent and it is not PRIMARY yet: it recovers, or waits for a majority to take its configuration" + v.silentOnes()
		if v.inPhase() < promotionPatience {
			d.find(v.auth.Holder.Replica, ag.SymptomNone, "%s", text)
		} else {
			d.block(ag.ReasonPromotionPending, "", v.auth.Holder.Replica, "%s", text)
		}
		d.soon("%s to become PRIMARY", v.auth.Holder.Replica)
		return true
	}
	return v.promoteAgain(d, op, t)
}

// promotionPatience is how long a promotion may take before it is called blocked: slow
// ones took up to 25 s (FG 4.6).
const promotionPatience = 30 * time.Second

// silentOnes names the replicas that do not answer, whose vote may be what is missing.
func (v *view) silentOnes() string {
	s := ""
	for i := range v.snap.Replicas {
		if r := &v.snap.Replicas[i]; !reached(r) && r.Mode != ag.ModeAsynchronous {
			s += " " + r.Name
		}
	}
	if s == "" {
		return ""
	}
	return "; not answering:" + s
}

// statementsExpired is when every FAILOVER of this phase has taken effect or expired: it
// is sent at most q after the swap, and expires q after it was sent.
func (v *view) statementsExpired() time.Duration { return 2*v.tm.Q + v.tm.M }

// answerOf is what FAILOVER was answered in this epoch, if it was.
func (v *view) answerOf(t *ag.Replica) *ag.Promotion {
	p := v.in.Memory.Promotion
	if p == nil || t == nil || p.Replica != t.Name || p.Epoch != v.auth.Epoch {
		return nil
	}
	return p
}

// promoteAgain: the statement did not reach the server, or expired, or failed for
// another reason than 41142. A new swap comes first, so that q counts anew.
func (v *view) promoteAgain(d *draft, op *ag.Operation, t *ag.Replica) bool {
	if !certainlyRun(t, v.auth.Holder) {
		return v.failAway(d, op, "the target restarted", ag.ProofNone)
	}
	if a := v.answerOf(t); a != nil && elapsed(a.At, v.now) < v.statementsExpired() {
		d.wait(v.statementsExpired()-elapsed(a.At, v.now), "the last FAILOVER on %s to expire", t.Name)
		return true
	}
	next := v.auth.Clone()
	next.Operation = v.step(op, ag.PhasePromoting, "promote %s again", t.Name)
	d.do(ag.Swap{Next: next, Why: "promote " + t.Name + " again"})
	d.do(v.failoverStatement(t, v.auth.Epoch, op.Kind == ag.OperationForced))
	d.soon("%s to become PRIMARY", t.Name)
	return true
}

// extend gives an operation that goes on in another way the time for it.
func (v *view) extend(op, next *ag.Operation) {
	spent := max(elapsed(op.StartedAt, v.now), v.since(v.watch.OperationSeen))
	next.Deadline = next.StartedAt.Add(spent + v.tm.D() + recoverySlack*time.Second)
}

// arrived: the target is PRIMARY; it is published once its databases are ONLINE.
func (v *view) arrived(d *draft, op *ag.Operation, t *ag.Replica) bool {
	if online(t) {
		return v.finish(d, op, t)
	}
	next := v.confirmed(t)
	next.Operation = v.step(op, ag.PhasePublishing, "%s is PRIMARY", t.Name)
	d.do(ag.Swap{Next: next, Why: t.Name + " is PRIMARY, its databases are not ONLINE yet"})
	d.soon("the databases of %s to be ONLINE", t.Name)
	return true
}

// publishing: PRIMARY was seen; the operation ends when the databases are ONLINE, or at
// its deadline: a primary that is up is not taken away for a database that is not.
func (v *view) publishing(d *draft, op *ag.Operation) bool {
	t := v.snap.Find(v.auth.Holder.Replica)
	switch {
	case isPrimary(t) && sameRun(t, v.auth.Holder) && (online(t) || badDatabase(t) != "" || v.overdue(op)):
		return v.finish(d, op, t)
	case isPrimary(t) && sameRun(t, v.auth.Holder):
		d.find(t.Name, ag.SymptomNone, "database %s is not ONLINE yet", recovering(t))
		d.soon("the databases of %s to be ONLINE", t.Name)
		return true
	case notPrimary(t) || v.dead(v.auth.Holder) != "" || v.overdue(op):
		return v.cancel(d, op, orText(v.auth.Holder.Replica, "the target")+" is no longer PRIMARY")
	}
	d.soon("%s to answer", v.auth.Holder.Replica)
	return true
}

// giveBack: 41142 proves that the target never was primary. It gives the office back;
// the next candidate is chosen only if its number equals the highest.
func (v *view) giveBack(d *draft, op *ag.Operation, t *ag.Replica) bool {
	w := v
	if op.Before > 0 { // else what it holds may be of an earlier promotion
		w = v.after(func(a *ag.Authority) { a.MaybePrimary = less(a.MaybePrimary, t.Name) })
	}
	b := w.elect(question{planned: op.RequestID != ""})
	why := t.Name + " answered FAILOVER with Msg 41142: it is not synchronised"
	if b.winner == "" || b.winner == t.Name {
		next := w.auth.Clone()
		next.Holder, next.Operation = ag.Run{}, nil
		next.Epoch++
		d.do(ag.Swap{Next: next, Why: why, Result: v.failedResult(op, why)})
		v.blockBallot(d, b)
		d.soon("the next election")
		return true
	}
	return w.nominateAfter(d, op, b, why, ag.ProofRefused)
}

// failAway is R21: giving a target up is a failover away from it. It may have been
// primary, so that it is stale, and unfenced until proven; then the election decides.
func (v *view) failAway(d *draft, op *ag.Operation, why string, proof ag.Proof) bool {
	t := v.auth.Holder.Replica
	// The candidate must win without the numbers of the target that is given up.
	w := v.after(func(a *ag.Authority) { a.Stale = with(a.Stale, t) })
	b := w.elect(question{planned: op.RequestID != "", avoid: t})
	if v.knobs.without("R21") {
		b.winner = op.From
	}
	if b.winner == "" && op.Kind == ag.OperationForced {
		// What was ordered has failed, and nobody else can be elected: a person, or the
		// policy, may order again. The office stays where it is.
		return v.cancel(d, op, why)
	}
	if b.winner == "" {
		v.blockBallot(d, b)
		d.find(t, ag.SymptomNone, "%s", why)
		d.soon("another candidate, or %s to become PRIMARY", t)
		return true
	}
	return w.nominateAfter(d, op, b, why, proof)
}

// after is a view with another record, for an election under it.
func (v *view) after(change func(*ag.Authority)) *view {
	w := *v
	w.auth = v.auth.Clone()
	change(&w.auth)
	return &w
}

// nominateAfter passes the Lease on after a failed promotion.
func (v *view) nominateAfter(d *draft, op *ag.Operation, b ballot, why string, proof ag.Proof) bool {
	to := v.snap.Find(b.winner)
	next := v.grant(grant{to: to, previous: proof, planned: proof == ag.ProofRefused})
	if v.knobs.without("R21") {
		next.Unfenced, next.GivenUp = nil, nil
	}
	next.Operation = v.step(op, ag.PhaseFencing, "%s; %s nominated", why, to.Name)
	next.Operation.Aborted, next.Operation.Target = why, to.Name
	v.extend(op, next.Operation)
	d.do(v.seal(to, next.Epoch, b.lastPrimary))
	d.do(ag.Swap{Next: next, Why: why + "; " + to.Name + " nominated"})
	d.event(ag.EventWarning, ag.EventAborted, "%s; %s is nominated", why, to.Name)
	d.soon("the grant to %s", to.Name)
	return true
}
