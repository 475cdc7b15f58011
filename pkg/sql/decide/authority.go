package decide

import (
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ruleAuthority is R4: a Lease that is missing, older than what a manager has seen, or of
// another custom resource is no proof for anyone. It is made anew: epoch above all, k = 0
// over all synchronous replicas, everybody but the observed PRIMARY stale.
func ruleAuthority(v *view, d *draft) bool {
	why := v.lost()
	if why == "" {
		return false
	}
	primaries := v.primaries()
	if len(primaries) > 1 {
		d.block(ag.ReasonAuthorityLost, "R4", "", "%s, and %d replicas say PRIMARY: take one of them offline by hand", why, len(primaries))
		return true
	}
	var holder *ag.Replica
	if len(primaries) == 1 {
		holder = primaries[0]
		if runOf(holder).Zero() {
			d.block(ag.ReasonAuthorityLost, "R4", holder.Name, "%s, and the instance manager of the PRIMARY does not answer", why)
			return true
		}
	} else if missing := v.unread(); missing != "" {
		// Nobody is seen as PRIMARY: one that is not seen may be.
		d.block(ag.ReasonAuthorityLost, "R4", missing, "%s, and no PRIMARY is seen while %s does not answer", why, missing)
		return true
	}
	next := v.anew(holder)
	d.do(ag.Swap{Next: next, Why: "made anew: " + why})
	d.event(ag.EventWarning, ag.ReasonAuthorityLost, "The record of who may write was made anew: %s", why)
	d.soon("the new record")
	return true
}

// lost says why the Lease is no proof, or nothing.
func (v *view) lost() string {
	switch {
	case !v.auth.Exists:
		return "the Lease is missing"
	case v.pol.UID != "" && v.auth.AGUID != v.pol.UID:
		return "the Lease is of another custom resource"
	}
	for i := range v.snap.Replicas {
		m := v.snap.Replicas[i].Manager
		if m.Reach != ag.ReachOK || v.knobs.without("R4") {
			continue
		}
		if m.HighestEpoch > v.auth.Epoch || m.HighestRule > v.auth.Rule.Number {
			return fmt.Sprintf("the Lease (epoch %d, rule %d) is older than what the manager of %s has seen (epoch %d, rule %d)",
				v.auth.Epoch, v.auth.Rule.Number, v.snap.Replicas[i].Name, m.HighestEpoch, m.HighestRule)
		}
	}
	return v.restored()
}

// restored: fewer swaps have made the record than one that was seen, by a manager or by a
// controller, so that it is of an earlier moment of the same grant. One without a count was
// written by a release that did not count.
func (v *view) restored() string {
	seen := max(v.snap.HighestSwaps(), v.in.Memory.Swaps)
	if v.auth.Swaps <= 0 || v.auth.Swaps >= seen || v.knobs.without("R4") || v.knobs.without("R4 swaps") {
		return ""
	}
	return fmt.Sprintf("the Lease is of an earlier moment: it has change no. %d of its record, and no. %d was seen", v.auth.Swaps, seen)
}

func (v *view) primaries() []*ag.Replica {
	var out []*ag.Replica
	for i := range v.snap.Replicas {
		if isPrimary(&v.snap.Replicas[i]) {
			out = append(out, &v.snap.Replicas[i])
		}
	}
	return out
}

// unread is a synchronous replica that does not say its role.
func (v *view) unread() string {
	for _, p := range v.pol.Replicas {
		if p.Mode == ag.ModeSynchronous && !reached(v.snap.Find(p.Name)) {
			return p.Name
		}
	}
	return ""
}

// anew is the record made anew, for the observed PRIMARY or, when every replica says
// that it is none, for nobody: then all of them must answer before one is promoted.
func (v *view) anew(holder *ag.Replica) ag.Authority {
	next := ag.Authority{Exists: true, Version: v.auth.Version, AGUID: v.pol.UID, Epoch: v.auth.Epoch, NoWriteLease: v.auth.NoWriteLease}
	next.Rule.Number = v.auth.Rule.Number
	next.Swaps = max(v.auth.Swaps, v.snap.HighestSwaps(), v.in.Memory.Swaps)
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Manager.Reach == ag.ReachOK {
			next.Epoch = max(next.Epoch, r.Manager.HighestEpoch, r.Manager.SealedEpoch)
			next.Rule.Number = max(next.Rule.Number, r.Manager.HighestRule)
		}
		if r.Mode != ag.ModeSynchronous {
			continue
		}
		next.Rule.Set = append(next.Rule.Set, ag.Member{Replica: r.Name, PVCUID: r.Pod.PVCUID})
		if holder != nil && r.Name != holder.Name {
			next.Stale = append(next.Stale, r.Name)
		}
	}
	for _, h := range v.in.Memory.History {
		next.Epoch = max(next.Epoch, h.Epoch)
	}
	next.Epoch++
	next.Rule.Number++
	if holder != nil {
		next.Holder, next.LastPrimary, next.GroupID = runOf(holder), holder.Name, holder.Local.GroupID
		return next
	}
	// Whoever held the lost Lease may still have proof of it.
	next.Unfenced = []ag.Grant{{Epoch: next.Epoch - 1, TakenAt: v.now, Promoted: true}}
	return next
}
