package decide

import (
	"slices"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ruleRecord keeps the record true while a primary writes and no operation runs: who was
// last confirmed primary, whose copies have caught up, which volumes they are on.
func ruleRecord(v *view, d *draft) bool {
	p := v.primary()
	if p == nil || v.auth.Operation != nil || d.swapped || !v.auth.Exists {
		return false
	}
	next := v.confirmed(p)
	next.ByHand, next.MaybePrimary = v.stillByHand(p)
	why := ""
	note := func(s string) {
		if why != "" {
			why += ", "
		}
		why += s
	}
	if len(next.ByHand) != len(v.auth.ByHand) {
		note("no other has commits of its own")
	}
	if v.auth.LastPrimary != next.LastPrimary || len(v.auth.MaybePrimary) > len(next.MaybePrimary) {
		note(p.Name + " is the last primary")
	}
	if run := runOf(p); next.Holder.ContainerID == "" && run.ContainerID != "" && next.Holder.Same(run) {
		next.Holder.ContainerID = run.ContainerID // its end will be proof (R8)
		note("its container")
	}
	if next.GroupID == "" && p.Local.GroupID != "" {
		next.GroupID = p.Local.GroupID
		note("group_id")
	}
	if next.NoWriteLease == p.Local.LeaseEnabled && v.pol.External {
		next.NoWriteLease = !p.Local.LeaseEnabled
		note("write lease")
	}
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Name != p.Name && !v.caughtUp(r) {
			continue
		}
		if contains(next.Stale, r.Name) {
			next.Stale = less(next.Stale, r.Name)
			note(r.Name + " has caught up")
		}
		next.Sequences = reachedNumber(next.Sequences, r)
		for j := range next.Rule.Set {
			if m := &next.Rule.Set[j]; m.Replica == r.Name && m.PVCUID != r.Pod.PVCUID && r.Pod.PVCUID != "" {
				m.PVCUID = r.Pod.PVCUID
				note("the volume of " + r.Name)
			}
		}
	}
	var settled bool
	if next.GivenUp, settled = v.settleGivenUp(p, next.GivenUp); settled {
		note("promotions that were given up")
	}
	next.Unfenced = nil
	for _, f := range v.fences() {
		if f.proof == ag.ProofNone {
			next.Unfenced = append(next.Unfenced, f.grant)
			continue
		}
		note(orText(f.grant.Run.Replica, "an unknown holder") + " is fenced")
	}
	if !slices.Equal(next.Sequences, v.auth.Sequences) {
		note("sequence numbers")
	}
	if why != "" {
		d.do(ag.Swap{Next: next, Why: why})
	}
	return false
}

// caughtUp: the primary has seen every copy of this synchronous replica SYNCHRONIZED
// under itself.
func (v *view) caughtUp(r *ag.Replica) bool {
	if r.Mode != ag.ModeSynchronous || !reached(r) || r.Local.Role != ag.RoleSecondary || !v.itself(r).none() || r.Local.Sequence <= 0 {
		return false
	}
	if r.Remote != nil && len(r.Remote.Databases) == 0 && len(v.pol.Databases) > 0 {
		return false
	}
	return v.notSynchronized(r).none()
}

// reachedNumber lowers what is recorded for a replica that follows the primary in step:
// with what the primary has seen of it, a higher number of its past, which it had from
// another configuration, says nothing any more.
func reachedNumber(list []ag.ReplicaSequence, r *ag.Replica) []ag.ReplicaSequence {
	out := append([]ag.ReplicaSequence(nil), list...)
	for i := range out {
		if out[i].Replica == r.Name && r.Local.Sequence > 0 {
			out[i].Sequence = r.Local.Sequence
		}
	}
	return out
}

// ruleEndpoints opens endpoints again that were left stopped, once the primary is
// PRIMARY, its databases ONLINE and nobody is unfenced.
func ruleEndpoints(v *view, d *draft) bool {
	p := v.primary()
	if p == nil || !online(p) || v.auth.Operation != nil || len(v.auth.Unfenced) > 0 {
		return false
	}
	var stopped []string
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if reached(r) && r.Local.Endpoint == ag.EndpointStopped && !r.Fenced {
			stopped = append(stopped, r.Name)
		}
	}
	if len(stopped) > 0 {
		d.do(ag.StartEndpoints{Replicas: stopped})
	}
	return false
}

// ruleMemory keeps what the status shows of blocks, and clears what has passed.
func ruleMemory(v *view, d *draft) bool {
	m := &d.d.Memory
	writing := v.primary() != nil && !d.blocked(ag.ReasonCommitPending)
	var blocks []ag.Block
	if !writing {
		for _, b := range d.d.Blocks {
			// Cut off is not blocked: its primary goes on writing.
			if b.Reason != ag.ReasonPaused && b.Reason != ag.ReasonPrimaryCutOff {
				blocks = append(blocks, b)
			}
		}
	}
	switch {
	case len(blocks) > 0 && m.BlockedSince.IsZero():
		m.BlockedSince = v.now
		d.event(ag.EventWarning, ag.EventBlocked, "Nobody can write, and nobody is promoted: %s", blocks[0].Message)
	case writing && !m.BlockedSince.IsZero():
		m.BlockedSince = time.Time{}
		d.event(ag.EventNormal, ag.EventUnblocked, "The group can be written again")
	}
	if len(blocks) > 0 || writing {
		m.Blocks = blocks
	}
	var keep []ag.Refusal
	for _, r := range m.Refusals {
		if rep := v.snap.Find(r.Replica); !writing && (rep == nil || !reached(rep) || rep.Local.Sequence == r.Sequence) && elapsed(r.At, v.now) < refusalHolds {
			keep = append(keep, r)
		}
	}
	m.Refusals = keep
	if writing && v.auth.Operation == nil {
		m.Promotion = nil
	}
	return false
}
