package lease

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Threshold is how deep a bad sp_server_diagnostics must be to count (FG 6).
type Threshold string

const (
	ThresholdSystem          Threshold = "system"
	ThresholdResource        Threshold = "resource"
	ThresholdQueryProcessing Threshold = "query_processing"
)

// stateError is sp_server_diagnostics' state 3.
const stateError = 3

// DiagnosticsBad tells whether one answer counts as a failure under the threshold: a
// component in state error, or no answer at all within the time-out.
func DiagnosticsBad(d ag.Diagnostics, t Threshold) bool {
	switch {
	case d.Error != "":
		return true
	case d.System >= stateError:
		return true
	case t != ThresholdSystem && d.Resource >= stateError:
		return true
	}
	return t == ThresholdQueryProcessing && d.QueryProcessing >= stateError
}

// KillInput is what R6 and R7 look at.
type KillInput struct {
	Now    time.Duration
	Server Server
	// Remaining write lease that the server reports, if RemainingKnown.
	Remaining      time.Duration
	RemainingKnown bool
	// BadDiagnostics in a row, and how many are too many.
	BadDiagnostics, MaxBadDiagnostics int
	Diagnostics                       *ag.Diagnostics
}

// Kill says whether sqlservr must be killed now. A killed server comes back RESOLVING
// (FG 0.3 no. 2), so that a kill is a demotion, and the container's end is the proof of it.
func (s State) Kill(in KillInput) Verdict {
	if !in.Server.Running {
		return Verdict{Why: "the server does not run"}
	}
	if in.MaxBadDiagnostics > 0 && in.BadDiagnostics >= in.MaxBadDiagnostics {
		return Verdict{OK: true, Why: fmt.Sprintf("R7: %d bad answers of sp_server_diagnostics in a row", in.BadDiagnostics)}
	}
	if in.Server.NoWriteLease {
		return Verdict{Why: "the group has no external write lease"}
	}
	if s.JumpUnchecked && in.RemainingKnown && in.Remaining > s.Timing.L {
		return Verdict{OK: true, Why: fmt.Sprintf("R6: after a clock jump the write lease still lasts %s, more than %s",
			in.Remaining, s.Timing.L)}
	}
	if s.JumpUnchecked && in.RemainingKnown && s.WriteLease.Known && in.Now+in.Remaining > s.WriteLease.MayLastUntil {
		return Verdict{OK: true, Why: fmt.Sprintf("R6: after a clock jump the write lease still lasts %s, and no renewal makes it last longer than %s",
			in.Remaining, max(s.WriteLease.MayLastUntil-in.Now, 0))}
	}
	primary := in.Server.Role == ag.RolePrimary || in.Server.Role == ag.RoleUnknown && in.Server.LastRole == ag.RolePrimary
	if primary && s.WriteLeaseOver(in.Now) && !s.Omit.Has("R7") {
		return Verdict{OK: true, Why: fmt.Sprintf("R7: the write lease must have ended %s ago and the role is still PRIMARY",
			in.Now-s.WriteLease.MayLastUntil)}
	}
	return Verdict{}
}

// JumpChecked enters that the remaining write lease was read after a clock jump and was in order.
func (s State) JumpChecked(remaining, now time.Duration) State {
	if remaining <= s.Timing.L {
		s.JumpUnchecked = false
		s.WriteLease = WriteLease{Known: true, MayLastUntil: now + remaining}
	}
	return s
}

// CommitPendingMax is how long a configuration commit may wait (FG 5.4).
const CommitPendingMax = 60 * time.Second

// PendingCommit says what a configuration commit that has been pending that long means:
// a condition while authority is proven, OFFLINE when it is not (safety.md §4).
func (s State) PendingCommit(pending, now time.Duration) Pending {
	switch {
	case pending <= CommitPendingMax:
		return PendingNothing
	case s.Proof.Valid && now-s.Proof.Sent <= s.Timing.A:
		return PendingCondition
	}
	return PendingTakeOffline
}

// Pending is what to do about a configuration commit in flight.
type Pending string

const (
	PendingNothing     Pending = ""
	PendingCondition   Pending = "Condition"
	PendingTakeOffline Pending = "TakeOffline"
)
