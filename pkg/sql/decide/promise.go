package decide

import (
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// promised: the replica has stopped following whatever primary it had, and does not follow
// again by itself. It has answered OFFLINE in this fencing (docs/adr/0012-promise.md), and is
// RESOLVING, which it stays over a restart (FG 0.3 no. 2). RESOLVING alone is no promise: a
// secondary may get there by itself when its primary is lost, and back when that returns
// (FG 11 no. 9, docs/adr/0023-promises-are-answers.md).
func (v *view) promised(r *ag.Replica) bool {
	if !reached(r) || r.Local.Role != ag.RoleResolving {
		return false
	}
	return v.answered(r) || v.knobs.without("R11 answer")
}

// answered: it has answered OFFLINE in this fencing.
func (v *view) answered(r *ag.Replica) bool {
	op := v.auth.Operation
	return op != nil && op.Promises.Has(r.Name, v.auth.Epoch)
}

// promise is R11 for this candidate: whether enough synchronous secondaries have stopped
// following an old primary whose death is not proven.
type promise struct {
	// ask are those that are to stop following now.
	ask []string
	// kept tells whether enough have, the candidate among them, and none has broken it.
	kept bool
	// old is whom they followed.
	old string
	why string
	// await is what is waited for, as what follows "waiting for".
	await string
}

func (v *view) promise(to *ag.Replica, fences []fence) promise {
	old := ""
	for _, f := range fences {
		if f.proof != ag.ProofDeath && f.proof != ag.ProofRefused && f.grant.Run.Replica != to.Name && v.wasPrimary(f.grant) {
			old = orText(f.grant.Run.Replica, "the old primary")
		}
	}
	if old == "" || v.knobs.without("R11") {
		return promise{kept: true}
	}
	p := promise{old: old}
	have, broken := 0, false
	var resolving []string
	for _, r := range v.followers() {
		switch {
		case v.promised(r):
			if r.Mode == ag.ModeSynchronous {
				have++
			}
			continue
		case !mayFollow(r):
			continue
		case r.Local.Role == ag.RoleResolving:
			resolving = append(resolving, r.Name)
		}
		p.ask = append(p.ask, r.Name)
		broken = broken || v.answered(r)
	}
	need := v.promisesNeeded()
	p.kept = v.promised(to) && have >= need && !v.witnessFollows() && !broken
	p.why = fmt.Sprintf("%d of %d needed synchronous secondaries have stopped following %s", have, need, old)
	p.await = fmt.Sprintf("synchronous secondaries to stop following %s: %d of %d needed have", old, have, need)
	if v.auth.Operation.Promises.Epoch != v.auth.Epoch && v.enoughWith(to, resolving) {
		p.ask = resolving // the first round: readers elsewhere keep their connections
	}
	return p
}

// promisesNeeded is R11's number: Ns - k, at least one and never all.
func (v *view) promisesNeeded() int {
	ns := len(v.auth.Rule.Set)
	return max(min(ns-int(v.auth.Rule.K), ns-1), 1)
}

// enoughWith: with the promises of these, who are RESOLVING, nobody else is needed.
func (v *view) enoughWith(to *ag.Replica, resolving []string) bool {
	have := 0
	for _, r := range v.followers() {
		given := v.promised(r) || contains(resolving, r.Name)
		switch {
		case given && r.Mode == ag.ModeSynchronous:
			have++
		case !given && mayFollow(r) && (r.Name == to.Name || r.Mode == ag.ModeConfigurationOnly || v.answered(r)):
			return false
		}
	}
	return have >= v.promisesNeeded()
}

// followers are those that may follow an old primary and harden for it or vote for it: the
// witness stops too.
func (v *view) followers() []*ag.Replica {
	var out []*ag.Replica
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Mode == ag.ModeSynchronous && v.auth.Rule.Has(r.Name) || r.Mode == ag.ModeConfigurationOnly {
			out = append(out, r)
		}
	}
	return out
}

// mayFollow: it is reached, and follows a primary or may do so again.
func mayFollow(r *ag.Replica) bool {
	return reached(r) && (r.Local.Role == ag.RoleSecondary || r.Local.Role == ag.RoleResolving)
}

// askPromises takes everybody who is reached and may follow the old primary offline at once,
// and records who has answered. It goes on during the wait for the write lease to end.
func (v *view) askPromises(d *draft, op *ag.Operation, p promise) {
	next := v.auth.Clone()
	next.Operation = v.step(op, op.Phase, "%s told to stop following %s", strings.Join(p.ask, ", "), p.old)
	given := ag.Promises{Epoch: v.auth.Epoch}
	for i := range v.snap.Replicas {
		if r := &v.snap.Replicas[i]; contains(p.ask, r.Name) || v.answered(r) {
			given.Replicas = append(given.Replicas, r.Name)
		}
	}
	next.Operation.Promises = given
	d.do(ag.Promise{Replicas: p.ask})
	d.do(ag.Swap{Next: next, Why: "stopped following " + p.old})
	if v.inPhase() > offlinePatience {
		d.block(ag.ReasonPromiseMissing, "R11", "", "%s", p.why)
	}
	d.soon("%s", p.await)
}

// wasPrimary: in this grant it was, or may have been, PRIMARY; a mere nominee was not.
func (v *view) wasPrimary(g ag.Grant) bool {
	return g.Promoted || g.Run.Replica == v.auth.LastPrimary || contains(v.auth.MaybePrimary, g.Run.Replica)
}

func (v *view) witnessFollows() bool {
	w := v.witness()
	return mayFollow(w) && !v.promised(w)
}

// unfenced: this replica is an old holder itself (other than the candidate).
func (v *view) unfenced(name, candidate string) bool {
	if name == candidate {
		return false
	}
	for _, g := range v.auth.Unfenced {
		if g.Run.Replica == name {
			return true
		}
	}
	return false
}
