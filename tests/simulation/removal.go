//go:build linux

package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// removal is one rule of the safety design with what it takes to see that it is needed: the rule is
// left out, with its own lock as the only one, and schedules of the kind that it is made for are run.
type removal struct {
	rule string // as the page names it
	what string
	omit []string // what is left out of the product to leave the rule out
	// locks are left out in both runs: what remains is the lock that the rule belongs to.
	locks []string
	// shape makes the schedules; nil takes them as they are drawn.
	shape func(p *plan, r *rand.Rand)
	// elsewhere names tests that show the rule by a schedule written for it.
	elsewhere string
}

// left is all that is left out.
func (m removal) left() []string { return append(append([]string(nil), m.locks...), m.omit...) }

// shaped is the plan of a removal's nth try.
func (m removal) shaped(seed uint64) plan {
	p := newPlan(seed)
	if p.gap > 0 {
		p.gap = 0
	}
	p.hold, p.threshold = 20, 10
	if m.shape != nil {
		m.shape(&p, rand.New(rand.NewPCG(seed, 0x0b5e55ed))) //nolint:gosec // a schedule
	}
	return p
}

func span(r *rand.Rand, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.Int64N(int64(hi-lo)))
}

// on fixes the topology.
func on(n int, more ...func(*plan, *rand.Rand)) func(*plan, *rand.Rand) {
	return func(p *plan, r *rand.Rand) {
		p.topology = topologies()[n]
		for _, f := range more {
			f(p, r)
		}
	}
}

// cutOffOften cuts the primary from the control plane again and again, while its sessions come and go.
func cutOffOften(p *plan, r *rand.Rand) {
	p.faults = nil
	for at := quiet; at < p.heal-60*time.Second; at += span(r, 100*time.Second, 140*time.Second) {
		d := span(r, 45*time.Second, 90*time.Second)
		p.faults = append(p.faults, fault{at: at, what: "cut-control", who: "primary", length: d})
		for range 1 + r.IntN(3) {
			p.faults = append(p.faults, fault{at: at + span(r, 0, 45*time.Second), what: "cut-endpoint", who: "holder", other: fmt.Sprintf("secondary:%d", r.IntN(2)), length: span(r, 5*time.Second, 50*time.Second)})
		}
		if r.IntN(2) == 0 {
			p.faults = append(p.faults, fault{at: at + span(r, 5*time.Second, 40*time.Second), what: "cut-endpoint", who: "primary", other: fmt.Sprintf("secondary:%d", r.IntN(2)), length: span(r, 5*time.Second, 50*time.Second)})
		}
		if r.IntN(3) == 0 {
			p.faults = append(p.faults, fault{at: at + span(r, 20*time.Second, 60*time.Second), what: "reset", who: "primary"})
		}
		if r.IntN(2) == 0 { // the nominee loses its sessions, the old primary keeps a follower
			p.faults = append(p.faults, fault{at: at, what: "cut-endpoints", who: "holder", length: span(r, 15*time.Second, 60*time.Second), aim: "grant", nth: 1, delay: span(r, 0, 3*time.Second)})
		} else { // or just when it becomes primary
			p.faults = append(p.faults, fault{at: at, what: "cut-endpoints", who: "holder", length: span(r, 15*time.Second, 60*time.Second), aim: "phase failover/promoting", nth: 1, delay: span(r, 0, time.Second)})
		}
	}
}

// unseen leaves the primary nothing but its sessions with the other servers, and cuts the nominee off
// from these just when it becomes primary.
func unseen(p *plan, r *rand.Rand) {
	p.faults = nil
	for at := quiet; at < p.heal-90*time.Second; at += span(r, 120*time.Second, 150*time.Second) {
		p.faults = append(p.faults,
			fault{at: at, what: "only-endpoints", who: "primary", length: span(r, 80*time.Second, 110*time.Second)},
			fault{at: at, what: "cut-endpoints", who: "holder", length: span(r, 25*time.Second, 60*time.Second), aim: "phase failover/promoting", nth: 1, delay: span(r, 0, time.Second)})
	}
}

// raiseLost loses the secondary just when the rule is raised, and then the primary.
func raiseLost(p *plan, r *rand.Rand) {
	p.faults = nil
	for at := quiet; at < p.heal-90*time.Second; at += span(r, 110*time.Second, 150*time.Second) {
		p.faults = append(p.faults,
			fault{at: at, what: "cut-endpoint", who: "primary", other: "secondary:0", length: span(r, 18*time.Second, 30*time.Second)},
			fault{at: at, what: "sever", who: "primary", other: "secondary:0", length: span(r, 40*time.Second, 60*time.Second), aim: "rule", nth: 2, delay: span(r, 0, 8*time.Millisecond)},
			fault{at: at, what: "poweroff", who: "primary", length: span(r, 60*time.Second, 80*time.Second), aim: "rule", nth: 2, delay: span(r, 2*time.Second, 12*time.Second)})
	}
}

// comeAndGo lets secondaries come and go and then takes the primary, so that the commit rule moves.
func comeAndGo(p *plan, r *rand.Rand) {
	p.faults = nil
	for at := quiet; at < p.heal-60*time.Second; at += span(r, 50*time.Second, 110*time.Second) {
		p.faults = append(p.faults, fault{at: at, what: "cut-endpoint", who: "primary", other: "secondary:0", length: span(r, 18*time.Second, 60*time.Second)})
		f := fault{at: at + span(r, time.Second, 30*time.Second), what: "poweroff", who: "primary", length: span(r, 30*time.Second, 60*time.Second)}
		if r.IntN(2) == 0 {
			f.what, f.length = "isolate", span(r, 30*time.Second, 60*time.Second)
		}
		if r.IntN(3) > 0 {
			f.aim, f.nth, f.delay = []string{"altered", "alter", "rule", "record"}[r.IntN(4)], 1+r.IntN(2), span(r, 0, 2500*time.Millisecond)
		}
		p.faults = append(p.faults, f)
		if r.IntN(3) == 0 {
			p.faults = append(p.faults, fault{at: at, what: "reset", who: "primary", aim: []string{"altered", "rule"}[r.IntN(2)], nth: 1, delay: span(r, 0, time.Second)})
		}
	}
}

// movesUnderFire asks for switchovers and cuts the target off in the middle.
func movesUnderFire(p *plan, r *rand.Rand) {
	p.faults = nil
	if r.IntN(2) == 0 {
		p.timings = engine.DefaultTimings()
		p.timings.PromotionMin, p.timings.PromotionMax = 10*time.Second, 90*time.Second
	}
	for at := quiet; at < p.heal-60*time.Second; at += span(r, 70*time.Second, 120*time.Second) {
		p.faults = append(p.faults, fault{at: at, what: "move", who: fmt.Sprintf("secondary:%d", r.IntN(2))})
		aim := []string{"phase switchover/demoting", "phase switchover/promoting", "offline", "failover", "role PRIMARY"}[r.IntN(5)]
		f := fault{at: at, aim: aim, nth: 1, delay: span(r, 0, 1500*time.Millisecond), who: []string{"holder", "primary"}[r.IntN(2)], length: span(r, 20*time.Second, 70*time.Second)}
		f.what = []string{"cut-endpoint", "isolate", "kill", "reset"}[r.IntN(4)]
		f.other = "secondary:" + []string{"0", "1"}[r.IntN(2)]
		if r.IntN(2) == 0 { // the target is lost just before the primary goes offline
			f = fault{at: at, aim: "phase switchover/demoting", nth: 1, delay: span(r, 0, 9*time.Millisecond), what: "sever", who: "primary", other: "target", length: span(r, 10*time.Second, 60*time.Second)}
		}
		p.faults = append(p.faults, f)
		if r.IntN(2) == 0 {
			p.faults = append(p.faults, fault{at: at - span(r, 0, 10*time.Second), what: "cut-endpoint", who: "primary", other: fmt.Sprintf("secondary:%d", r.IntN(2)), length: span(r, 3*time.Second, 20*time.Second)})
		}
	}
}

// pauses freezes controllers and servers just when roles change.
func pauses(p *plan, r *rand.Rand) {
	cutOffOften(p, r)
	for at := quiet; at < p.heal-60*time.Second; at += span(r, 40*time.Second, 80*time.Second) {
		f := fault{at: at, what: []string{"freeze-controller", "freeze-sql", "freeze"}[r.IntN(3)], who: "holder", length: span(r, 4*time.Second, 60*time.Second), aim: "phase failover/promoting", nth: 1, delay: span(r, 0, 15*time.Millisecond)}
		p.faults = append(p.faults, f)
	}
}

// alone lets a promotion succeed although nobody follows: fact 2 of the safety review turned round,
// so that the server does not do by itself what the rule is there for.
func alone(p *plan, _ *rand.Rand) { p.readings.PromotionWithoutQuorum = true }

// together does what all the shapes do.
func together(shapes ...func(*plan, *rand.Rand)) func(*plan, *rand.Rand) {
	return func(p *plan, r *rand.Rand) {
		for _, f := range shapes {
			f(p, r)
		}
	}
}

func add(f func(r *rand.Rand, at time.Duration) fault, every time.Duration) func(*plan, *rand.Rand) {
	return func(p *plan, r *rand.Rand) {
		for at := quiet; at < p.heal-40*time.Second; at += span(r, every/2, every*3/2) {
			p.faults = append(p.faults, f(r, at))
		}
	}
}

const (
	noWait    = "R9"
	noPromise = "R11"
)

// removals in the order of the page.
func removals() []removal {
	return []removal{
		{rule: "R1", what: "a swap of the record compares its version", elsewhere: "pkg/sql/state TestSwap", omit: []string{"R1"}, locks: []string{noPromise}, shape: func(p *plan, r *rand.Rand) {
			add(func(r *rand.Rand, at time.Duration) fault {
				return fault{at: at, what: "api-chaos", length: span(r, 20*time.Second, 60*time.Second)}
			}, 60*time.Second)(p, r)
		}},
		{rule: "R2", what: "an operation has a deadline for everybody", omit: []string{"R2"}, shape: func(p *plan, r *rand.Rand) {
			p.faults = []fault{{at: quiet, what: "direct", who: "secondary:0", length: forGood}, {at: quiet + 5*time.Second, what: "kill", who: "primary"}}
		}},
		{rule: "R3", what: "a run that restarts has no authority", elsewhere: "pkg/sql/lease TestRestart_HasNoAuthority", omit: []string{"R3"}, locks: []string{noPromise}, shape: among(inherits, threeSync, fourSync, fiveSync)},
		{rule: "R3, renewal", what: "a holder that is not PRIMARY stops renewing", elsewhere: "pkg/sql/lease TestMayRenewLease", omit: []string{"R3 renewal"}, shape: among(renewsOn, threeSync, fiveSync, fourSync)},
		{rule: "R4", what: "an older Lease is no proof", elsewhere: "pkg/sql/lease TestLearn", omit: []string{"R4"}, shape: among(olderLease, twoSync)},
		{rule: "R5", what: "a statement that changes a role carries its expiry", elsewhere: "pkg/sql/agops TestPromotionIsGuarded, TestRoleChangesCarryExpiryAndGuard", omit: []string{"R5"}, locks: []string{noPromise}, shape: among(lateFailover, threeSync, fourSync, fiveSync)},
		{rule: "A", what: "the write lease is renewed on a fresh proof only", elsewhere: "pkg/sql/lease TestMayRenewWriteLease_CountsFromWhenTheProofWasSent", omit: []string{"A"}, locks: []string{noPromise}, shape: among(outOfSight, threeSync, fourSync, fiveSync, withWitness)},
		{rule: "R6", what: "a clock jump voids every proof", elsewhere: "pkg/sql/lease TestClockJump", omit: []string{"R6"}, locks: []string{noPromise}, shape: among(clockBack, threeSync, fourSync, fiveSync, withWitness)},
		{rule: "R7", what: "a PRIMARY beyond its write lease is killed", elsewhere: "pkg/sql/lease TestKill", omit: []string{"R7"}, locks: []string{noPromise}, shape: among(byPolls, threeSync, fourSync, fiveSync, withWitness)},
		{rule: "R8", what: "silence is no proof of death", omit: []string{"R8 proof"}, locks: []string{noPromise}, shape: together(alone, cutOffOften)},
		{rule: "R9", what: "the full wait", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{noWait}, locks: []string{noPromise}, shape: together(alone, cutOffOften)},
		{rule: "R10", what: "the election is run again after the fence", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"R10"}, locks: []string{noPromise}, shape: on(threeSync, cutOffOften)},
		{rule: "R11", what: "followers stop following first", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{noPromise}, locks: []string{noWait}, shape: together(alone, cutOffOften)},
		{rule: "R12, highest number", what: "the highest sequence number wins", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"max"}, locks: []string{noWait}, shape: among(longerTail, fiveSync)},
		{rule: "R12, stale", what: "an orphaned promotion does not count", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"stale"}, locks: []string{noWait}, shape: among(orphanReturns, fiveSync)},
		{rule: "R13", what: "enough answers", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"R13"}, locks: []string{noWait}, shape: on(twoSync, comeAndGo)},
		{rule: "R13, last primary", what: "the last primary itself is enough (I3)", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"last"}, shape: on(twoSync, comeAndGo)},
		{rule: "§3.8, weaker rule", what: "a grant takes the candidate's own k if it is lower", omit: []string{"weaker"}, locks: []string{noWait}, shape: among(lowTarget, twoSync)},
		{rule: "R14", what: "lower: record first", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R14"}, locks: []string{noWait}, shape: on(twoSync, comeAndGo)},
		{rule: "R15", what: "raise: in force and met before it is recorded", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R15"}, locks: []string{noWait}, shape: on(twoSync, raiseLost)},
		{rule: "R16", what: "a synchronous replica joins: record first", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R16"}, locks: []string{noWait}, shape: among(joins, twoSyncAndAsync)},
		{rule: "R17", what: "one leaves: SYNCHRONIZED without it before it is recorded", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R17"}, locks: []string{noWait}, shape: among(leaves, threeSync)},
		{rule: "R18", what: "a record counts only when its own swap was answered", omit: []string{"R18"}, locks: []string{noWait}, shape: on(twoSync, comeAndGo, add(func(r *rand.Rand, at time.Duration) fault {
			return fault{at: at, what: []string{"api-chaos", "api-away"}[r.IntN(2)], length: span(r, 20*time.Second, 60*time.Second)}
		}, 50*time.Second))},
		{rule: "R19", what: "a value below the record lowers the record", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R19"}, locks: []string{noWait}, shape: on(twoSync, comeAndGo, add(func(_ *rand.Rand, at time.Duration) fault {
			return fault{at: at, what: "hand-k", who: "primary"}
		}, 40*time.Second))},
		{rule: "R20", what: "both are compared after OFFLINE", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"R20"}, locks: []string{noWait}, shape: movesUnderFire},
		{rule: "R21", what: "an abort is a failover away from the target", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"R21"}, locks: []string{noWait}, shape: movesUnderFire},
		{rule: "R22", what: "managers are sealed before a promotion", elsewhere: "pkg/sql/lease TestSeal, TestAnswerFailsafe", omit: []string{"R22"}, locks: []string{noPromise}, shape: among(onFailsafe, threeSync, fourSync, fiveSync)},
		{rule: "§3.9, labels", what: "the old primary's label goes first", omit: []string{"old label first"}, shape: among(answerLost, threeSync, twoSync, withWitness, fourSync, fiveSync)},
		{rule: "§3.9, ONLINE", what: "a primary is published when its databases are ONLINE", omit: []string{"online first"}, shape: among(slowRecovery, threeSync, twoSync, fourSync, fiveSync)},
		{rule: "§7, seeding", what: "no SET ROLE where a database is being seeded", omit: []string{"seeding"}, shape: among(reseeds, threeSync, fourSync, fiveSync)},
		{rule: "§7, caps", what: "the way back is walked at a measured pace, and ends", omit: []string{"caps"}, shape: among(cutForLong, threeSync, twoSync, fourSync, fiveSync)},
		{rule: "I4", what: "no copy is discarded that may hold what no other has", omit: []string{"I4"}, shape: among(forced, twoSync)},
	}
}

// forGood is the length of what never comes back.
const forGood = time.Hour
