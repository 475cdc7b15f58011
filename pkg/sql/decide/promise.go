package decide

import (
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// promised: the replica has stopped following whatever primary it had. The promise is
// OFFLINE (docs/adr/0012-promise.md): RESOLVING, which it stays over a restart (FG 0.3 no. 2).
func promised(r *ag.Replica) bool {
	return reached(r) && r.Local.Role == ag.RoleResolving
}

// promise is R11 for this candidate: whether enough synchronous secondaries have stopped
// following an old primary whose death is not proven.
type promise struct {
	// ask are those that are to stop following now.
	ask []string
	// kept tells whether enough have, the candidate among them.
	kept bool
	why  string
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
	ns := len(v.auth.Rule.Set)
	need := max(min(ns-int(v.auth.Rule.K), ns-1), 1)
	p, have := promise{}, 0
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		// The witness stops too: an old primary must not find its vote.
		follower := r.Mode == ag.ModeSynchronous && v.auth.Rule.Has(r.Name) || r.Mode == ag.ModeConfigurationOnly
		if !follower {
			continue
		}
		switch {
		case promised(r) && r.Mode == ag.ModeSynchronous:
			have++
		case reached(r) && r.Local.Role == ag.RoleSecondary:
			p.ask = append(p.ask, r.Name)
		}
	}
	p.kept = promised(to) && have >= need && !v.witnessFollows()
	p.why = fmt.Sprintf("%d of %d needed synchronous secondaries have stopped following %s", have, need, old)
	return p
}

// wasPrimary: in this grant it was, or may have been, PRIMARY; a mere nominee was not.
func (v *view) wasPrimary(g ag.Grant) bool {
	return g.Promoted || g.Run.Replica == v.auth.LastPrimary || contains(v.auth.MaybePrimary, g.Run.Replica)
}

func (v *view) witnessFollows() bool {
	w := v.witness()
	return reached(w) && w.Local.Role == ag.RoleSecondary
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
