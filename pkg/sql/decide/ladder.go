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
	// aheadRounds, the pause doubling from endpointOneAfter, of the ladder of a replica whose
	// configuration is of a later promotion.
	aheadRounds = 4
	// rejoinPatience is how long one rejoined replica keeps the next from being rejoined.
	rejoinPatience = time.Minute
	// formerPrimaryWait: a former primary that is told SET (ROLE = SECONDARY) while the new
	// primary is only seconds old latches Msg 41104 (FG 4.7).
	formerPrimaryWait = 10 * second
)

// ladder is the way back of one replica, step by step (safety.md §7, FG 4.7): re-seat,
// its endpoint, then OFFLINE and both endpoints at most five times, then rejoin, and
// where the policy allows it and nothing is lost by it, seeding anew. A
// replica that is ahead is rejoined as soon as a re-seat has not helped: its configuration
// keeps it from following, and nothing but a new one can change that.
func ladder(s ag.Symptom) []ladderStep {
	if s == ag.SymptomAhead {
		return aheadLadder()
	}
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

func aheadLadder() []ladderStep {
	var steps []ladderStep
	pause := endpointOneAfter
	for range aheadRounds {
		steps = append(steps, ladderStep{ag.RungReseat, pause}, ladderStep{ag.RungRejoin, settleTime})
		pause *= 2
	}
	return append(steps, ladderStep{ag.RungReseat, pause})
}
