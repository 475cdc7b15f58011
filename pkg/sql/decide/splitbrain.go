package decide

import (
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ruleTwoPrimaries: a replica says PRIMARY and does not hold the Lease. Beside a holder
// that is, or may be, PRIMARY it is taken offline; where it is alone it is followed if
// the rules allow, else shown. One of a later promotion than the holder's is a person's
// choice (byhand.go). Nothing is discarded.
func ruleTwoPrimaries(v *view, d *draft) bool {
	strays := v.strays()
	if len(strays) == 0 {
		return v.settleByHand(d)
	}
	if v.knownToOperation(strays) {
		return false
	}
	if claimed, known := v.chosenByHand(d, strays); known {
		return claimed
	}
	st := v.standing()
	if len(strays) == 1 && st != holderWriting && v.holderIsOut(st) {
		return v.follow(d, strays[0])
	}
	x := v.loser(strays)
	if x == nil {
		d.block(ag.ReasonTwoPrimaries, "", "", "%d replicas say PRIMARY with equal sequence numbers and none holds the Lease: take the wrong one offline by hand", len(strays))
		return true
	}
	if !contains(v.auth.Stale, x.Name) && v.auth.Exists {
		next := v.auth.Clone()
		next.Stale = with(next.Stale, x.Name)
		d.do(ag.Swap{Next: next, Why: x.Name + " says PRIMARY without the Lease: stale"})
	}
	v.demoteStray(d, x)
	return true
}

func (v *view) demoteStray(d *draft, x *ag.Replica) {
	if x.Pod.RoleLabel != ag.RoleUnknown {
		d.label(x.Name, ag.RoleUnknown)
	}
	d.find(x.Name, ag.SymptomStalePrimary, "it says PRIMARY and does not hold the Lease (holder: %s)", orText(v.auth.Holder.Replica, "nobody"))
	d.do(ag.TakeOffline{Replica: x.Name, Why: "it is PRIMARY without the Lease", Guard: ag.Guard{PodUID: x.Pod.UID, Role: ag.RolePrimary}})
	d.event(ag.EventWarning, ag.EventDemoted, "%s says PRIMARY and does not hold the Lease: taken offline, nothing is discarded", x.Name)
	d.soon("%s to be offline", x.Name)
}

// knownToOperation: the operation in flight deals with them: earlier holders in phase
// fencing, and whoever says PRIMARY where one of those is not known.
func (v *view) knownToOperation(strays []*ag.Replica) bool {
	op := v.auth.Operation
	if op == nil || op.Phase != ag.PhaseFencing && op.Phase != ag.PhaseAborting {
		return false
	}
	for _, r := range strays {
		if !v.unfenced(r.Name, "") && !v.unknownHolder() {
			return false
		}
	}
	return true
}

// holderIsOut: the holder is known not to be PRIMARY, so that a stray cannot be the second one.
func (v *view) holderIsOut(st standing) bool {
	return v.auth.Operation == nil && (st == holderNone || st == holderDead || st == holderNotPrimary)
}

// loser among strays: all of them beside a holder; among several alone, the lowest
// sequence number. A tie has none.
func (v *view) loser(strays []*ag.Replica) *ag.Replica {
	if len(strays) == 1 {
		return strays[0]
	}
	if v.standing() == holderWriting {
		return strays[0]
	}
	lowest, tie := strays[0], false
	for _, r := range strays[1:] {
		switch {
		case r.Local.Sequence < lowest.Local.Sequence:
			lowest, tie = r, false
		case r.Local.Sequence == lowest.Local.Sequence:
			tie = true
		}
	}
	if tie {
		return nil
	}
	return lowest
}

// follow: somebody's own FAILOVER made this replica PRIMARY, and the holder is not. It
// gets the Lease where R12 and R13 allow.
func (v *view) follow(d *draft, x *ag.Replica) bool {
	forced := v.forcedEvidence(x)
	confirmed := v.in.Request != nil && v.in.Request.Kind == requestFailover && v.in.Request.AllowDataLoss &&
		v.in.Request.Target == x.Name && v.in.Request.ID != v.in.Memory.HandledRequest
	r := v.followRefusal(x)
	switch {
	case runOf(x).Zero():
		d.block(ag.ReasonPrimaryNotFollowed, "R12", x.Name, "it was made PRIMARY by hand, and its instance manager does not answer")
		return true
	case confirmed:
	case forced != "":
		d.block(ag.ReasonForcedByHand, "R12", x.Name, "it was forced to PRIMARY by hand (%s): confirm with a failover request to it that accepts data loss", forced)
		return v.staleOthers(d, x)
	case !r.none():
		d.block(ag.ReasonPrimaryNotFollowed, r.rule, x.Name, "it was made PRIMARY by hand and is not followed: %s", r.why)
		return true
	}
	g := grant{to: x, previous: ag.ProofDemoted}
	if v.dead(v.auth.Holder) != "" {
		g.previous = ag.ProofDeath
	}
	next := v.grant(g)
	next.Operation = nil
	next.LastPrimary, next.MaybePrimary, next.Stale = x.Name, nil, less(next.Stale, x.Name)
	next.ByHand = nil
	cause := "FAILOVER by hand"
	if x.Name == v.auth.LastPrimary {
		cause = "it restarted and came back PRIMARY" // CLUSTER_TYPE = NONE (FG 4.1)
	}
	op := &ag.Operation{Kind: ag.OperationFailover, From: v.auth.LastPrimary, Target: x.Name, Cause: cause, StartedAt: v.now}
	c := v.change(op, x.Name, "done", next.Epoch)
	c.Kind = "manual"
	var res *ag.Result
	if confirmed {
		c.Kind, c.RequestID = "forced", v.in.Request.ID
		v.staleButFor(&next, x)
		res = &ag.Result{ID: v.in.Request.ID, Kind: requestFailover, Target: x.Name, Result: ResultDone, Message: x.Name + " is primary", CompletedAt: v.now}
	}
	if c.From == c.To && !confirmed {
		c = nil // the primary is the one that it was
	}
	d.do(ag.Swap{Next: next, Why: x.Name + " is PRIMARY and is followed: " + cause, Change: c, Result: res})
	d.event(ag.EventNormal, ag.EventPublished, "%s is PRIMARY and is followed: %s (epoch %d)", x.Name, cause, next.Epoch)
	d.soon("the labels")
	return true
}

// followRefusal is R12 and R13 for a replica that is PRIMARY already.
func (v *view) followRefusal(x *ag.Replica) refusal {
	if last := v.lastOnOwnVolume(question{}); last != nil && last.Name == x.Name && len(v.auth.ByHand) == 0 {
		return refusal{} // complete by definition
	}
	if r := v.answers(x); !r.none() {
		return r
	}
	if r := v.disputed(); !r.none() {
		return r
	}
	if x.Fenced {
		return refuse("R12", "it is fenced")
	}
	n := 0
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Mode != ag.ModeSynchronous || !v.answers(r).none() {
			continue
		}
		n++
		if r.Local.Sequence > x.Local.Sequence {
			return refuse("R12", "the sequence number of %s is %d, above its %d", r.Name, r.Local.Sequence, x.Local.Sequence)
		}
	}
	_, wx := v.witnessAnswers()
	if needed, ok := v.enough(n, wx.none()); !ok {
		return refuse("R13", "%d of %d needed answers", n, needed)
	}
	return refusal{}
}

// forcedEvidence: FORCE suspends the copies on the others (FG 4.9).
func (v *view) forcedEvidence(x *ag.Replica) string {
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Name == x.Name {
			continue
		}
		for _, db := range r.Local.Databases {
			if db.Suspended && db.SuspendReason == suspendedByPartner {
				return fmt.Sprintf("database %s on %s is suspended: %s", db.Name, r.Name, db.SuspendReason)
			}
		}
	}
	return ""
}

// staleOthers: FORCE by hand makes all others stale until it is confirmed.
func (v *view) staleOthers(d *draft, x *ag.Replica) bool {
	next := v.auth.Clone()
	v.staleButFor(&next, x)
	if len(next.Stale) != len(v.auth.Stale) {
		d.do(ag.Swap{Next: next, Why: x.Name + " was forced by hand: the others are stale"})
	}
	return true
}
