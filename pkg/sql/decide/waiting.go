package decide

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

const (
	// commitsPatience is how long commits may wait for a secondary that comes back by itself, as
	// after a restart, before people are told.
	commitsPatience = 15 * second
	// loweringTakes is what a durability that is lowered may take besides, before the same: longer
	// than that means that lowering hangs.
	loweringTakes = 60 * second
)

// ruleCommitsWait says that the primary acknowledges nothing where fewer secondaries are
// SYNCHRONIZED than commits wait for: the user's durability at work, but nobody should have to
// guess it. It changes nothing: what brings the secondaries back is the ladder's.
func ruleCommitsWait(v *view, d *draft) bool {
	w := &d.d.Watch
	p, why := v.primary(), ""
	if p != nil && v.auth.Operation == nil {
		why = v.tooFew(p)
	}
	switch {
	case why == "":
		w.CommitsWait = 0
		return false
	case w.CommitsWait == 0:
		w.CommitsWait = v.in.Clock.Ended
	}
	if left := v.commitsPatience() - v.since(w.CommitsWait); left > 0 {
		d.wait(left, "the secondaries that commits wait for")
		return false
	}
	if !d.blocked(ag.ReasonCommitPending) && !v.commitStuck(p) {
		d.block(ag.ReasonCommitsWait, "", p.Name, "%s", why)
	}
	return false
}

func (v *view) commitsPatience() time.Duration {
	if v.neverLowered() {
		return commitsPatience
	}
	return max(v.pol.RelaxAfter, commitsPatience) + loweringTakes
}

// neverLowered: the number is the user's, and stays.
func (v *view) neverLowered() bool { return v.pol.Required || v.pol.K >= 0 }

// tooFew is why commits wait on this primary, or nothing.
func (v *view) tooFew(p *ag.Replica) string {
	k, have := int(p.Local.RequiredToCommit), 0
	if k < 1 || len(p.Local.Databases) == 0 {
		return ""
	}
	var missing []string
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Name == p.Name || r.Mode != ag.ModeSynchronous {
			continue
		}
		switch x := v.notSynchronized(r); {
		case x.none():
			have++
		case !reached(r):
			missing = append(missing, r.Name+": "+reachText(r))
		default:
			missing = append(missing, r.Name+": "+x.why)
		}
	}
	if have >= k {
		return ""
	}
	way := "the durability can be lowered in the spec"
	if !v.neverLowered() {
		way = "lowering that number has not been answered yet"
	}
	return fmt.Sprintf("nothing is acknowledged: commits wait for %d SYNCHRONIZED secondaries, now %d; %s; %s", k, have, strings.Join(missing, "; "), way)
}
