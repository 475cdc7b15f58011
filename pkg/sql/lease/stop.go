package lease

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// StopInput is what the plan of a stop (SIGTERM) looks at.
type StopInput struct {
	Server Server
	// Holder: this run holds the Lease by the newest record.
	Holder bool
	// Targets: how many other synchronous replicas are in the group.
	Targets int
	// Handover is spec.preStopFailover.enabled, HandoverMax its time-out.
	Handover    bool
	HandoverMax time.Duration
	// SinceSignal is how long ago SIGTERM came, APIAway for how long the API server has
	// not answered (0 when it does).
	SinceSignal time.Duration
	APIAway     time.Duration
	// StopMax is how long a clean stop may take before the server is killed;
	// Stopping is since when it runs, 0 when it was not begun.
	StopMax  time.Duration
	Stopping time.Duration
}

// StopStep is what to do next on the way down.
type StopStep string

const (
	// StopWait: wait for the hand-over; renewals go on.
	StopWait StopStep = "WaitForHandover"
	// StopServer: tell sqlservr to stop cleanly; renewals end.
	StopServer StopStep = "StopServer"
	// StopKill: the clean stop takes too long.
	StopKill StopStep = "Kill"
	// StopExit: the server is gone; the manager exits.
	StopExit StopStep = "Exit"
)

// apiPatience is how long an API server that does not answer holds up a stop: nobody
// can be promoted without it.
const apiPatience = 5 * time.Second

// PlanStop is the plan after SIGTERM. A holder that is PRIMARY waits until the operator
// has moved the primary away, at most HandoverMax; without a target or without an API
// server it stops cleanly at once, and its end is the proof that lets others act.
func PlanStop(in StopInput) (StopStep, string) {
	switch {
	case !in.Server.Running:
		return StopExit, "the server has stopped"
	case in.Stopping > 0 && in.Stopping > in.StopMax:
		return StopKill, "the clean stop took more than " + in.StopMax.String()
	case in.Stopping > 0:
		return StopServer, "stopping"
	case !in.Handover:
		return StopServer, "hand-over is switched off"
	case in.Server.Role != ag.RolePrimary && in.Server.Role != ag.RoleUnknown:
		return StopServer, "the server is " + string(in.Server.Role)
	case !in.Holder:
		return StopServer, "the Lease is held by another"
	case in.Targets == 0:
		return StopServer, "there is no other synchronous replica"
	case in.APIAway > apiPatience:
		return StopServer, "the API server does not answer: nobody can be promoted"
	case in.SinceSignal >= in.HandoverMax:
		return StopServer, "the hand-over took more than " + in.HandoverMax.String()
	}
	return StopWait, "waiting for another replica to become primary"
}
