package ag

import (
	"fmt"
	"strings"
	"time"
)

// Action is one effect that a decision asks for. The set is closed: a switch over
// it that misses one is a lint error.
//
//sumtype:decl
type Action interface {
	action()
	// Disruptive actions change a role or cut a connection: at most one per pass.
	Disruptive() bool
	// String is one line for logs, events and golden files.
	String() string
}

// Guard is what must still be true when an action takes effect. A zero field is not
// checked. The expiry of R5 (q, in the server's own time) is the executor's: it is part
// of every statement that changes a role, and for Promote q counts from the success of
// the swap in the same pass.
type Guard struct {
	PodUID   string    `json:"podUID,omitempty"`
	Role     Role      `json:"role,omitempty"`
	Sequence int64     `json:"sequence,omitempty"`
	NotAfter time.Time `json:"notAfter,omitempty"`
}

// Swap replaces the Lease's record, if it still has the version of the snapshot or
// lost only to renewals (R1). All actions after it run only if it succeeded.
type Swap struct {
	Next Authority
	Why  string
	// RenewalsMatter: a renewal in between makes the swap fail (its reason was missing renewals).
	RenewalsMatter bool
	// Change and Result are entered into the memory by Record once the swap has succeeded.
	Change *RoleChange
	Result *Result
}

// Promote sends, in one batch with an expiry, the lease update, the session key and FAILOVER (R5).
type Promote struct {
	Replica string
	Epoch   int64
	Lease   time.Duration
	// Force sends FORCE_FAILOVER_ALLOW_DATA_LOSS; Lossless, for people, tells that nothing is
	// lost by it: R20 has compared both ends, or the target is the last primary itself.
	Force    bool
	Lossless bool
	Guard    Guard
}

// TakeOffline sends OFFLINE with an expiry.
type TakeOffline struct {
	Replica string
	Why     string
	Guard   Guard
}

// Reseat sends SET (ROLE = SECONDARY).
type Reseat struct {
	Replica string
	Guard   Guard
}

// RestartEndpoints stops and starts the mirroring endpoint of each replica, in this order.
type RestartEndpoints struct {
	Replicas []string
	Guard    Guard
}

// StopEndpoints stops the mirroring endpoint.
type StopEndpoints struct {
	Replicas []string
}

// StartEndpoints opens them again.
type StartEndpoints struct {
	Replicas []string
}

// Rejoin is OFFLINE, DROP, JOIN, GRANT on a replica whose log chain allows it.
type Rejoin struct {
	Replica string
	Guard   Guard
}

// Reseed is a rejoin that drops the replica's copies of these databases in between, where
// they are RESTORING and in no group, so that they are seeded anew (FG 4.9, 4.10).
type Reseed struct {
	Replica   string
	Databases []string
	Guard     Guard
}

// ResumeDatabase sends SET HADR RESUME on one replica.
type ResumeDatabase struct {
	Replica, Database string
}

// SetCommitRule sends SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = K) on the primary.
type SetCommitRule struct {
	Primary string
	K       int32
}

// SetRoleLabel publishes a role; RoleUnknown takes the label away.
type SetRoleLabel struct {
	Replica string
	Role    Role
}

// Promise makes replicas stop following whatever primary they have, in one step: the
// promise of R11. It is carried out as OFFLINE on each of them (ADR 0012, 0023), and on one
// that is RESOLVING already as well (FG 4.1). It has succeeded when every one of them
// answered; where some did, the Swap behind it records those, and the next snapshot confirms.
type Promise struct {
	Replicas []string
	Guard    Guard
}

// Seal asks the replicas' managers to refuse failsafe answers below Epoch (R22). It names
// the Lease version on which the swap after it is made. It fails, and with it the pass,
// when fewer than Need of them have persisted the seal; the others are tried all the same.
type Seal struct {
	Replicas []string
	Need     int
	Epoch    int64
	Version  string
}

func (Swap) action()             {}
func (Promote) action()          {}
func (TakeOffline) action()      {}
func (Reseat) action()           {}
func (RestartEndpoints) action() {}
func (StopEndpoints) action()    {}
func (StartEndpoints) action()   {}
func (Rejoin) action()           {}
func (Reseed) action()           {}
func (ResumeDatabase) action()   {}
func (SetCommitRule) action()    {}
func (SetRoleLabel) action()     {}
func (Seal) action()             {}
func (Promise) action()          {}

func (Swap) Disruptive() bool             { return false }
func (Promote) Disruptive() bool          { return true }
func (TakeOffline) Disruptive() bool      { return true }
func (Reseat) Disruptive() bool           { return true }
func (RestartEndpoints) Disruptive() bool { return true }
func (StopEndpoints) Disruptive() bool    { return true }
func (StartEndpoints) Disruptive() bool   { return false }
func (Rejoin) Disruptive() bool           { return true }
func (Reseed) Disruptive() bool           { return true }
func (ResumeDatabase) Disruptive() bool   { return false }
func (SetCommitRule) Disruptive() bool    { return false }
func (SetRoleLabel) Disruptive() bool     { return false }
func (Seal) Disruptive() bool             { return false }
func (Promise) Disruptive() bool          { return true }

func (a Swap) String() string {
	s := fmt.Sprintf("record: %s (holder %s, epoch %d", a.Why, orNobody(a.Next.Holder.Replica), a.Next.Epoch)
	if op := a.Next.Operation; op != nil {
		s += fmt.Sprintf(", %s %s", op.Kind, op.Phase)
	}
	return s + ")"
}
func (a Promote) String() string {
	if a.Force && a.Lossless {
		return fmt.Sprintf("promote %s with the forced statement, nothing is lost (epoch %d)", a.Replica, a.Epoch)
	}
	if a.Force {
		return fmt.Sprintf("force %s to primary, data may be lost (epoch %d)", a.Replica, a.Epoch)
	}
	return fmt.Sprintf("promote %s (epoch %d, lease %s)", a.Replica, a.Epoch, a.Lease)
}
func (a TakeOffline) String() string { return fmt.Sprintf("take offline %s: %s", a.Replica, a.Why) }
func (a Reseat) String() string      { return "re-seat " + a.Replica }
func (a RestartEndpoints) String() string {
	return "restart endpoints [" + strings.Join(a.Replicas, " ") + "]"
}
func (a StopEndpoints) String() string {
	return "stop endpoints [" + strings.Join(a.Replicas, " ") + "]"
}
func (a StartEndpoints) String() string {
	return "start endpoints [" + strings.Join(a.Replicas, " ") + "]"
}
func (a Rejoin) String() string { return "rejoin " + a.Replica }
func (a Reseed) String() string {
	return "re-seed " + a.Replica + " [" + strings.Join(a.Databases, " ") + "]"
}
func (a ResumeDatabase) String() string { return fmt.Sprintf("resume %s on %s", a.Database, a.Replica) }
func (a SetCommitRule) String() string  { return fmt.Sprintf("commit rule k=%d on %s", a.K, a.Primary) }
func (a SetRoleLabel) String() string {
	if a.Role == RoleUnknown {
		return "label " + a.Replica + ": none"
	}
	return fmt.Sprintf("label %s: %s", a.Replica, strings.ToLower(string(a.Role)))
}
func (a Seal) String() string {
	return fmt.Sprintf("seal [%s] below epoch %d, at least %d", strings.Join(a.Replicas, " "), a.Epoch, a.Need)
}
func (a Promise) String() string {
	return "promise [" + strings.Join(a.Replicas, " ") + "]: stop following the old primary"
}

func orNobody(s string) string {
	if s == "" {
		return "nobody"
	}
	return s
}
