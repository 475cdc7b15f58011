package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// grant makes the next record: the Lease passes to this replica's run in a new epoch.
// What is left of the previous holder is proof, or an entry in unfenced; whoever was, or
// may have been, primary and is not handing over as planned becomes stale.
type grant struct {
	to *ag.Replica
	// previous is the proof that the present holder has ended, ProofNone when there is none.
	previous ag.Proof
	// planned: the present holder hands over, confirmed: it does not become stale.
	planned bool
	// missed: the reason is missing renewals, so that a renewal in between makes the swap fail.
	missed bool
}

func (v *view) grant(g grant) ag.Authority {
	next := v.auth.Clone()
	prev := v.auth.Holder
	promoted := false
	if op := v.auth.Operation; op != nil {
		promoted = op.Phase == ag.PhasePromoting || op.Phase == ag.PhasePublishing
	}
	for i, f := range v.fences() {
		next.Unfenced[i].Proven = f.proof
	}
	if !prev.Zero() && !(g.previous == ag.ProofDemoted && g.planned) && g.previous != ag.ProofRefused {
		e := ag.Grant{Epoch: v.auth.Epoch, Run: prev, TakenAt: v.now, Promoted: promoted, Proven: g.previous}
		if g.missed {
			e.Renewals = v.auth.Renewals
		}
		if promoted {
			e.Sequence = v.auth.Operation.Before
		}
		if v.knobs.without("R9") {
			e.Proven = ag.ProofTime
		}
		next.Unfenced = append(next.Unfenced, e)
		if promoted {
			next.GivenUp = append(withoutGivenUp(next.GivenUp, prev.Replica), ag.GivenUp{Epoch: v.auth.Epoch, Run: prev,
				Before: v.recordedSequence(prev.Replica), Ended: g.previous == ag.ProofDeath})
		}
	}
	if !g.planned {
		for _, name := range append([]string{v.auth.LastPrimary}, v.auth.MaybePrimary...) {
			if name != g.to.Name {
				next.Stale = with(next.Stale, name)
			}
		}
	}
	next.Holder, next.Epoch = runOf(g.to), v.auth.Epoch+1
	next.Sequences = v.sequences()
	return next
}

// weaker is the record with which a candidate is promoted: min k and the union of the
// sets of the recorded rule and the candidate's own configuration. It takes effect with
// phase promoting, the first in which the candidate could acknowledge anything: until
// then the commits to be found were made under the recorded rule.
func (v *view) weaker(r *ag.Replica) ag.CommitRule {
	rule := ag.CommitRule{Number: v.auth.Rule.Number, K: v.auth.Rule.K, Set: append([]ag.Member(nil), v.auth.Rule.Set...)}
	changed := false
	if r.Local.RequiredToCommit < rule.K && !v.knobs.without("weaker") {
		rule.K, changed = r.Local.RequiredToCommit, true
	}
	for _, c := range r.Local.Configured {
		if c.Mode != ag.ModeSynchronous {
			continue
		}
		for i := range v.snap.Replicas {
			o := &v.snap.Replicas[i]
			if sameServer(o.Name, c.Server) && !rule.Has(o.Name) {
				rule.Set, changed = append(rule.Set, ag.Member{Replica: o.Name, PVCUID: o.Pod.PVCUID}), true
			}
		}
	}
	if changed {
		rule.Number++
	}
	return rule
}

// sequences are the highest numbers ever recorded, with those of this snapshot.
func (v *view) sequences() []ag.ReplicaSequence {
	out := append([]ag.ReplicaSequence(nil), v.auth.Sequences...)
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Mode == ag.ModeAsynchronous || !reached(r) || !v.identity(r).none() || v.beyond(r) {
			continue
		}
		found := false
		for j := range out {
			if out[j].Replica == r.Name {
				out[j].Sequence, found = max(out[j].Sequence, r.Local.Sequence), true
			}
		}
		if !found {
			out = append(out, ag.ReplicaSequence{Replica: r.Name, Sequence: r.Local.Sequence})
		}
	}
	return out
}

// seal is R22: every manager that answers is sealed below the epoch, before the swap
// that grants it; at least Ns − k of them, and with k = 0 the candidate. The last primary
// itself needs no others.
func (v *view) seal(to *ag.Replica, epoch int64, lastPrimary bool) ag.Seal {
	s := ag.Seal{Epoch: epoch, Version: v.auth.Version}
	s.Replicas = append(s.Replicas, to.Name)
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Name != to.Name && r.Manager.Reach == ag.ReachOK {
			s.Replicas = append(s.Replicas, r.Name)
		}
	}
	s.Need = v.sealsNeeded(lastPrimary)
	return s
}

func (v *view) sealsNeeded(lastPrimary bool) int {
	ns, k := len(v.auth.Rule.Set), int(v.auth.Rule.K)
	if lastPrimary || k <= 0 || v.knobs.without("R22") {
		return 1
	}
	return max(ns-k, 1)
}

// unsealed is why a promotion cannot have its seals on this snapshot, or nothing.
func (v *view) unsealed(to *ag.Replica, epoch int64, lastPrimary bool) string {
	need, have, missing := v.sealsNeeded(lastPrimary), 0, ""
	if v.knobs.without("R22") {
		return ""
	}
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		// An asynchronous one that is forced needs no other than itself, as any that is forced.
		if r.Mode != ag.ModeSynchronous && (r.Name != to.Name || !lastPrimary) {
			continue
		}
		if sealed(r.Manager, epoch) {
			have++
		} else {
			missing += " " + r.Name
		}
	}
	if !sealed(to.Manager, epoch) {
		return fmt.Sprintf("the manager of the candidate %s is not sealed", to.Name)
	}
	if have >= need {
		return ""
	}
	return fmt.Sprintf("%d of %d needed managers are sealed, not:%s", have, need, missing)
}

// newOperation is the record of an operation before its first effect.
func (v *view) newOperation(kind ag.OperationKind, phase ag.OperationPhase, from, target, cause string, limit time.Duration, req *ag.Request) *ag.Operation {
	op := &ag.Operation{
		ID:   fmt.Sprintf("%s-%d-%d", kind, v.auth.Epoch, v.now.Unix()),
		Kind: kind, Phase: phase, From: from, Target: target, First: target, Owner: v.in.Observer, Cause: cause,
		StartedAt: v.now, Deadline: v.now.Add(limit),
	}
	if req != nil {
		op.RequestID = req.ID
	}
	op.Steps = []ag.Step{{At: v.now, What: cause}}
	return op
}

// step is a copy of an operation in its next phase, with a line in its timeline.
func (v *view) step(op *ag.Operation, phase ag.OperationPhase, format string, args ...any) *ag.Operation {
	c := *op
	c.Phase, c.Owner = phase, v.in.Observer
	c.Steps = append(append([]ag.Step(nil), op.Steps...), ag.Step{At: v.now, What: fmt.Sprintf(format, args...)})
	if len(c.Steps) > maxSteps {
		c.Steps = append(c.Steps[:1:1], c.Steps[len(c.Steps)-maxSteps+1:]...)
	}
	return &c
}

// maxSteps bounds a timeline: the first line and the newest are kept.
const maxSteps = 30
