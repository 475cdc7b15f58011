package controller

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// bootstrapLimit is how often a step of the bootstrap is tried before its breaker opens.
const bootstrapLimit = 3

// groupFacts is all that the status of a group is made from.
type groupFacts struct {
	Group *v1alpha1.SQLServerAvailabilityGroup
	Scope *scope
	// Report of this pass, or nil when the servers were not looked at or the look failed.
	Report *Report
	Now    time.Time
	// Err of this pass, all of it; nil when everything was done.
	Err error
}

func (f groupFacts) initialized() bool {
	if f.Report != nil && f.Report.Memory.Initialized {
		return true
	}
	return f.Group.Status.InitializationComplete
}

// holder is the replica that may write.
func (f groupFacts) holder() string {
	if f.Report == nil {
		return ""
	}
	if f.Report.Authority.Exists || f.Scope.server.External() {
		return f.Report.Authority.Holder.Replica
	}
	if p := f.Report.Snapshot.Primaries(); len(p) == 1 {
		return p[0]
	}
	return ""
}

func (f groupFacts) operation() *ag.Operation {
	if f.Report == nil {
		return nil
	}
	return f.Report.Authority.Operation
}

// writability of the group.
type writability int

const (
	unknownWhetherWritable writability = iota
	writable
	notWritable
)

// writable tells whether clients can write now: the holder says PRIMARY and its
// databases are ONLINE. One failed look at a holder that nobody suspects yet, and that is
// not known to have ended, is not an outage: unknown.
func (f groupFacts) writable() (writability, string) {
	if f.Report == nil {
		return unknownWhetherWritable, "the servers were not looked at"
	}
	holder := f.holder()
	if holder == "" {
		return notWritable, "no replica holds the authority to write"
	}
	r := f.Report.Snapshot.Find(holder)
	if r == nil {
		return notWritable, holder + " holds the authority to write and is no replica of the spec"
	}
	if r.Local.Reach != ag.ReachOK {
		m := f.Report.Memory
		if op := f.operation(); op != nil || m.PrimaryFailure != nil || !m.HeadlessSince.IsZero() {
			return notWritable, "primary " + holder + " does not answer (" + string(r.Local.Reach) + ")"
		}
		return unknownWhetherWritable, "primary " + holder + " did not answer (" + string(r.Local.Reach) + ")"
	}
	if r.Local.Role != ag.RolePrimary {
		return notWritable, holder + " holds the authority to write and its role is " + roleText(r.Local.Role)
	}
	for _, d := range r.Local.Databases {
		if d.State != ag.DatabaseOnline && d.State != ag.DatabaseUnknown {
			return notWritable, "database " + d.Name + " on primary " + holder + " is " + string(d.State)
		}
	}
	if why := f.acknowledgesNothing(); why != "" {
		return notWritable, holder + " is primary and acknowledges nothing: " + why
	}
	return writable, holder + " is primary"
}

// acknowledgesNothing is why commits wait on a primary that is up, "" when none waits for long.
func (f groupFacts) acknowledgesNothing() string {
	for _, b := range f.Report.Decision.Blocks {
		if (b.Reason == ag.ReasonCommitPending || b.Reason == ag.ReasonCommitsWait) && b.Replica == f.holder() {
			return b.Message
		}
	}
	return ""
}

func roleText(r ag.Role) string {
	if r == ag.RoleUnknown {
		return "unknown"
	}
	return string(r)
}

// safeTargets counts the replicas that would be promoted now without loss.
func (f groupFacts) safeTargets() int {
	n := 0
	if f.Report != nil {
		for _, r := range f.Report.Decision.Readiness {
			if r.Ready {
				n++
			}
		}
	}
	return n
}

// bootstrapFailure is the step whose breaker is open, or nil.
func (f groupFacts) bootstrapFailure() *ag.SetupStep {
	if f.Report == nil || f.initialized() {
		return nil
	}
	for i, s := range f.Report.Memory.Setup {
		if s.Attempts >= bootstrapLimit && s.LastError != "" {
			return &f.Report.Memory.Setup[i]
		}
	}
	return nil
}
