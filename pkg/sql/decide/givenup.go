package decide

import "github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"

// ruleGivenUp ends what may still be under way of a promotion that was given up: a
// FAILOVER that was accepted can take effect long after another replica was promoted, and
// take the others' votes with it. Beside a primary that writes it claims the pass.
func ruleGivenUp(v *view, d *draft) bool {
	if v.primary() == nil || v.auth.Operation != nil {
		return false
	}
	return v.endGivenUp(d)
}

// endGivenUp takes one such replica offline, as soon as it can be reached, and records it.
func (v *view) endGivenUp(d *draft) bool {
	if d.swapped || d.disrupted {
		return false
	}
	for i, g := range v.auth.GivenUp {
		r := v.snap.Find(g.Run.Replica)
		if v.givenUpEnded(g) || !certainlyRun(r, g.Run) || !notPrimary(r) || sameRun(r, v.auth.Holder) || v.stillFencing(g) {
			continue
		}
		next := v.auth.Clone()
		next.GivenUp[i].Ended = true
		d.do(ag.TakeOffline{Replica: r.Name, Why: "its promotion was given up", Guard: ag.Guard{PodUID: r.Pod.UID}})
		d.do(ag.Swap{Next: next, Why: r.Name + " is offline: no FAILOVER is under way there"})
		d.soon("the way back of %s", r.Name)
		return true
	}
	return false
}

// givenUpEnded: nothing of it is under way any more. Another run of the same pod, or
// another pod, means another process: it comes up RESOLVING (FG 0.3 no. 2).
func (v *view) givenUpEnded(g ag.GivenUp) bool {
	if g.Ended || v.dead(g.Run) != "" {
		return true
	}
	r := v.snap.Find(g.Run.Replica)
	return reached(r) && r.Manager.Reach == ag.ReachOK && r.Manager.Nonce != "" && r.Manager.Nonce != g.Run.Nonce && r.Manager.HasVolumeLock
}

// stillFencing: the grant is in unfenced, where phase fencing ends it; its FAILOVER may not have expired.
func (v *view) stillFencing(g ag.GivenUp) bool {
	for _, u := range v.auth.Unfenced {
		if u.Epoch == g.Epoch {
			return true
		}
	}
	return false
}

// ahead: this replica's configuration is of a later promotion than the primary's, and it
// does not follow the primary.
func (v *view) ahead(r, p *ag.Replica) bool {
	if r.Mode == ag.ModeAsynchronous || p.Local.Sequence <= 0 || r.Local.Sequence <= p.Local.Sequence || r.Remote == nil {
		return false
	}
	if !r.Remote.Connected {
		return true
	}
	for _, db := range r.Remote.Databases {
		if db.Sync == ag.SyncNotSynchronizing {
			return true
		}
	}
	return false
}

// explained: its number comes from a promotion that was sent under the Lease and given
// up. Every earlier holder was fenced before the present one was promoted, so that what
// this configuration belongs to was never acknowledged. Any other origin, a FAILOVER by
// hand for example, is for a person to judge.
func (v *view) explained(r *ag.Replica) bool {
	for _, g := range v.auth.GivenUp {
		switch {
		case g.Sequence >= r.Local.Sequence:
			return true
		case g.Sequence == 0 && !reached(v.snap.Find(g.Run.Replica)) && r.Local.Sequence>>32 <= g.Before>>32+1:
			return true // it has not come back to tell its number; one promotion raises the high word by one (FG 5.1)
		}
	}
	return false
}

// settleGivenUp brings the entries up to date: which have ended, with which number, and
// which are over.
func (v *view) settleGivenUp(p *ag.Replica, list []ag.GivenUp) (next []ag.GivenUp, changed bool) {
	level := v.level(p)
	for _, g := range list {
		r := v.snap.Find(g.Run.Replica)
		if level && r != nil && v.caughtUp(r) {
			changed = true
			continue
		}
		if g.Sequence == 0 && v.givenUpEnded(g) && reached(r) && r.Local.Sequence > 0 {
			g.Ended, g.Sequence, changed = true, r.Local.Sequence, true
		}
		next = append(next, g)
	}
	return next, changed
}

// level: no replica that votes has a number above the primary's, and all of them say so.
func (v *view) level(p *ag.Replica) bool {
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Mode != ag.ModeAsynchronous && (!reached(r) || r.Local.Sequence > p.Local.Sequence) {
			return false
		}
	}
	return true
}

func withoutGivenUp(list []ag.GivenUp, replica string) []ag.GivenUp {
	var out []ag.GivenUp
	for _, g := range list {
		if g.Run.Replica != replica {
			out = append(out, g)
		}
	}
	return out
}
