package decide

import (
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// recoverySlack is what an operation may take beyond the full wait: passes, and the
// recovery of the databases, which took up to 25 s in slow promotions (FG 4.6).
const recoverySlack = 60

// startFailover is the first election and the grant to its winner: it chooses only whom
// to seal and to nominate (R10).
func (v *view) startFailover(d *draft, b ballot, kind ag.OperationKind, cause string, req *ag.Request) bool {
	to := v.snap.Find(b.winner)
	st := v.standing()
	// Without a person's word, the reason of a grant away from a silent holder is that its
	// renewals are missing: one more of them makes the swap fail.
	g := grant{to: to, missed: st == holderSilent && req == nil}
	if v.dead(v.auth.Holder) != "" {
		g.previous = ag.ProofDeath
	}
	next := v.grant(g)
	next.Operation = v.newOperation(kind, ag.PhaseFencing, v.auth.LastPrimary, to.Name, cause, v.tm.D()+v.secondsOf(recoverySlack), req)
	d.do(v.seal(to, next.Epoch, b.lastPrimary))
	d.do(ag.Swap{Next: next, Why: fmt.Sprintf("%s nominated: %s", to.Name, cause), RenewalsMatter: g.missed, Result: v.running(next.Operation)})
	d.event(ag.EventWarning, ag.EventGranted, "Nominated %s: %s", to.Name, cause)
	d.soon("the grant to %s", to.Name)
	return true
}

// fencing: the Lease was granted to a nominee; it is promoted when every earlier holder
// is proven unable to write, enough replicas have stopped following it, and a new
// reading elects the same one.
func (v *view) fencing(d *draft, op *ag.Operation) bool {
	if op.Kind == ag.OperationForced {
		return v.fencingForced(d, op)
	}
	for _, g := range v.auth.Unfenced {
		if v.neverPrimary(g) {
			// It was neither before this promotion: it became stale by being given up alone.
			v = v.after(func(a *ag.Authority) {
				a.MaybePrimary, a.Stale = less(a.MaybePrimary, g.Run.Replica), less(a.Stale, g.Run.Replica)
			})
		}
	}
	fences := v.fences()
	b := v.elect(question{planned: op.RequestID != "", avoid: v.failed(op), keep: v.earlyNominee()})
	if v.knobs.without("R10") && v.snap.Find(op.Target) != nil && !runOf(v.snap.Find(op.Target)).Zero() {
		b.winner = op.Target
	}
	if b.winner == "" || b.winner == v.auth.LastPrimary {
		if v.lastIsBack() {
			return v.returnLease(d, op)
		}
	}
	if r := v.early(); r != nil {
		return v.demoteEarly(d, op, r)
	}
	if b.winner == "" {
		v.blockBallot(d, b)
		return true
	}
	to := v.snap.Find(b.winner)
	if b.winner != v.auth.Holder.Replica || !certainlyRun(to, v.auth.Holder) {
		return v.renominate(d, op, b, to)
	}
	if v.offlineOld(d, fences, to.Name) || v.offlineTried(d, op, fences) {
		return true
	}
	p := v.promise(to, fences)
	if len(p.ask) > 0 && !p.kept {
		v.askPromises(d, op, p)
		return true
	}
	if v.awaitFence(d, fences) {
		return true
	}
	if !p.kept {
		d.block(ag.ReasonPromiseMissing, "R11", "", "%s", p.why)
		return true
	}
	return v.promote(d, op, to, b.lastPrimary, fences)
}

// early is a replica that says PRIMARY while the earlier holders are being fenced, and is none
// of those that the record knows: the nominee itself; or, where the record was made anew and
// does not know who held the lost one, any.
func (v *view) early() *ag.Replica {
	for _, r := range v.primaries() {
		if certainlyRun(r, v.auth.Holder) || v.unknownHolder() && !v.unfenced(r.Name, "") {
			return r
		}
	}
	return nil
}

// earlyNominee is the nominee under a record that was made anew for nobody, when it was found
// PRIMARY already. Another one that is no better is not taken in its place: it would
// become stale, and under such a record all must answer.
func (v *view) earlyNominee() string {
	if n := v.auth.Holder.Replica; v.auth.LastPrimary == "" && contains(v.auth.MaybePrimary, n) {
		return n
	}
	return ""
}

// unknownHolder: an earlier holder is not known, as its Lease was lost.
func (v *view) unknownHolder() bool {
	for _, g := range v.auth.Unfenced {
		if g.Run.Zero() {
			return true
		}
	}
	return false
}

// demoteEarly: an earlier FAILOVER has taken effect late, one of a record that was lost; or,
// where every earlier holder is known, a person has sent one. What the replica has acknowledged
// counts, so that it is entered as a possible primary and does not become stale; as a
// person's choice its new number says nothing, and it is entered with the one before. Then it
// is taken offline, which discards nothing, and the election is held again.
func (v *view) demoteEarly(d *draft, op *ag.Operation, r *ag.Replica) bool {
	if r.Name != v.auth.LastPrimary && !contains(v.auth.MaybePrimary, r.Name) {
		next := v.auth.Clone()
		next.MaybePrimary = append(next.MaybePrimary, r.Name)
		if !v.unknownHolder() {
			e := ag.ByHand{Replica: r.Name, Before: v.recordedSequence(r.Name)}
			e.Unordered = !later(r, e)
			next.ByHand = append(next.ByHand, e)
		}
		next.Operation = v.step(op, op.Phase, "%s is PRIMARY already; it is taken offline until the earlier holders are fenced", r.Name)
		d.do(ag.Swap{Next: next, Why: r.Name + " is PRIMARY before the earlier holders are fenced"})
	}
	v.demote(d, r, "it is PRIMARY before the earlier holders are fenced")
	return true
}

// failed is the target of this operation that has been tried already and is not to be
// chosen again while there is another.
func (v *view) failed(op *ag.Operation) string {
	if op.Aborted != "" && len(v.auth.MaybePrimary) > 0 {
		return v.auth.MaybePrimary[len(v.auth.MaybePrimary)-1]
	}
	return ""
}

// openFences finds the grant whose end is not proven, the one that takes longest.
func (v *view) openFences(fences []fence) (fence, bool) {
	var worst fence
	open := false
	for _, f := range fences {
		if f.proof == ag.ProofNone && (!open || f.left > worst.left || f.left == 0) {
			worst, open = f, true
		}
	}
	return worst, open
}

// awaitFence: a grant whose end is not proven holds the promotion up. As long as time
// will prove it that is progress; when only a proof of death can, it is a block.
func (v *view) awaitFence(d *draft, fences []fence) bool {
	f, open := v.openFences(fences)
	if !open {
		return false
	}
	name := orText(f.grant.Run.Replica, "an unknown holder")
	if f.left > 0 {
		d.find(f.grant.Run.Replica, ag.SymptomNone, "R9: %s lost the Lease and is not fenced yet: %s", name, f.why)
		d.due(f.left, "the write lease of %s to end", name)
		return true
	}
	d.block(ag.ReasonOldPrimaryNotFenced, "R9", f.grant.Run.Replica, "%s lost the Lease and is not fenced: %s", name, f.why)
	d.soon("proof that %s has ended", name)
	return true
}

// offlineOld takes an earlier holder that can be reached and still says PRIMARY offline:
// its answer in the next snapshot is the quickest proof.
func (v *view) offlineOld(d *draft, fences []fence, candidate string) bool {
	for _, f := range fences {
		r := v.snap.Find(f.grant.Run.Replica)
		if r != nil && r.Name != candidate && isPrimary(r) {
			d.do(ag.TakeOffline{Replica: r.Name, Why: "it is PRIMARY and lost the Lease", Guard: ag.Guard{PodUID: r.Pod.UID, Role: ag.RolePrimary}})
			d.soon("%s to be offline", r.Name)
			return true
		}
	}
	return false
}

// lastIsBack: the last primary is PRIMARY still, and nobody was told to become it since.
func (v *view) lastIsBack() bool {
	last := v.snap.Find(v.auth.LastPrimary)
	return isPrimary(last) && len(v.auth.MaybePrimary) == 0 && !runOf(last).Zero() && len(v.primaries()) == 1
}

// offlinePatience is how long a promotion waits for OFFLINE on an earlier target whose time
// is over: it makes things tidier, and no safer.
const offlinePatience = 60 * second

// offlineTried ends a FAILOVER that may still be under way on a target that was given up.
func (v *view) offlineTried(d *draft, op *ag.Operation, fences []fence) bool {
	for i, f := range fences {
		r := v.snap.Find(f.grant.Run.Replica)
		if f.proof != ag.ProofNone && (f.proof != ag.ProofTime || v.inPhase() > offlinePatience) || !f.grant.Promoted || f.grant.Offline ||
			!certainlyRun(r, f.grant.Run) || !notPrimary(r) || v.since(v.sighting(f.grant.Epoch).Seen) < v.statementsExpired() {
			continue
		}
		next := v.auth.Clone()
		next.Unfenced[i].Offline = true
		for j := range next.GivenUp {
			if next.GivenUp[j].Epoch == f.grant.Epoch {
				next.GivenUp[j].Ended = true
			}
		}
		next.Operation = v.step(op, op.Phase, "%s is offline: no FAILOVER is under way there", r.Name)
		d.do(ag.TakeOffline{Replica: r.Name, Why: "its promotion was given up", Guard: ag.Guard{PodUID: r.Pod.UID}})
		d.do(ag.Swap{Next: next, Why: r.Name + " is offline: no FAILOVER is under way there"})
		d.soon("the proof that %s is not PRIMARY", r.Name)
		return true
	}
	return false
}

// returnLease: the office was given to a nominee, and nobody but the last primary, which
// is back and PRIMARY still, could be elected: it gets the Lease back.
func (v *view) returnLease(d *draft, op *ag.Operation) bool {
	last := v.snap.Find(v.auth.LastPrimary)
	g := grant{to: last}
	if h := v.holder(); h != nil && certainlyRun(h, v.auth.Holder) && notPrimary(h) {
		g.previous = ag.ProofDemoted
	}
	next := v.grant(g)
	next.Operation = nil
	next.Stale = less(next.Stale, last.Name)
	d.do(ag.Swap{Next: next, Why: last.Name + " is PRIMARY still and gets the Lease back",
		Change: v.change(op, last.Name, resultAborted, next.Epoch), Result: v.failedResult(op, "the last primary is back")})
	d.soon("the next look")
	return true
}

// renominate passes the Lease to another replica, or another run: fences that were
// proven stay proven.
func (v *view) renominate(d *draft, op *ag.Operation, b ballot, to *ag.Replica) bool {
	g := grant{to: to}
	switch h := v.holder(); {
	case v.dead(v.auth.Holder) != "":
		g.previous = ag.ProofDeath
	case h != nil && certainlyRun(h, v.auth.Holder) && notPrimary(h):
		// Never told to become PRIMARY in this grant: phase promoting was not reached.
		g.previous = ag.ProofDemoted
	}
	next := v.grant(g)
	why := to.Name + " has the better numbers now"
	if to.Name == op.Target {
		why = to.Name + " is another run now"
	}
	next.Operation = v.step(op, ag.PhaseFencing, "%s: nominated", why)
	next.Operation.Target = to.Name
	d.do(v.seal(to, next.Epoch, b.lastPrimary))
	d.do(ag.Swap{Next: next, Why: why})
	d.soon("the grant to %s", to.Name)
	return true
}

// promote is the step into phase promoting, with its FAILOVER right behind it (R5).
func (v *view) promote(d *draft, op *ag.Operation, to *ag.Replica, lastPrimary bool, fences []fence) bool {
	if why := v.unsealed(to, v.auth.Epoch, lastPrimary); why != "" {
		d.do(v.seal(to, v.auth.Epoch, lastPrimary))
		d.block(ag.ReasonManagersNotSealed, "R22", "", "%s", why)
		return true
	}
	next := v.auth.Clone()
	next.Unfenced, next.ByHand = nil, nil
	next.Rule = v.weaker(to)
	if op.Kind == ag.OperationForced {
		// What the others hold beyond it is discarded, and what it lacks is lost: none of
		// them counts until it has caught up.
		v.staleButFor(&next, to)
	}
	next.Sequences = v.sequences()
	if to.Name != next.LastPrimary {
		// The newest comes last: of several, it is the one that was complete when the others could no longer write.
		next.MaybePrimary = append(less(next.MaybePrimary, to.Name), to.Name)
	} else if len(next.MaybePrimary) > 0 {
		next.MaybePrimary = append(next.MaybePrimary, to.Name)
	}
	next.Operation = v.step(op, ag.PhasePromoting, "promote %s%s", to.Name, fencedText(fences))
	next.Operation.Before = v.before(op, to)
	d.do(ag.Swap{Next: next, Why: "promote " + to.Name})
	d.do(v.failoverStatement(to, v.auth.Epoch, op.Kind == ag.OperationForced))
	d.event(ag.EventNormal, ag.EventPromoted, "Promoting %s (epoch %d)", to.Name, v.auth.Epoch)
	d.soon("%s to become PRIMARY", to.Name)
	return true
}

// before is Operation.Before for a promotion of this replica.
func (v *view) before(op *ag.Operation, to *ag.Replica) int64 {
	if op.Kind == ag.OperationForced || to.Name == v.auth.LastPrimary || contains(v.auth.MaybePrimary, to.Name) {
		return 0
	}
	return to.Local.Sequence
}

// failoverStatement is FAILOVER on this replica. CLUSTER_TYPE = NONE knows only the
// forced form; a planned move has then been proven complete by the comparison of R20.
func (v *view) failoverStatement(to *ag.Replica, epoch int64, force bool) ag.Promote {
	return ag.Promote{Replica: to.Name, Epoch: epoch, Lease: v.tm.L, Force: force || !v.pol.External, Lossless: !force,
		Guard: ag.Guard{PodUID: to.Pod.UID, Role: to.Local.Role, Sequence: to.Local.Sequence}}
}

func fencedText(fences []fence) string {
	s := ""
	for _, f := range fences {
		s += fmt.Sprintf("; %s fenced: %s", orText(f.grant.Run.Replica, "an unknown holder"), f.why)
	}
	return s
}

// blockBallot says why nobody is promoted.
func (v *view) blockBallot(d *draft, b ballot) {
	d.block(b.reason, b.rule, "", "%s", b.why)
	for _, x := range b.refusals {
		d.find(x.replica, ag.SymptomNone, "%s: %s", x.rule, x.why)
	}
}
