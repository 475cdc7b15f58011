package decide

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Input is everything that a decision rests on.
type Input struct {
	// Now is the observer's wall clock, truncated to whole seconds: for timers in the
	// memory, and for people. No safety wait is computed from it.
	Now time.Time
	// Clock is the observer's monotonic clock around this pass.
	Clock ag.Clock
	// Observer names this process, "controller/<identity>" or "direct/<identity>": the
	// owner of the operations that it starts.
	Observer string
	// Authority is the Lease's record from a quorum read made before the snapshot was taken.
	Authority ag.Authority
	Snapshot  ag.Snapshot
	Policy    ag.Policy
	Memory    ag.Memory
	// Watch is Decision.Watch of this process' previous pass; empty in its first.
	Watch ag.Watch
	// Request is the user's order, or nil.
	Request *ag.Request
	// Omit leaves rules out: empty but in proofs that a rule is needed.
	Omit ag.Omit
}

// Decide chooses the next step. It never changes its input.
func Decide(in Input) ag.Decision { return decide(in, knobs{off: in.Omit.Rules()}) }
