package lease

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Server is what the manager sees of its own server.
type Server struct {
	// Running: the process exists.
	Running bool
	// Role as the server last said, RoleUnknown when it does not answer.
	Role ag.Role
	// LastRole is the last one that it did say in this run of the process.
	LastRole ag.Role
	// NoWriteLease: the group has no external write lease (47116); nothing here can fence it.
	NoWriteLease bool
}

// Verdict is a yes or a no with its reason, and until when a yes may be used.
type Verdict struct {
	OK  bool
	Why string
	// NotAfter is when the statement or call must have been sent at the latest (monotonic).
	NotAfter time.Duration
	// Expected: a no that is as it should be, and nothing to warn of.
	Expected bool
}

// MayRenewLease says whether this run may renew the Lease (R3): it must be the holder
// by the newest credible record, and its server must be PRIMARY unless an operation
// runs. A server that does not answer is not known to be no primary: its manager goes
// on renewing until it kills the server.
func (s State) MayRenewLease(server Server) Verdict {
	switch {
	case s.Record == nil:
		return Verdict{Why: "no record of the Lease was read yet"}
	case s.Incredible:
		return Verdict{Why: "R4: the Lease is missing, older than what was seen, or of another resource"}
	case s.standing(*s.Record) != StandingHolder:
		return Verdict{Why: "the Lease is held by " + orNobody(s.Record.Holder.Replica)}
	case s.Record.Operation != nil:
		return Verdict{OK: true, Why: "holder, " + string(s.Record.Operation.Kind) + " in flight"}
	case !server.Running:
		return Verdict{Why: "the server does not run and no operation is in flight"}
	case server.Role == ag.RoleUnknown:
		return Verdict{OK: true, Why: "holder, the server does not answer"}
	case server.Role != ag.RolePrimary && !s.Omit.Has("R3 renewal"):
		return Verdict{Why: "the server is " + string(server.Role) + " and no operation is in flight"}
	}
	return Verdict{OK: true, Why: "holder and PRIMARY"}
}

// Renewed enters a successful update of the Lease, made as holder by a request sent at that time.
func (s State) Renewed(a ag.Authority, sent time.Duration) State {
	s, st := s.Learn(a, sent)
	if st != StandingHolder || sent < s.JumpedAt {
		return s
	}
	if !s.Proof.Valid || sent > s.Proof.Sent {
		s.Proof = Proof{Valid: true, Sent: sent, Epoch: a.Epoch}
	}
	return s
}

// MayRenewWriteLease says whether the write lease may be renewed by a statement sent now:
// the newest proof was sent at most A ago, in the epoch that is held, and the server is
// PRIMARY or an operation runs. A nominee whose predecessors are not fenced yet is left
// alone: it needs none before its FAILOVER, whose batch renews it; and if a renewal should make a
// server PRIMARY again whose lease has run out, which nobody excludes (FG 5.5), it would come too early.
// NotAfter is when that proof is too old; the statement itself carries an expiry of q.
func (s State) MayRenewWriteLease(server Server, now time.Duration) Verdict {
	switch {
	case server.NoWriteLease:
		return Verdict{Why: "the group has no external write lease (Msg 47116)"}
	case s.JumpUnchecked:
		return Verdict{Why: "the clock jumped: the remaining write lease is to be read first"}
	case !s.Proof.Valid:
		return Verdict{Why: "no proof of authority"}
	case s.Proof.Epoch != s.GrantedEpoch || s.Proof.Epoch < s.Persisted.Epoch:
		return Verdict{Why: "the proof is of an earlier epoch"}
	case now-s.Proof.Sent > s.Timing.A && !s.Omit.Has("A"):
		return Verdict{Why: "the newest proof was sent " + (now - s.Proof.Sent).String() + " ago, more than " + s.Timing.A.String()}
	case server.Role != ag.RolePrimary && (s.Record == nil || s.Record.Operation == nil):
		return Verdict{Why: "the server is not PRIMARY and no operation is in flight"}
	case server.Role != ag.RolePrimary && s.nominated():
		return Verdict{Why: "the server is a nominee, and the earlier holders are not fenced yet", Expected: true}
	}
	return Verdict{OK: true, Why: "proof of authority", NotAfter: s.Proof.Sent + s.Timing.A}
}

// nominated: the operation has not reached the phase in which this holder may be promoted.
func (s State) nominated() bool {
	op := s.Record.Operation
	return op != nil && (op.Phase == ag.PhaseFencing || op.Phase == ag.PhaseAborting)
}

func orNobody(s string) string {
	if s == "" {
		return "nobody"
	}
	return s
}
