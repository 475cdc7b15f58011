package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// A person's FAILOVER on a synchronised secondary (docs/adr/0018-failover-by-hand.md). The
// old primary may not notice: it stays PRIMARY and holds the Lease, and commits nothing, as
// its secondaries follow the other one. What the new one has acknowledged is in no older
// copy, so that it is never made stale: either it gets the Lease, or nobody is promoted.

// beyond: this replica's number is of another promotion than that of the primary, which
// writes. Its number before is what tells later whether it was complete.
func (v *view) beyond(r *ag.Replica) bool {
	p := v.primary()
	return p != nil && v.auth.Operation == nil && v.pol.External && r.Name != p.Name && r.Local.Sequence > p.Local.Sequence
}

// laterPromotion: it says PRIMARY, or did, in a promotion that the record does not know, on
// its own recorded volume, and the Lease was never taken from it. Its number tells: it is
// of a later promotion than the holder's. Where numbers do not tell promotions apart (FG 11
// no. 8), it is above the one recorded for it, and the replica calls itself the primary.
func (v *view) laterPromotion(x *ag.Replica) bool {
	if !v.pol.External || !v.auth.Exists || !v.answersOwnVolume(x).none() || v.unfenced(x.Name, "") {
		return false
	}
	h := v.holder()
	if h == nil || h.Name == x.Name || v.forcedEvidence(x) != "" {
		return false
	}
	number := v.recordedSequence(h.Name)
	if reached(h) {
		number = h.Local.Sequence
	}
	later := x.Local.Sequence>>32 > number>>32
	if contains(v.auth.Stale, x.Name) {
		return isPrimary(x) && !v.givenUp(x.Name) && (later || v.marked(x))
	}
	before := v.recordedSequence(x.Name)
	return later || x.Local.Sequence>>32 == number>>32 && before > 0 && x.Local.Sequence > before &&
		(isPrimary(x) || sameServer(x.Local.PrimaryName, x.Name))
}

// givenUp: a promotion of this replica was given up, and is not over. What it does now may
// be the late effect of a FAILOVER of ours, and no person's choice.
func (v *view) givenUp(name string) bool {
	for _, g := range v.auth.GivenUp {
		if g.Run.Replica == name {
			return true
		}
	}
	return false
}

// marked: in the configuration of the primary, which writes, every copy of this replica is
// marked as synchronised (sys.dm_hadr_database_replica_cluster_states.is_failover_ready). So
// long as that stands the primary has acknowledged nothing without it.
func (v *view) marked(x *ag.Replica) bool {
	p := v.primary()
	if p == nil || x.Remote == nil || len(p.Local.Databases) == 0 {
		return false
	}
	for _, db := range p.Local.Databases {
		if o := database(x.Remote.Databases, db.Name); o == nil || !o.FailoverReady {
			return false
		}
	}
	return true
}

// chosenByHand deals with strays that a person has made PRIMARY; not known when there is
// none, or the holder is out and ruleTwoPrimaries follows it.
func (v *view) chosenByHand(d *draft, strays []*ag.Replica) (claimed, known bool) {
	var x *ag.Replica
	for _, r := range strays {
		if _, entered := v.byHand(r.Name); entered || v.laterPromotion(r) {
			if len(strays) > 1 {
				d.block(ag.ReasonTwoPrimaries, "", r.Name, "%d replicas say PRIMARY without the Lease, one of them in a later promotion: take the wrong one offline by hand", len(strays))
				return true, true
			}
			x = r
		}
	}
	st := v.standing()
	if x == nil || v.holderIsOut(st) {
		return false, false
	}
	if _, entered := v.byHand(x.Name); !entered {
		v.enterByHand(d, x, "was made PRIMARY by hand, in a later promotion than that of "+v.auth.Holder.Replica)
		d.event(ag.EventWarning, ag.ReasonTwoPrimaries, "%s was made PRIMARY by hand; %s holds the Lease still", x.Name, v.auth.Holder.Replica)
		return true, true
	}
	if op := v.auth.Operation; op != nil {
		switch op.Phase {
		case ag.PhaseDemoting:
			return v.cancel(d, op, x.Name+" was made PRIMARY by hand"), true
		case ag.PhaseFencing, ag.PhaseAborting:
			// The election chooses again, and its number is the highest.
			d.do(ag.TakeOffline{Replica: x.Name, Why: "it was made PRIMARY by hand while another is being promoted", Guard: ag.Guard{PodUID: x.Pod.UID, Role: ag.RolePrimary}})
			d.soon("%s to be offline", x.Name)
			return true, true
		case ag.PhasePromoting, ag.PhasePublishing, ag.PhaseCreating:
		}
		return false, true
	}
	if st != holderWriting {
		d.block(ag.ReasonPrimaryNotFollowed, "R9", x.Name, "it was made PRIMARY by hand, and %s, which holds the Lease, %s", v.auth.Holder.Replica, reachText(v.holder()))
		return false, true
	}
	return v.overtake(d, x), true
}

// enterByHand records a person's choice, with the number of the primary's configuration in
// which it is still marked as synchronised; or else the number that it had before itself. A
// stale one has none, unless it is marked: then it has caught up.
func (v *view) enterByHand(d *draft, x *ag.Replica, why string) {
	next := v.auth.Clone()
	e := ag.ByHand{Replica: x.Name, Before: v.recordedSequence(x.Name)}
	switch {
	case v.marked(x):
		e.Before, next.Stale = v.primary().Local.Sequence, less(next.Stale, x.Name)
	case contains(v.auth.Stale, x.Name):
		e.Before = 0
	}
	e.Unordered = !later(x, e)
	next.ByHand = append(next.ByHand, e)
	next.MaybePrimary = append(less(next.MaybePrimary, x.Name), x.Name)
	d.do(ag.Swap{Next: next, Why: x.Name + " " + why})
	d.soon("the holder to be taken offline")
}

// wasByHand is a replica that was made PRIMARY by hand and is no longer when it is first
// seen: nobody renewed its write lease, for instance. It is RESOLVING, its configuration is
// of a later promotion than the primary's, and no promotion of the record explains that. Of
// several, which follow one another's promotion, it is the one that calls itself the primary.
func (v *view) wasByHand() *ag.Replica {
	if len(v.auth.ByHand) > 0 {
		return nil
	}
	for _, g := range v.auth.GivenUp {
		if g.Sequence == 0 {
			return nil // how far our own promotion has come is not known yet
		}
	}
	var found []*ag.Replica
	for i := range v.snap.Replicas {
		x := &v.snap.Replicas[i]
		if x.Mode == ag.ModeSynchronous && reached(x) && x.Local.Role == ag.RoleResolving && v.beyond(x) &&
			v.recordedSequence(x.Name) > 0 && v.answers(x).none() && v.laterPromotion(x) && !v.explained(x) {
			if sameServer(x.Local.PrimaryName, x.Name) {
				return x
			}
			found = append(found, x)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// handSettles is how long a holder that was taken out of office, alive and by no operation
// of ours, is not followed by an election: a person's FAILOVER on another replica may be
// under way there, and its statement does not show until it has taken effect.
const handSettles = 3 * second

// handMayCome is what is left of it.
func (v *view) handMayCome(st standing, since time.Time) time.Duration {
	if st != holderNotPrimary || !v.pol.External || !sameRun(v.holder(), v.auth.Holder) {
		return 0
	}
	return handSettles - elapsed(since, v.now)
}

// settleByHand: nobody says PRIMARY but the holder. Where it has been overtaken, it gives
// way all the same: its secondaries are the other's, and what that has acknowledged counts.
func (v *view) settleByHand(d *draft) bool {
	if v.auth.Operation != nil || v.standing() != holderWriting {
		return false
	}
	if x := v.wasByHand(); x != nil {
		v.enterByHand(d, x, "was made PRIMARY by hand for a while: its configuration is of a later promotion than that of "+v.auth.Holder.Replica)
		return true
	}
	for _, e := range v.auth.ByHand {
		x := v.snap.Find(e.Replica)
		if !notPrimary(x) || !v.beyond(x) && !v.contested(x) {
			continue
		}
		why := v.notOvertaken(x, e)
		if why == "" {
			return v.overtake(d, x)
		}
		d.find(x.Name, ag.SymptomNone, "it was PRIMARY by hand, and may hold what %s does not: %s", v.auth.Holder.Replica, why)
		if v.contested(x) {
			d.block(ag.ReasonTwoPrimaries, "R12", x.Name, "it was PRIMARY by hand, and to follow %s would discard what it may have acknowledged (%s): %s",
				v.auth.Holder.Replica, why, choose(x.Name, v.auth.Holder.Replica))
		}
	}
	return false
}

// choose is what a person does about two that may each have acknowledged what the other lacks.
func choose(x, other string) string {
	return fmt.Sprintf("choose one, what only the other has acknowledged is lost: kubectl mssql failover NAME --to %s --allow-data-loss=unlimited, or --to %s", x, other)
}

// contested: a person's choice whose number does not tell its promotion apart, and that
// follows nobody. The primary would take it back without a word, and undo in its copies what
// it has acknowledged (FG 4.8): where no proof settles it, it is left alone.
func (v *view) contested(x *ag.Replica) bool {
	e, entered := v.byHand(x.Name)
	return entered && e.Unordered && notPrimary(x) && x.Local.Role != ag.RoleSecondary
}

// overtake takes the holder offline, whose office the person's choice then gets; or the
// other one, where the holder has gone on without it. Neither becomes stale.
func (v *view) overtake(d *draft, x *ag.Replica) bool {
	p := v.holder()
	e, _ := v.byHand(x.Name)
	why := v.notOvertaken(x, e)
	switch {
	case why == "":
		v.demote(d, p, x.Name+" was made PRIMARY by hand, and its secondaries follow it")
		d.event(ag.EventWarning, ag.EventDemoted, "%s was made PRIMARY by hand and is followed: %s is taken offline", x.Name, p.Name)
		return true
	case p.Local.Sequence > e.Before && !v.wroteNothingWithout(x, p.Name, e):
		d.block(ag.ReasonTwoPrimaries, "R12", x.Name, "it was made PRIMARY by hand, and %s: it is taken offline, and what it has acknowledged is on it alone", why)
		d.do(ag.TakeOffline{Replica: x.Name, Why: "it is PRIMARY without the Lease", Guard: ag.Guard{PodUID: x.Pod.UID, Role: ag.RolePrimary}})
		d.soon("%s to be offline", x.Name)
		return true
	}
	d.block(ag.ReasonTwoPrimaries, "R13", x.Name, "it was made PRIMARY by hand beside %s, which holds the Lease, and is not followed: %s", p.Name, why)
	d.soon("the secondaries to follow one of them")
	return true
}

// notOvertaken is why the holder, which is PRIMARY, does not give way to x, or nothing: it
// has changed nothing of the configuration since x was in step with it, so that it has
// acknowledged nothing without x; and so many follow x that it cannot any more (R13).
func (v *view) notOvertaken(x *ag.Replica, e ag.ByHand) string {
	p := v.holder()
	if r := v.answers(x); !r.none() {
		return r.why
	}
	switch {
	case x.Fenced:
		return "it is fenced"
	case runOf(x).Zero():
		return "its instance manager does not answer"
	case (e.Before == 0 || p.Local.Sequence != e.Before) && !v.wroteNothingWithout(x, p.Name, e):
		return fmt.Sprintf("%s has gone on without it (sequence number %d, that of %s was %d)", p.Name, p.Local.Sequence, x.Name, e.Before)
	}
	ns := len(v.auth.Rule.Set)
	need, have := max(min(ns-int(v.auth.Rule.K), ns-1), 1), 0
	for _, name := range v.auth.Rule.Names() {
		if r := v.snap.Find(name); name != p.Name && reached(r) && v.withChoice(r, x, p) {
			have++
		}
	}
	if have < need {
		return fmt.Sprintf("%d of %d needed synchronous replicas follow it", have, need)
	}
	return ""
}

// withChoice: r has x's configuration, or a later one, and not p's, which is an earlier one.
func (v *view) withChoice(r, x, p *ag.Replica) bool {
	if x.Local.Sequence>>32 > p.Local.Sequence>>32 {
		return r.Local.Sequence>>32 >= x.Local.Sequence>>32
	}
	return x.Local.Sequence > p.Local.Sequence && r.Local.Sequence >= x.Local.Sequence
}

// disputed is why nobody is elected, or nothing: a replica was PRIMARY by hand beside the
// last primary, and it is not proven that the one holds all that the other has acknowledged.
// It is proven where the last primary is no longer PRIMARY and stopped at the number at
// which the other left it: a synchronous secondary is dropped by a change of the
// configuration before anything is acknowledged without it. Or where it could not
// acknowledge anything without the other, or has become its secondary since.
func (v *view) disputed() refusal {
	for _, e := range v.auth.ByHand {
		x, last := v.snap.Find(e.Replica), v.snap.Find(v.auth.LastPrimary)
		if e.Replica == v.auth.LastPrimary {
			continue
		}
		switch {
		case !v.answersOwnVolume(x).none():
			return refuse("R12", "%s was made PRIMARY by hand, and what it has acknowledged may be on it alone: %s", e.Replica, v.answersOwnVolume(x).why)
		case v.deadLast() && e.Before >= v.recordedSequence(v.auth.LastPrimary) && !e.Unordered:
		case isPrimary(last):
			return refuse("R12", "%s was made PRIMARY by hand beside %s, which is PRIMARY", e.Replica, v.auth.LastPrimary)
		case v.answers(last).none() && e.Unordered && last.Local.Sequence >= x.Local.Sequence && !v.followed(last, x, e):
			return refuse("R12", "%s was made PRIMARY by hand beside %s, and their sequence numbers (%d and %d) do not tell which is the later one: %s",
				e.Replica, v.auth.LastPrimary, x.Local.Sequence, last.Local.Sequence, choose(e.Replica, v.auth.LastPrimary))
		case v.wroteNothingWithout(x, v.auth.LastPrimary, e):
		case !v.answersOwnVolume(last).none():
			return refuse("R12", "%s was made PRIMARY by hand beside %s, which must answer, as it may have gone on: %s", e.Replica, v.auth.LastPrimary, v.answersOwnVolume(last).why)
		case v.followed(last, x, e):
		case e.Before == 0 || last.Local.Sequence != e.Before:
			return refuse("R12", "%s was made PRIMARY by hand beside %s, and each may have acknowledged what the other lacks%s: %s",
				e.Replica, v.auth.LastPrimary, v.witnesses(x, v.auth.LastPrimary), choose(e.Replica, v.auth.LastPrimary))
		}
	}
	return refusal{}
}

// wroteNothingWithout: h was primary when x was made PRIMARY by hand, and has acknowledged
// nothing since that x lacks. Every commit waits for k secondaries, and so many are left only
// if x is among them: of the others, fewer than k may have taken a configuration of h
// without x, which would have a higher number than x's last one before (FG 5.1). That x's
// number before is of an earlier promotion tells that it is one from before.
func (v *view) wroteNothingWithout(x *ag.Replica, h string, e ag.ByHand) bool {
	k := int(v.auth.Rule.K)
	if r := v.snap.Find(h); reached(r) {
		k = min(k, int(r.Local.RequiredToCommit))
	}
	if len(less(less(v.auth.Rule.Names(), h), x.Name)) < k && v.answers(x).none() {
		return true // there is nobody else
	}
	if e.Before <= 0 || !later(x, e) {
		return false
	}
	return len(v.mayHaveHelped(x, h, e)) < k
}

// later: x's number is of a later promotion than the one in which it was in step.
func later(x *ag.Replica, e ag.ByHand) bool { return x.Local.Sequence>>32 > e.Before>>32 }

// mayHaveHelped are the synchronous replicas that may have hardened commits of h without x.
func (v *view) mayHaveHelped(x *ag.Replica, h string, e ag.ByHand) []string {
	var names []string
	for _, name := range v.auth.Rule.Names() {
		if z := v.snap.Find(name); name != h && name != x.Name && (!v.answersOwnVolume(z).none() || z.Local.Sequence > e.Before) {
			names = append(names, name)
		}
	}
	return names
}

// witnesses names the replicas whose answer might settle the dispute.
func (v *view) witnesses(x *ag.Replica, h string) string {
	s := ""
	for _, name := range v.auth.Rule.Names() {
		if z := v.snap.Find(name); name != h && name != x.Name && !v.answersOwnVolume(z).none() {
			s += fmt.Sprintf(", and %s, which might tell, does not count as an answer (%s)", name, v.answersOwnVolume(z).why)
		}
	}
	return s
}

// followed: the last primary has become a secondary of x since. It has x's configuration, and
// every copy is on the recovery fork that began with x's promotion.
func (v *view) followed(last, x *ag.Replica, e ag.ByHand) bool {
	if last.Local.Sequence != x.Local.Sequence || e.Before <= 0 || !later(x, e) || len(x.Local.Databases) == 0 {
		return false
	}
	for _, db := range x.Local.Databases {
		if o := database(last.Local.Databases, db.Name); o == nil || db.RecoveryFork == "" || o.RecoveryFork != db.RecoveryFork {
			return false
		}
	}
	return true
}

// deadLast: the last primary is the holder, and its run is proven dead.
func (v *view) deadLast() bool {
	return v.auth.Holder.Replica == v.auth.LastPrimary && v.dead(v.auth.Holder) != "" && !reached(v.snap.Find(v.auth.LastPrimary))
}

func (v *view) byHand(name string) (ag.ByHand, bool) {
	for _, e := range v.auth.ByHand {
		if e.Replica == name {
			return e, true
		}
	}
	return ag.ByHand{}, false
}

// openByHand: a person's choice may still be ahead of the primary, whose number must then
// stay what it is, as the proofs compare it. One that has none of a later promotion any
// more, as it was rejoined for instance, does not mind.
func (v *view) openByHand() bool {
	for _, e := range v.auth.ByHand {
		if x := v.snap.Find(e.Replica); !notPrimary(x) || v.beyond(x) || v.contested(x) {
			return true
		}
	}
	return false
}

// stillByHand are those that have not been seen SYNCHRONIZED under this primary since.
func (v *view) stillByHand(p *ag.Replica) (entries []ag.ByHand, names []string) {
	for _, e := range v.auth.ByHand {
		if r := v.snap.Find(e.Replica); e.Replica != p.Name && (r == nil || !v.caughtUp(r)) {
			entries, names = append(entries, e), append(names, e.Replica)
		}
	}
	return entries, names
}
