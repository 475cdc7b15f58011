//go:build linux

package simulation

import (
	"math/rand/v2"
	"time"
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

const (
	noWait    = "R9"
	noPromise = "R11"
)

// removals in the order of the page.
func removals() []removal {
	return []removal{
		{rule: "R1", what: "a swap of the record compares its version", elsewhere: "pkg/sql/state TestSwap", omit: []string{"R1"}, locks: []string{noWait, "R4"}, shape: among(relaxes, twoSync)},
		{rule: "R2", what: "an operation has a deadline for everybody", omit: []string{"R2"}, shape: among(closedLaptop, threeSync, twoSync, fourSync, fiveSync)},
		{rule: "R3", what: "a run that restarts has no authority", elsewhere: "pkg/sql/lease TestRestart_HasNoAuthority", omit: []string{"R3"}, locks: []string{noPromise}, shape: among(inherits, threeSync, fourSync, fiveSync)},
		{rule: "R3, renewal", what: "a holder that is not PRIMARY stops renewing", elsewhere: "pkg/sql/lease TestMayRenewLease", omit: []string{"R3 renewal"}, shape: among(renewsOn, threeSync, fiveSync, fourSync)},
		{rule: "R4", what: "an older Lease is no proof", elsewhere: "pkg/sql/lease TestLearn", omit: []string{"R4"}, shape: among(olderLease, twoSync)},
		{rule: "R4, count", what: "a Lease of an earlier moment of the same grant is no proof", elsewhere: "pkg/sql/lease TestLearn", omit: []string{"R4 swaps"}, shape: among(sameGrant, threeSync, fiveSync)},
		{rule: "R5", what: "a statement that changes a role carries its expiry", elsewhere: "pkg/sql/agops TestPromotionIsGuarded, TestRoleChangesCarryExpiryAndGuard", omit: []string{"R5"}, locks: []string{noPromise}, shape: among(lateFailover, threeSync, fourSync, fiveSync)},
		{rule: "A", what: "the write lease is renewed on a fresh proof only", elsewhere: "pkg/sql/lease TestMayRenewWriteLease_CountsFromWhenTheProofWasSent", omit: []string{"A"}, locks: []string{noPromise}, shape: among(outOfSight, threeSync, fourSync, fiveSync, withWitness)},
		{rule: "R6", what: "a clock jump voids every proof", elsewhere: "pkg/sql/lease TestClockJump", omit: []string{"R6"}, locks: []string{noPromise}, shape: among(clockBack, threeSync, fourSync, fiveSync, withWitness)},
		{rule: "R7", what: "a PRIMARY beyond its write lease is killed", elsewhere: "pkg/sql/lease TestKill", omit: []string{"R7"}, locks: []string{noPromise}, shape: among(byPolls, threeSync, fourSync, fiveSync, withWitness)},
		{rule: "R8", what: "silence is no proof of death", omit: []string{"R8 proof"}, locks: []string{noPromise}, shape: among(outOfSight, threeSync, fourSync, fiveSync)},
		{rule: "R9", what: "the full wait", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{noWait}, locks: []string{noPromise}, shape: among(outOfSight, threeSync, fourSync, fiveSync)},
		{rule: "R10", what: "the election is run again after the fence", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"R10"}, locks: []string{noPromise}, shape: among(dropsNominee, threeSync, fourSync, fiveSync)},
		{rule: "R11", what: "followers stop following first", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{noPromise}, locks: []string{noWait}, shape: among(outOfSight, threeSync, fourSync, fiveSync)},
		{rule: "R11, answers", what: "RESOLVING alone is no promise", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"R11 answer"}, locks: []string{noWait}, shape: among(goesOn, fourSync, fiveSync)},
		{rule: "R12, highest number", what: "the highest sequence number wins", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"max"}, locks: []string{noWait}, shape: among(longerTail, fiveSync)},
		{rule: "R12, stale", what: "an orphaned promotion does not count", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"stale"}, locks: []string{noWait}, shape: among(orphanReturns, fiveSync)},
		{rule: "R13", what: "enough answers", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"R13"}, locks: []string{noWait}, shape: among(relaxes, twoSync)},
		{rule: "R13, last primary", what: "the last primary itself is enough", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"last"}, shape: among(lastReturns, twoSync)},
		{rule: "§3.8, weaker rule", what: "a grant takes the candidate's own k if it is lower", omit: []string{"weaker"}, locks: []string{noWait}, shape: among(lowTarget, twoSync)},
		{rule: "R14", what: "lower: record first", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R14"}, locks: []string{noWait}, shape: among(unrecorded, twoSync)},
		{rule: "R15", what: "raise: in force and met before it is recorded", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R15"}, locks: []string{noWait}, shape: among(raises, twoSync)},
		{rule: "R16", what: "a synchronous replica joins: record first", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R16"}, locks: []string{noWait}, shape: among(joins, twoSyncAndAsync)},
		{rule: "R17", what: "one leaves: SYNCHRONIZED without it before it is recorded", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R17"}, locks: []string{noWait}, shape: among(leaves, threeSync)},
		{rule: "R18", what: "a record counts only when its own swap was answered", omit: []string{"R18"}, locks: []string{noWait}, shape: among(unrecorded, twoSync)},
		{rule: "R19", what: "a value below the record lowers the record", elsewhere: "pkg/sql/lease TestPlan", omit: []string{"R19"}, locks: []string{noWait}, shape: among(lowered, twoSync)},
		{rule: "R20", what: "both are compared after OFFLINE", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"R20"}, locks: []string{noWait}, shape: among(movesOn, threeSync, fourSync)},
		{rule: "R21", what: "an abort is a failover away from the target", elsewhere: "pkg/sql/decide TestRuleRemoval", omit: []string{"R21"}, locks: []string{noWait}, shape: among(slowTarget, threeSync, withWitness)},
		{rule: "R22", what: "managers are sealed before a promotion", elsewhere: "pkg/sql/lease TestSeal, TestAnswerFailsafe", omit: []string{"R22"}, locks: []string{noPromise}, shape: among(onFailsafe, threeSync, fourSync, fiveSync)},
		{rule: "§3.9, labels", what: "the old primary's label goes first", omit: []string{"old label first"}, shape: among(answerLost, threeSync, twoSync, withWitness, fourSync, fiveSync)},
		{rule: "§3.9, ONLINE", what: "a primary is published when its databases are ONLINE", omit: []string{"online first"}, shape: among(slowRecovery, threeSync, twoSync, fourSync, fiveSync)},
		{rule: "§7, seeding", what: "no SET ROLE where a database is being seeded", elsewhere: "pkg/sql/decide TestScenarios", omit: []string{"seeding"}, shape: among(reseeds, threeSync, fourSync, fiveSync)},
		{rule: "§7, caps", what: "the way back is walked at a measured pace, and ends", omit: []string{"caps"}, shape: among(cutForLong, threeSync, twoSync, fourSync, fiveSync)},
		{rule: "I4", what: "no copy is discarded that may hold what no other has", omit: []string{"I4"}, shape: among(forced, twoSync)},
	}
}

// forGood is the length of what never comes back.
const forGood = time.Hour
