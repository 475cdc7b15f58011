package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

const second = time.Second

const (
	// minStrikes is how many readings of a silent primary make a suspicion. Where as many
	// readings of the Lease have found it unrenewed, two looks at the primary are enough: the
	// earlier ones may have been made by a controller that did not act yet, and asked no server.
	minStrikes = 3
	// strikeRenewals is how many renew intervals lie between two readings that count.
	strikeRenewals = 2
	// strikeGap in renew intervals: after a longer gap the readings are no longer in a row.
	strikeGap = 10
)

// rulePrimary looks at the primary: writing, gone, or silent.
func rulePrimary(v *view, d *draft) bool {
	m := &d.d.Memory
	st := v.standing()
	if st == holderWriting {
		m.HeadlessSince = time.Time{}
		v.cutOffButWriting(d)
		return v.storageLost(d)
	}
	if m.HeadlessSince.IsZero() && st != holderSilent {
		m.HeadlessSince = v.now
	}
	cause, act := v.suspect(d, st)
	if !act {
		return false
	}
	if !v.pol.External || !v.pol.AutoFailover {
		d.block(ag.ReasonAutomaticFailoverOff, "", v.auth.Holder.Replica, "nobody is primary (%s) and automatic failover is off: move it by hand", cause)
		return false
	}
	if st == holderSilent && v.auth.NoWriteLease {
		d.block(ag.ReasonWriteLeaseUnusable, "R9", v.auth.Holder.Replica, "%s, and the group has no working write lease: only proof of its end lets another be promoted", cause)
		return true
	}
	b := v.elect(question{})
	if b.winner == "" {
		v.blockBallot(d, b)
		return v.forcedByPolicy(d)
	}
	if left := v.handMayCome(st, m.HeadlessSince); left > 0 {
		d.find(v.auth.Holder.Replica, ag.SymptomNone, "%s: a person may be moving the primary", cause)
		d.wait(left, "a FAILOVER by hand to show")
		return true
	}
	return v.startFailover(d, b, ag.OperationFailover, cause, nil)
}

// suspect says whether the primary's place is free to be given to another, and why.
func (v *view) suspect(d *draft, st standing) (cause string, act bool) {
	name := v.auth.Holder.Replica
	switch st {
	case holderNone:
		return "nobody holds the Lease", true
	case holderDead:
		return fmt.Sprintf("%s: %s", name, v.dead(v.auth.Holder)), true
	case holderNotPrimary:
		return fmt.Sprintf("%s says %s", name, v.holder().Local.Role), true
	case holderSilent, holderWriting:
	}
	return v.silent(d)
}

// silent counts the time in which this observer's own reads succeed and the primary
// neither answers nor renews.
func (v *view) silent(d *draft) (string, bool) {
	m, name := &d.d.Memory, v.auth.Holder.Replica
	f := m.PrimaryFailure
	if f != nil && f.Renewals != v.auth.Renewals {
		// Its manager still renews the Lease: whatever hides it from here is not its death.
		m.PrimaryFailure = &ag.Failure{Since: v.now, LastStrikeAt: v.now, Strikes: 1, Renewals: v.auth.Renewals,
			Evidence: reachText(v.holder()) + ", and its manager renews the Lease"}
		d.find(name, ag.SymptomUnreachable, "%s; its manager renews the Lease: no failover", reachText(v.holder()))
		d.wait(strikeRenewals*v.tm.Renew, "the next reading of %s", name)
		return "", false
	}
	gap, fresh := max(strikeGap*v.tm.Renew, 10*second), false
	switch {
	case f == nil || elapsed(f.LastStrikeAt, v.now) > gap:
		fresh = true
		f = &ag.Failure{Since: v.now, LastStrikeAt: v.now, Strikes: 1, Renewals: v.auth.Renewals}
	case elapsed(f.LastStrikeAt, v.now) >= strikeRenewals*v.tm.Renew:
		c := *f
		c.Strikes, c.LastStrikeAt = min(f.Strikes+1, 1000), v.now
		f = &c
	}
	f.Evidence = reachText(v.holder())
	m.PrimaryFailure = f
	// The Lease's readings count from before this suspicion too: also those that were made
	// while another controller was the acting one, so that its end starts nothing anew.
	lasted := max(elapsed(f.Since, v.now), v.since(v.watch.Reads.From))
	left := min(v.pol.Threshold, v.outlived()) - lasted
	switch known := v.watch.Reads.Counted >= minStrikes; {
	case f.Strikes >= minStrikes, known && elapsed(f.Since, v.now) >= second:
	case known:
		left = max(left, second)
	default:
		left = max(left, strikeRenewals*v.tm.Renew)
	}
	if left > 0 {
		d.find(name, ag.SymptomUnreachable, "%s and its Lease is not renewed: suspected since %s", reachText(v.holder()), clockTime(f.Since))
		d.wait(left, "the suspicion against %s", name)
		if fresh {
			d.event(ag.EventWarning, ag.EventSuspected, "%s: %s and its Lease is not renewed", name, f.Evidence)
		}
		return "", false
	}
	if by := v.failsafeWitness(); by != "" {
		if hold := v.pol.FailsafeHold - elapsed(f.Since, v.now); hold > 0 {
			d.block(ag.ReasonPrimaryCutOff, "", name, "it is cut off from the API server, and %s has just agreed that it goes on: failover after %s, or on request", by, v.pol.FailsafeHold)
			d.wait(hold, "%s to come back", name)
			return "", false
		}
	}
	mayWrite := v.since(v.watch.Seen) < v.outlived()
	if left := v.pol.MinBetween - elapsed(m.LastRoleChangeAt, v.now); left > 0 && !m.LastRoleChangeAt.IsZero() && mayWrite {
		d.find(name, ag.SymptomNone, "suspected, but the last role change was less than %s ago", v.pol.MinBetween)
		d.wait(left, "minTimeBetweenFailovers")
		return "", false
	}
	return fmt.Sprintf("%s: %s and its Lease is not renewed", name, f.Evidence), true
}

// outlived is how long after its last renewal a primary is over: its write lease has
// ended, and its own manager kills the server (R7). Neither threshold nor damping
// outlasts it, as nobody can write from there on; to be proven it takes the full wait (R9).
func (v *view) outlived() time.Duration { return v.tm.A + v.tm.L }

// cutOffButWriting: the primary answers here and writes, but not by the Lease: its manager
// lives on what the others agree to.
func (v *view) cutOffButWriting(d *draft) {
	if v.auth.Operation != nil || v.since(v.watch.Seen) < v.tm.A {
		return
	}
	if by := v.failsafeWitness(); by != "" {
		d.block(ag.ReasonPrimaryCutOff, "", v.auth.Holder.Replica,
			"its manager is cut off from the API server; it goes on because %s and others agree, and ends when they cannot be asked", by)
	}
}

// failsafeWitness is a manager that gave a failsafe answer within the last A.
func (v *view) failsafeWitness() string {
	for i := range v.snap.Replicas {
		m := v.snap.Replicas[i].Manager
		if m.Reach == ag.ReachOK && m.LastFailsafeAgo >= 0 && m.Answered() && m.LastFailsafeAgo <= v.tm.A {
			return v.snap.Replicas[i].Name
		}
	}
	return ""
}

// storageLost: the primary answers, but a database of the group is in a state that does
// not end by itself. It counts like silence; the primary is then taken offline first.
func (v *view) storageLost(d *draft) bool {
	m, p := &d.d.Memory, v.holder()
	db := badDatabase(p)
	if db == "" {
		m.PrimaryFailure = nil
		return false
	}
	evidence := fmt.Sprintf("database %s is %s", db, database(p.Local.Databases, db).State)
	f := m.PrimaryFailure
	if f == nil || f.Renewals != storageMark {
		f = &ag.Failure{Since: v.now, LastStrikeAt: v.now, Renewals: storageMark}
		d.event(ag.EventWarning, ag.EventSuspected, "%s: %s", p.Name, evidence)
	}
	c := *f
	if c.Strikes == 0 || elapsed(c.LastStrikeAt, v.now) >= strikeRenewals*v.tm.Renew {
		c.Strikes, c.LastStrikeAt = min(c.Strikes+1, 1000), v.now
	}
	c.Evidence = evidence
	m.PrimaryFailure = &c
	d.find(p.Name, ag.SymptomNone, "%s on the primary since %s", evidence, clockTime(c.Since))
	if !v.pol.External || !v.pol.AutoFailover {
		return false
	}
	left := max(v.pol.Threshold-elapsed(c.Since, v.now), 0)
	if !m.LastRoleChangeAt.IsZero() {
		left = max(left, v.pol.MinBetween-elapsed(m.LastRoleChangeAt, v.now))
	}
	if left > 0 || c.Strikes < minStrikes {
		d.wait(max(min(left, strikeRenewals*v.tm.Renew), second), "the suspicion against %s", p.Name)
		return false
	}
	b := v.elect(question{without: []string{p.Name}, live: true})
	t := v.snap.Find(b.winner)
	if b.winner == "" || !v.healthyCopy(t, db) {
		d.find(p.Name, ag.SymptomNone, "no other replica could take over without loss")
		return false
	}
	return v.startFailover(d, b, ag.OperationFailover, p.Name+": "+evidence, nil)
}

// storageMark stands in Failure.Renewals for a suspicion that has nothing to do with renewals.
const storageMark = "storage"

// healthyCopy: the replica's own copy of this database is not in such a state itself.
func (v *view) healthyCopy(t *ag.Replica, db string) bool {
	if t == nil || badDatabase(t) != "" {
		return false
	}
	return database(t.Local.Databases, db) != nil
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05") }
