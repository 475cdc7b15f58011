package decide

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// step of the way back: what is done, and how long its effect is awaited.
type ladderStep struct {
	rung  ag.Rung
	pause time.Duration
}

const (
	// endpointOneAfter and bothAfter: FG 4.7, the ladder of the field reports.
	endpointOneAfter = 15 * second
	settleTime       = 5 * second
	// bothFirst, doubling up to bothMost, for bothRounds rounds.
	bothFirst  = 30 * second
	bothMost   = 10 * time.Minute
	bothRounds = 5
	// oneRound of the ladder is a re-seat, the endpoint, and OFFLINE with both endpoints once; the
	// rejoin comes after bothRounds of that last part.
	oneRound   = 6
	twoRounds  = oneRound + 3
	rejoinStep = 3 + 3*bothRounds
	// aheadRounds, the pause doubling from endpointOneAfter, of the ladder of a replica whose
	// configuration is of a later promotion.
	aheadRounds = 4
	// rejoinPatience is how long one rejoined replica keeps the next from being rejoined.
	rejoinPatience = time.Minute
	// formerPrimaryWait: a former primary that is told SET (ROLE = SECONDARY) while the new
	// primary is only seconds old latches Msg 41104 (FG 4.7).
	formerPrimaryWait = 10 * second
)

// way is the ladder of one replica, and its next step there. Three cases leave out what cannot help:
//   - Ahead by a whole promotion: a re-seat only tells the primary of the later one, after which
//     it may not believe in its own any more. It is rejoined at once, or not touched.
//   - Ahead in the same promotion, or where numbers do not tell, and not to be rejoined: the usual
//     ladder, which discards nothing before its last rungs.
//   - Connected, and not synchronising after two rounds: neither the network nor a latched error
//     keeps this copy back. Most likely the primary's log does not reach back to its end any more
//     (Msg 1412, FG 4.9), which the views do not tell.
func (v *view) way(r, p *ag.Replica, rec *ag.Recovery) (steps []ladderStep, next int32) {
	n := max(rec.Attempts, 0)
	switch {
	case rec.Symptom == ag.SymptomAhead && r.Local.Sequence>>32 > p.Local.Sequence>>32:
		return aheadLadder(), max(n, 1)
	case rec.Symptom == ag.SymptomAhead && v.mayRejoin(r, p).none():
		return aheadLadder(), n
	}
	steps = ladder()
	if n >= twoRounds && n < rejoinStep && keptBack(r) && v.mayRejoin(r, p).none() {
		n = rejoinStep
	}
	return steps, n
}

// keptBack: it follows the primary, and a copy of it does not, though nobody has suspended it.
func keptBack(r *ag.Replica) bool {
	if r.Local.Role != ag.RoleSecondary || r.Remote == nil || !r.Remote.Connected {
		return false
	}
	for _, db := range r.Remote.Databases {
		if db.Sync == ag.SyncNotSynchronizing && !db.Suspended {
			return true
		}
	}
	return false
}

// ladder is the way back of one replica, step by step (safety.md §7, FG 4.7): re-seat,
// its endpoint, then OFFLINE and both endpoints at most five times, then rejoin, and
// where the policy allows it and nothing is lost by it, seeding anew.
func ladder() []ladderStep {
	steps := []ladderStep{
		{ag.RungReseat, endpointOneAfter},
		{ag.RungEndpointOne, settleTime},
		{ag.RungReseat, endpointOneAfter - settleTime},
	}
	pause := bothFirst
	for range bothRounds {
		steps = append(steps, ladderStep{ag.RungOffline, settleTime}, ladderStep{ag.RungBoth, settleTime}, ladderStep{ag.RungReseat, pause})
		pause = min(2*pause, bothMost)
	}
	return append(steps,
		ladderStep{ag.RungRejoin, settleTime}, ladderStep{ag.RungReseat, time.Minute},
		ladderStep{ag.RungReseed, settleTime}, ladderStep{ag.RungReseat, time.Minute})
}

// aheadLadder is that of a replica that is ahead: it is rejoined as soon as a re-seat has not
// helped, as its configuration keeps it from following, and nothing but a new one can change that.
func aheadLadder() []ladderStep {
	var steps []ladderStep
	pause := endpointOneAfter
	for range aheadRounds {
		steps = append(steps, ladderStep{ag.RungReseat, pause}, ladderStep{ag.RungRejoin, settleTime})
		pause *= 2
	}
	return append(steps, ladderStep{ag.RungReseat, pause})
}
