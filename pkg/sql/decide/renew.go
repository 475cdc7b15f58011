package decide

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

const (
	// commitPatience is how long a configuration commit may wait before it is called stuck (FG 5.4).
	commitPatience = 60 * second
	// renewPatience is the same for saying that a promotion of the primary onto itself, made to end
	// such a wait, has not: what was true before it is true again.
	renewPatience = 10 * second
	// renewPause doubles with each promotion of the primary onto itself that has not helped,
	// of which there are at most maxRenewals in a row.
	renewPause  = 5 * time.Minute
	maxRenewals = 3
	// renewalsCount is how long one of them is held against the next.
	renewalsCount = 2 * time.Hour
	// renewAfterSteps of the ladder: its replicas were re-seated, and both endpoints restarted once.
	renewAfterSteps = oneRound
)

// ruleRenew: the primary waits for a commit of the group's configuration that does not
// come, or for followers that do not follow. It acknowledges nothing then, and a failover
// onto the primary itself loses nothing (safety.md §4): with two replicas and k = 0
// recorded, the new promotion needs nobody (FG 11 no. 34); with more, where a majority
// answers and yet does not follow it: the server may have been told of a later promotion,
// and not believe in its own any more. Where it would not help, the way out is named.
func ruleRenew(v *view, d *draft) bool {
	p := v.primary()
	if p == nil || v.auth.Operation != nil || !v.pol.External || len(v.auth.Unfenced) > 0 || v.openByHand() {
		return false
	}
	hope := v.unfollowed(p)
	cause := fmt.Sprintf("a change of the configuration has waited for its quorum for more than %s", commitPatience)
	switch {
	case v.commitStuck(p):
		hope = orText(v.twoAlone(), hope)
	case hope != "" && v.deserted(p):
		cause = fmt.Sprintf("commits wait for a secondary (k=%d) and none follows", p.Local.RequiredToCommit)
	case v.waitsAgain(p):
		v.blockCommits(d, p, fmt.Sprintf("a change of the configuration waits for its quorum again, and %d promotions of it onto itself have not helped", v.renewals()))
		return false
	default:
		return false
	}
	if !v.pol.AutoFailover {
		hope = ""
	}
	if hope == "" {
		v.blockCommits(d, p, cause)
		return false
	}
	if n := v.renewals(); n > 0 {
		left := renewPause<<(n-1) - elapsed(v.in.Memory.LastRoleChangeAt, v.now)
		if n >= maxRenewals || left > 0 {
			v.blockCommits(d, p, fmt.Sprintf("%s, and %d promotions of it onto itself have not helped", cause, n))
		}
		if n >= maxRenewals {
			return false
		}
		if left > 0 {
			d.wait(left, "the next promotion of %s onto itself", p.Name)
			return false
		}
	}
	return v.startRenewal(d, p, ag.OperationSwitchover, cause+": "+hope, nil)
}

// blockCommits says for what the primary waits, and which command ends it.
func (v *view) blockCommits(d *draft, p *ag.Replica, cause string) {
	d.block(ag.ReasonCommitPending, "", p.Name, "%s: nothing is acknowledged until %s; or, which loses nothing because it is the last primary itself: kubectl mssql failover NAME --to %s --allow-data-loss=unlimited",
		cause, orText(v.quorumMissing(p), "its secondaries follow it again"), p.Name)
}

// commitStuck: it has been waiting for too long.
func (v *view) commitStuck(p *ag.Replica) bool { return p.Local.CommitPendingFor >= commitPatience }

// waitsAgain: the primary has just been promoted onto itself, and waits as before.
func (v *view) waitsAgain(p *ag.Replica) bool {
	return p.Local.CommitPendingFor >= renewPatience && v.renewals() > 0 && elapsed(v.in.Memory.LastRoleChangeAt, v.now) < 2*commitPatience
}

// deserted: commits wait for a secondary, and in the primary's own view none is connected.
func (v *view) deserted(p *ag.Replica) bool {
	if p.Local.RequiredToCommit < 1 {
		return false
	}
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Name != p.Name && r.Mode == ag.ModeSynchronous && (r.Remote == nil || r.Remote.Connected) {
			return false
		}
	}
	return true
}

// twoAlone: a promotion of the primary onto itself needs nobody else.
func (v *view) twoAlone() string {
	if len(v.auth.Rule.Set) == 2 && v.witness() == nil && v.auth.Rule.K == 0 {
		return "two replicas and k = 0 recorded need nobody else"
	}
	return ""
}

// unfollowed: a majority answers, and one round of the ladder has not made it follow.
func (v *view) unfollowed(p *ag.Replica) string {
	voters, here := 1, 1
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Name == p.Name || r.Mode == ag.ModeAsynchronous {
			continue
		}
		voters++
		rec := recoveryOf(v.in.Memory.Recoveries, r.Name)
		if notPrimary(r) && r.Local.Role != ag.RoleNone && r.Local.Sequence <= p.Local.Sequence && rec != nil && rec.Attempts >= renewAfterSteps {
			here++
		}
	}
	if voters > 1 && here >= voters/2+1 {
		return fmt.Sprintf("%d of %d replicas answer and do not follow it", here-1, voters-1)
	}
	return ""
}

// quorumMissing names the voters that do not follow the primary.
func (v *view) quorumMissing(p *ag.Replica) string {
	var missing []string
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Name != p.Name && r.Mode != ag.ModeAsynchronous && (r.Remote == nil || !r.Remote.Connected) {
			missing = append(missing, r.Name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "enough of " + strings.Join(missing, ", ") + " follow it again"
}

// renewals counts the newest changes in a row, of the last two hours, that were promotions of a primary onto itself.
func (v *view) renewals() int {
	n := 0
	for _, h := range v.in.Memory.History {
		if h.From != h.To || h.To != v.auth.LastPrimary || h.Kind == changeKind(ag.OperationFailover) || elapsed(h.CompletedAt, v.now) > renewalsCount {
			break
		}
		n++
	}
	return n
}

// startRenewal takes the primary offline, to promote it again: it never loses the Lease.
func (v *view) startRenewal(d *draft, p *ag.Replica, kind ag.OperationKind, cause string, req *ag.Request) bool {
	next := v.auth.Clone()
	next.Operation = v.newOperation(kind, ag.PhaseDemoting, p.Name, p.Name, cause, v.pol.SwitchoverMax, req)
	d.do(ag.Swap{Next: next, Why: fmt.Sprintf("%s is promoted onto itself: %s", p.Name, cause), Result: v.running(next.Operation)})
	d.event(ag.EventNormal, ag.EventRequested, "Promoting %s onto itself: %s", p.Name, cause)
	v.demote(d, p, "to be promoted again")
	return true
}

// renewing: this operation promotes the primary onto itself.
func renewing(op *ag.Operation) bool { return op.From != "" && op.From == op.Target }

// renew is its second half: the primary is offline, and nobody else was told to become PRIMARY.
func (v *view) renew(d *draft, op *ag.Operation, p *ag.Replica) bool {
	force := op.Kind == ag.OperationForced
	if v.awaitEarlier(d, p) {
		return true
	}
	next := v.auth.Clone()
	next.Unfenced = nil
	next.Operation = v.step(op, ag.PhasePromoting, "%s is offline; promote it again", p.Name)
	v.extend(op, next.Operation)
	if force {
		v.staleButFor(&next, p)
		next.ByHand = nil // a person has chosen this one
	}
	d.do(ag.Swap{Next: next, Why: p.Name + " is offline and is promoted again"})
	f := v.failoverStatement(p, v.auth.Epoch, force)
	f.Lossless = true
	d.do(f)
	d.event(ag.EventNormal, ag.EventPromoted, "Promoting %s (epoch %d)", p.Name, v.auth.Epoch)
	d.soon("%s to become PRIMARY", p.Name)
	return true
}

// staleButFor: after FORCE none of the others counts until it has caught up.
func (v *view) staleButFor(next *ag.Authority, p *ag.Replica) {
	for _, name := range v.auth.Rule.Names() {
		if name != p.Name {
			next.Stale = with(next.Stale, name)
		}
	}
}
