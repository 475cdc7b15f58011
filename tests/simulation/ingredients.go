//go:build linux

package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// The schedules of single rules. Each draws the ingredients of the one thing that its rule
// prevents; who, when, how long and in which of the fitting topologies stays with the seed.

// Topologies by their place.
const (
	threeSync = iota
	twoSync
	withWitness
	threeSyncAll
	twoSyncAll
	threeSyncRequired
	twoSyncAndAsync
	fiveSync
	witnessAndOne
	fourSync
)

// among draws a topology and then the rest of the schedule, in an otherwise plain world.
func among(shape func(*plan, *rand.Rand), places ...int) func(*plan, *rand.Rand) {
	return func(p *plan, r *rand.Rand) {
		p.topology = topologies()[places[r.IntN(len(places))]]
		p.timings, p.readings, p.faults = engine.DefaultTimings(), drawBenign(p.readings), nil
		p.heal, p.end, p.limit = 300*time.Second, 330*time.Second, 600*time.Second
		shape(p, r)
	}
}

// drawBenign keeps of the drawn readings what changes the course of things and not who may commit.
func drawBenign(x engine.Readings) engine.Readings {
	return engine.Readings{
		Planned: x.Planned, JoinRole: x.JoinRole, SecondaryResolvesOnPrimaryLoss: x.SecondaryResolvesOnPrimaryLoss,
		AllReplicaRowsOnSecondary: x.AllReplicaRowsOnSecondary, ResolvingDatabasesRestoring: x.ResolvingDatabasesRestoring,
	}
}

func (p *plan) hit(f ...fault) { p.faults = append(p.faults, f...) }

func someSecondary(r *rand.Rand, p *plan) string {
	return fmt.Sprintf("secondary:%d", r.IntN(max(1, p.topology.synchronousReplicas()-1)))
}

// orphan lets a promotion succeed and nobody hear of it: the nominee is cut off from the other
// endpoints between the swap to phase promoting and its FAILOVER.
func orphan(p *plan, r *rand.Rand, at, length time.Duration) {
	p.readings.PromotionWithoutQuorum = true
	what := []string{"cut-endpoints", "cast-off"}[r.IntN(2)]
	p.hit(fault{at: at, what: what, who: "holder", length: length, aim: "phase failover/promoting", nth: 1, delay: span(r, 0, 2*time.Millisecond)})
}

// closedLaptop begins a move with --direct on a laptop that is closed for good, and kills the primary.
func closedLaptop(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 10*time.Second)
	p.hit(fault{at: at, what: "direct", who: someSecondary(r, p), length: forGood}, fault{at: at + span(r, 2*time.Second, 9*time.Second), what: "kill", who: "primary"})
}

// dropsNominee cuts the primary from the control plane, and from the one that is nominated: it
// goes on with the others until its write lease ends.
func dropsNominee(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 20*time.Second)
	p.hit(fault{at: at, what: "cut-control", who: "primary", length: span(r, 70*time.Second, 120*time.Second)},
		fault{at: at, what: "sever", who: "primary", other: "target", length: span(r, 60*time.Second, 100*time.Second), aim: "grant", nth: 1, delay: span(r, 0, 3*time.Second)})
}

// answerLost kills the primary and loses the answer to the FAILOVER that follows, so that the
// controller comes to no label before it sees the new primary.
func answerLost(p *plan, r *rand.Rand) {
	for at := quiet + span(r, 0, 10*time.Second); at < p.heal-60*time.Second; at += span(r, 60*time.Second, 100*time.Second) {
		p.hit(fault{at: at, what: "kill", who: "primary"},
			fault{at: at, what: "mute", who: "holder", length: span(r, 13*time.Second, 16*time.Second), aim: "failover", nth: 1})
	}
}

// slowRecovery kills primaries where databases take long to be ONLINE.
func slowRecovery(p *plan, r *rand.Rand) {
	p.closely = true
	p.timings.Recovery = span(r, 3*time.Second, 12*time.Second)
	for at := quiet + span(r, 0, 10*time.Second); at < p.heal-60*time.Second; at += span(r, 60*time.Second, 100*time.Second) {
		p.hit(fault{at: at, what: []string{"kill", "poweroff"}[r.IntN(2)], who: "primary", length: span(r, 20*time.Second, 40*time.Second)})
	}
}

// renewsOn takes a primary out of office that no controller can reach any more, and whose
// manager reaches the API server.
func renewsOn(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 20*time.Second)
	p.heal, p.end, p.limit = 120*time.Second, 150*time.Second, 420*time.Second
	p.hit(fault{at: at, what: "deaf", who: "primary"}, fault{at: at + span(r, time.Millisecond, 20*time.Second), what: "hand-offline", who: "primary"})
}

// olderLease puts an older Lease back, from before the rule was lowered, and takes the primary.
func olderLease(p *plan, r *rand.Rand) {
	at := settledAt + span(r, 0, 5*time.Second)
	p.hit(fault{at: at, what: "cut-endpoint", who: "primary", other: "secondary:0", length: span(r, 100*time.Second, 150*time.Second)})
	at = 137*time.Second + span(r, 0, 12*time.Second) // the copy of the Lease is of a minute after the start
	p.hit(fault{at: at, what: "lease-restore"}, fault{at: at + span(r, time.Microsecond, 300*time.Millisecond), what: "poweroff", who: "primary", length: span(r, 60*time.Second, 90*time.Second)})
}

// sameGrant puts a Lease back that was kept between a nomination and its promotion, takes the
// replica that was promoted, and returns the primary of before, which that Lease names as the last.
func sameGrant(p *plan, r *rand.Rand) {
	kept := quiet + 90*time.Second // a copy of the Lease is of that moment
	at, gone := kept-span(r, 14*time.Second, 24*time.Second), kept+span(r, 40*time.Second, 70*time.Second)
	p.hit(fault{at: at, what: "poweroff", who: "node:0", length: gone - at + span(r, time.Second, 8*time.Second)},
		fault{at: gone, what: "poweroff", who: "primary", length: span(r, 60*time.Second, 90*time.Second)},
		fault{at: gone + span(r, time.Millisecond, time.Second), what: "lease-restore"})
}

// lateFailover freezes the target's machine when FAILOVER is on its way to it, for longer than
// it takes to give the target up and to promote the old primary again.
func lateFailover(p *plan, r *rand.Rand) {
	p.heal, p.end, p.limit = healAt, endAt, limitAt
	p.readings.PromotionWithoutQuorum = true
	at, frozen := quiet+span(r, 0, 20*time.Second), span(r, 120*time.Second, 240*time.Second)
	p.hit(fault{at: at, what: "move", who: someSecondary(r, p)},
		fault{at: at, what: "freeze", who: "target", length: frozen, aim: "clock read, promoting", nth: 1, delay: span(r, 0, 800*time.Microsecond)},
		// That it is given up is not heard there either, nor at once when it goes on.
		fault{at: at, what: "unheard", who: "target", length: frozen + span(r, time.Second, 10*time.Second), aim: "clock read, promoting", nth: 1, delay: span(r, time.Second, 8*time.Second)})
}

// outOfSight leaves a primary its sessions with the other servers and its clients.
func outOfSight(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 20*time.Second)
	p.hit(fault{at: at, what: "unseen", who: "primary", length: span(r, 80*time.Second, 130*time.Second)})
	orphan(p, r, at, span(r, 40*time.Second, 100*time.Second))
}

// goesOn stops the primary's machine with its clocks where secondaries become RESOLVING by
// themselves, and lets it go on, out of the control plane's sight, while another one is being promoted.
func goesOn(p *plan, r *rand.Rand) {
	p.readings.SecondaryResolvesOnPrimaryLoss = true
	p.timings.PromotionMin = span(r, 5*time.Second, 9*time.Second)
	p.timings.PromotionMax = p.timings.PromotionMin + span(r, time.Second, 4*time.Second)
	at := quiet + span(r, 0, 20*time.Second)
	p.hit(fault{at: at, what: "stand", who: "primary", length: span(r, 18*time.Second, 32*time.Second)},
		fault{at: at, what: "cut-control", who: "primary", length: span(r, 80*time.Second, 120*time.Second)})
}

// byPolls is outOfSight on a server that looks at its write lease seldom.
func byPolls(p *plan, r *rand.Rand) {
	p.readings.LeaseByTimer, p.readings.LeasePoll = true, span(r, 25*time.Second, 60*time.Second)
	outOfSight(p, r)
}

// inherits restarts the primary, promotes it again while its manager does not reach the API server,
// and then leaves it out of sight.
func inherits(p *plan, r *rand.Rand) {
	p.readings.PromotionWithoutQuorum = true
	at := quiet + 20*time.Second + span(r, 0, 20*time.Second)
	p.hit(
		fault{at: at, what: "api-away", length: span(r, 12*time.Second, 18*time.Second)}, // nobody is elected before it is back
		fault{at: at, what: "cut-api", who: "node:0", length: span(r, 150*time.Second, 180*time.Second)},
		fault{at: at + time.Millisecond, what: "kill", who: "node:0"},
		fault{at: at, what: "unseen", who: "node:0", length: span(r, 90*time.Second, 130*time.Second), aim: "role PRIMARY", nth: 1, delay: span(r, time.Second, 8*time.Second)},
		fault{at: at, what: "cut-endpoints", who: "holder", length: span(r, 40*time.Second, 100*time.Second), aim: "phase failover/promoting", nth: 2, delay: span(r, 0, 2*time.Millisecond)},
	)
}

// clockBack is outOfSight on a server whose write lease runs on a wall clock that is set back.
func clockBack(p *plan, r *rand.Rand) {
	p.readings.LeaseWallClock = true
	outOfSight(p, r)
	at, back := span(r, 2*time.Second, 18*time.Second), span(r, 15*time.Second, 60*time.Second)
	if r.IntN(3) == 0 { // so little that the lease never lasts longer than when it was renewed
		at, back = span(r, 12*time.Second, 18*time.Second), span(r, 6*time.Second, 11*time.Second)
	}
	p.hit(fault{at: p.faults[0].at + at, what: "clock-jump", who: "primary", length: -back})
}

// onFailsafe leaves a primary the other managers, which agree that it goes on, and nothing of
// the control plane.
func onFailsafe(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 20*time.Second)
	length := span(r, 110*time.Second, 150*time.Second)
	p.hit(fault{at: at, what: "cut-control", who: "primary", length: length},
		fault{at: at, what: "estrange", who: "primary", other: "holder", length: length, aim: "grant", nth: 1}) // it cannot tell the old one either
	orphan(p, r, at, span(r, 40*time.Second, 100*time.Second))
}

// longerTail loses a primary and one follower, on which a long tail of the log has come that nobody
// else has and nobody was told of; the next primary acknowledges a little and is lost too, while
// the follower comes back: its log is the longest, and its configuration the older one.
func longerTail(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 10*time.Second)
	p.hit(fault{at: at, what: "split", who: "primary", other: "secondary:0", length: span(r, 20*time.Second, 40*time.Second)})
	at += span(r, 0, 3*time.Millisecond)
	p.hit(fault{at: at, what: "flood", who: "primary"})
	at += span(r, 2*time.Second, 5*time.Second)
	p.hit(
		fault{at: at, what: "poweroff", who: "secondary:0", length: span(r, 60*time.Second, 70*time.Second)},
		fault{at: at + time.Millisecond, what: "poweroff", who: "primary", length: span(r, 140*time.Second, 180*time.Second)},
		fault{at: at, what: "poweroff", who: "holder", length: span(r, 80*time.Second, 110*time.Second), aim: "role PRIMARY", nth: 1, delay: span(r, 12*time.Second, 20*time.Second)},
	)
}

// orphanReturns promotes a replica that nobody follows, twice, and then another one, which
// acknowledges and is lost, while the first comes back.
func orphanReturns(p *plan, r *rand.Rand) {
	p.heal, p.end, p.limit = healAt, endAt, limitAt
	at := quiet + span(r, 0, 10*time.Second)
	dies := span(r, time.Second, 3*time.Second)
	p.hit(fault{at: at, what: "poweroff", who: "primary", length: span(r, 200*time.Second, 300*time.Second)})
	orphan(p, r, at, span(r, 100*time.Second, 150*time.Second))
	p.hit(
		fault{at: at, what: "kill", who: "holder", aim: "role PRIMARY", nth: 1, delay: dies},
		fault{at: at, what: "api-away", length: span(r, 10*time.Second, 16*time.Second), aim: "role PRIMARY", nth: 1, delay: dies},
		fault{at: at, what: "poweroff", who: "holder", length: span(r, 60*time.Second, 90*time.Second), aim: "role PRIMARY", nth: 2, delay: span(r, time.Second, 4*time.Second)},
		fault{at: at, what: "poweroff", who: "holder", length: span(r, 100*time.Second, 150*time.Second), aim: "role PRIMARY", nth: 3, delay: span(r, 20*time.Second, 40*time.Second)},
	)
}

// lowTarget moves the primary to a replica whose own k is lower than the recorded one, and loses
// it before its manager has told the record.
func lowTarget(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 10*time.Second)
	p.hit(
		fault{at: at, what: "cut-api", who: "primary", length: span(r, 14*time.Second, 18*time.Second)},
		fault{at: at, what: "cut-api", who: "secondary:0", length: span(r, 45*time.Second, 60*time.Second)},
		fault{at: at + span(r, 200*time.Millisecond, 2*time.Second), what: "hand-k", who: "primary"},
		fault{at: at + span(r, 2500*time.Millisecond, 5*time.Second), what: "move", who: "secondary:0"},
		fault{at: at, what: "sever", who: "primary", other: "secondary:0", length: span(r, 60*time.Second, 90*time.Second), aim: "role PRIMARY", nth: 1, delay: span(r, 0, 800*time.Millisecond)},
		fault{at: at, what: "poweroff", who: "holder", length: span(r, 60*time.Second, 90*time.Second), aim: "role PRIMARY", nth: 1, delay: span(r, 2*time.Second, 9*time.Second)},
	)
}

// joins makes the asynchronous replica a synchronous one, drops another, and loses the primary.
func joins(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 10*time.Second)
	p.hit(fault{at: at, what: "mode", who: "node:2", other: "sync"})
	at += span(r, 10*time.Second, 25*time.Second)
	p.hit(fault{at: at, what: "cut-endpoints", who: "node:1", length: span(r, 80*time.Second, 120*time.Second)})
	at += span(r, 18*time.Second, 35*time.Second)
	p.hit(fault{at: at, what: "poweroff", who: "primary", length: span(r, 40*time.Second, 70*time.Second)})
}

// leaves drops one of two secondaries and makes the other, on which the group then rests, an
// asynchronous one; the primary is lost as soon as the record has changed.
func leaves(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 10*time.Second)
	lost := r.IntN(2)
	p.hit(fault{at: at, what: "cut-endpoint", who: "primary", other: fmt.Sprintf("secondary:%d", lost), length: span(r, 90*time.Second, 120*time.Second)})
	at += span(r, 11*time.Second, 20*time.Second)
	p.hit(fault{at: at, what: "mode", who: fmt.Sprintf("secondary:%d", 1-lost), other: "async"},
		fault{at: at, what: "poweroff", who: "primary", length: span(r, 50*time.Second, 80*time.Second), aim: "rule", nth: 1, delay: span(r, 0, 3*time.Second)})
}

// reseeds gives a secondary an empty volume and lets its copy take its time.
func reseeds(p *plan, r *rand.Rand) {
	p.closely = true
	p.timings.SeedStep = span(r, 4*time.Second, 9*time.Second)
	p.hit(fault{at: quiet + 90*time.Second + span(r, 0, 20*time.Second), what: "blank", who: someSecondary(r, p)})
	p.heal, p.end, p.limit = 330*time.Second, 360*time.Second, 630*time.Second
}

// cutForLong keeps a secondary from its primary, both of which the control plane reaches.
func cutForLong(p *plan, r *rand.Rand) {
	p.closely = true
	p.heal, p.end, p.limit = 360*time.Second, 390*time.Second, 660*time.Second
	at := quiet + span(r, 0, 20*time.Second)
	p.hit(fault{at: at, what: "cut-endpoint", who: "primary", other: someSecondary(r, p), length: p.heal - at - 5*time.Second})
}

// forced makes a person accept the loss of what the primary has acknowledged alone; then it comes back.
func forced(p *plan, r *rand.Rand) {
	p.closely = true
	at := 110*time.Second + span(r, 0, 5*time.Second)
	p.hit(fault{at: at, what: "sever", who: "primary", other: "secondary:0", length: span(r, 60*time.Second, 70*time.Second)})
	at += span(r, 40*time.Second, 55*time.Second)
	p.hit(fault{at: at, what: "poweroff", who: "primary", length: span(r, 90*time.Second, 110*time.Second)})
	at += span(r, 2*time.Second, 10*time.Second)
	p.hit(fault{at: at, what: "force", who: "node:1"})
}

// relaxes leaves a primary alone until it has lowered its rule, and takes it.
func relaxes(p *plan, r *rand.Rand) {
	at := settledAt + span(r, 0, 5*time.Second)
	p.hit(
		fault{at: at, what: "cut-endpoint", who: "primary", other: "secondary:0", length: span(r, 100*time.Second, 140*time.Second)},
		fault{at: at + span(r, 40*time.Second, 60*time.Second), what: "poweroff", who: "primary", length: span(r, 60*time.Second, 80*time.Second)},
	)
}

// Where the group has been writing for so long that a shortage relaxes its rule after the usual time.
const settledAt = 105 * time.Second

// raises lets a secondary come back, and loses it again when the rule is on its way up; the
// primary's manager stands still after its first step.
func raises(p *plan, r *rand.Rand) {
	at := settledAt + span(r, 0, 5*time.Second)
	p.hit(fault{at: at, what: "cut-endpoint", who: "primary", other: "secondary:0", length: span(r, 50*time.Second, 60*time.Second)})
	at += 45 * time.Second // the rule has been lowered
	p.hit(
		fault{at: at, what: "freeze-manager", who: "primary", length: span(r, 6*time.Second, 12*time.Second), aim: "rule", nth: 1, delay: span(r, 0, 2*time.Millisecond)},
		fault{at: at, what: "sever", who: "primary", other: "secondary:0", length: span(r, 60*time.Second, 90*time.Second), aim: "rule", nth: 1, delay: span(r, 0, 50*time.Millisecond)},
		fault{at: at, what: "poweroff", who: "primary", length: span(r, 60*time.Second, 80*time.Second), aim: "rule", nth: 1, delay: span(r, 4*time.Second, 10*time.Second)},
	)
}

// lastReturns restarts a primary that was alone and has said so in the record; nobody else is there.
func lastReturns(p *plan, r *rand.Rand) {
	p.gap = 90 * time.Second
	at := settledAt + span(r, 0, 5*time.Second)
	p.hit(
		fault{at: at, what: "poweroff", who: "secondary:0", length: p.heal - at + span(r, 0, 10*time.Second)},
		fault{at: at + span(r, 40*time.Second, 55*time.Second), what: "kill", who: "primary"},
	)
}

// unrecorded keeps the manager from the API server when it has to lower the rule; then the primary is lost.
func unrecorded(p *plan, r *rand.Rand) {
	at := settledAt + span(r, 0, 5*time.Second)
	p.hit(
		fault{at: at, what: "cut-endpoint", who: "primary", other: "secondary:0", length: span(r, 100*time.Second, 140*time.Second)},
		fault{at: at + span(r, 5*time.Second, 12*time.Second), what: "cut-api", who: "primary", length: span(r, 60*time.Second, 80*time.Second)},
		fault{at: at + span(r, 45*time.Second, 60*time.Second), what: "poweroff", who: "primary", length: span(r, 60*time.Second, 80*time.Second)},
	)
}

// lowered has a person lower the rule on a primary that has lost its secondary, and loses the primary.
func lowered(p *plan, r *rand.Rand) {
	at := settledAt + span(r, 0, 15*time.Second)
	p.hit(
		fault{at: at, what: "hand-k", who: "primary"},
		fault{at: at + span(r, 0, 2*time.Second), what: "sever", who: "primary", other: "secondary:0", length: span(r, 90*time.Second, 120*time.Second)},
		fault{at: at + span(r, 7*time.Second, 15*time.Second), what: "poweroff", who: "primary", length: span(r, 60*time.Second, 80*time.Second)},
	)
}

// movesOn holds the controller up between the start of a move and OFFLINE, while the primary loses
// the target and goes on with the others.
func movesOn(p *plan, r *rand.Rand) {
	at := quiet + span(r, 0, 20*time.Second)
	p.hit(
		fault{at: at, what: "move", who: someSecondary(r, p)},
		fault{at: at, what: "freeze-controller", length: span(r, 2*time.Second, 9*time.Second), aim: "phase switchover/demoting", nth: 1, delay: span(r, 0, 2*time.Millisecond)},
		fault{at: at, what: "sever", who: "primary", other: "target", length: span(r, 50*time.Second, 90*time.Second), aim: "phase switchover/demoting", nth: 1, delay: span(r, 0, 500*time.Millisecond)},
	)
}

// slowTarget moves the primary to a replica whose promotion ends just when it is given up.
func slowTarget(p *plan, r *rand.Rand) {
	p.heal, p.end, p.limit = healAt, endAt, limitAt
	p.timings.PromotionMin = span(r, 58*time.Second, 64*time.Second)
	p.timings.PromotionMax = p.timings.PromotionMin + span(r, 2*time.Second, 10*time.Second)
	p.hit(fault{at: quiet + 30*time.Second + span(r, 0, 30*time.Second), what: "move", who: "secondary:0"})
}
