package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// mostDatabases is how many databases of one replica the status names.
const mostDatabases = 20

// replicaStatuses is the status of every replica. Nothing in it changes while
// nothing happens: no ages, no queue lengths.
func replicaStatuses(f groupFacts) []v1alpha1.ReplicaStatus {
	readiness := map[string]ag.Readiness{}
	if f.Report != nil {
		for _, r := range f.Report.Decision.Readiness {
			readiness[r.Replica] = r
		}
	}
	// An unreadable annotation is told by phaseInputs.
	fenced, _ := v1alpha1.ParseFenced(f.Group.Annotations[v1alpha1.AnnotationFenced])
	out := make([]v1alpha1.ReplicaStatus, 0, len(f.Group.Spec.Replicas))
	for i, spec := range f.Group.Spec.Replicas {
		name := f.Group.ReplicaName(i)
		s := v1alpha1.ReplicaStatus{Name: name, AvailabilityMode: spec.AvailabilityMode}
		if pod := f.Scope.pods[name]; pod != nil {
			s.Ready, s.Node = podReady(pod), pod.Spec.NodeName
		}
		s.Message = problemOf(f.Scope.problems, name)
		s.Outdated = slices.Contains(f.Scope.outdated, name)
		s.Volume = volumeStatus(f.Scope, name)
		s.Fence = fenceOf(fenced, name)
		s.Fenced = s.Fence != nil
		if f.Report != nil {
			if r := f.Report.Snapshot.Find(name); r != nil {
				fillReplica(&s, f, r)
			}
			if rd, ok := readiness[name]; ok {
				s.FailoverReady = rd.Ready
				if !rd.Ready {
					s.FailoverRefusal = refusal(rd.Rule, rd.Message)
				}
				s.ForceRefusal = refusal(rd.ForceRule, rd.ForceMessage)
			}
		}
		if s.State == "" {
			s.State = podState(f, name)
		}
		if s.Fence != nil && s.Message == "" {
			s.Message = fencedText(s.Fence)
		}
		out = append(out, s)
	}
	return out
}

func fenceOf(fenced []v1alpha1.FencedReplica, replica string) *v1alpha1.FenceStatus {
	for _, x := range fenced {
		if x.Replica == replica {
			return &v1alpha1.FenceStatus{By: x.By, Reason: x.Reason, Since: x.Since}
		}
	}
	return nil
}

// fencedText says who keeps a replica out, and why.
func fencedText(s *v1alpha1.FenceStatus) string {
	text := "fenced"
	if s.By != "" {
		text += " by " + s.By
	}
	if s.Since != nil {
		text += " at " + s.Since.UTC().Format(time.RFC3339)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

func problemOf(problems []Problem, replica string) string {
	for _, p := range problems {
		if p.Replica == replica {
			return p.Message
		}
	}
	return ""
}

func refusal(rule ag.Rule, message string) string {
	if rule == "" {
		return message
	}
	return string(rule) + ": " + message
}

func fillReplica(s *v1alpha1.ReplicaStatus, f groupFacts, r *ag.Replica) {
	s.Reachable = r.Local.Reach == ag.ReachOK
	if s.Reachable && r.Local.Role != ag.RoleNone {
		s.Role = string(r.Local.Role)
		s.SequenceNumber = r.Local.Sequence
	}
	if r.Remote != nil {
		s.Connected = r.Remote.Connected
	}
	if r.Local.Role == ag.RolePrimary {
		s.Connected = true
	}
	s.SynchronizationState = string(worstSync(r))
	s.Databases = troubledDatabases(r)
	s.State = replicaState(f, r)
	if s.Message == "" {
		s.Message = replicaMessage(f, r)
	}
}

// databaseViews prefers what the primary says of a secondary's databases, and what a
// primary says of its own.
func databaseViews(r *ag.Replica) []ag.Database {
	if r.Local.Role != ag.RolePrimary && r.Remote != nil && len(r.Remote.Databases) > 0 {
		return r.Remote.Databases
	}
	return r.Local.Databases
}

// worstSync is the worst state of the replica's databases; empty when none was seen.
func worstSync(r *ag.Replica) ag.SyncState {
	order := []ag.SyncState{ag.SyncNotSynchronizing, ag.SyncReverting, ag.SyncInitializing, ag.SyncSynchronizing, ag.SyncSynchronized}
	seen := map[ag.SyncState]bool{}
	for _, d := range databaseViews(r) {
		seen[d.Sync] = true
	}
	for _, s := range order {
		if seen[s] {
			return s
		}
	}
	return ag.SyncUnknown
}

func troubledDatabases(r *ag.Replica) []v1alpha1.ReplicaDatabaseStatus {
	var out []v1alpha1.ReplicaDatabaseStatus
	for _, d := range databaseViews(r) {
		if len(out) == mostDatabases {
			break
		}
		if databaseInStep(r, d) {
			continue
		}
		s := v1alpha1.ReplicaDatabaseStatus{Name: d.Name, State: string(d.State), SynchronizationState: string(d.Sync), Suspended: d.Suspended}
		if d.Suspended {
			s.Message = "suspended: " + d.SuspendReason
		}
		out = append(out, s)
	}
	return out
}

// databaseInStep tells whether a copy is where its replica's mode allows it to be.
func databaseInStep(r *ag.Replica, d ag.Database) bool {
	if d.Suspended {
		return false
	}
	if r.Mode == ag.ModeAsynchronous {
		return d.Sync == ag.SyncSynchronizing || d.Sync == ag.SyncSynchronized
	}
	return d.Sync == ag.SyncSynchronized
}

func replicaState(f groupFacts, r *ag.Replica) string {
	op := f.operation()
	switch {
	case r.Fenced && r.Local.Reach != ag.ReachOK:
		return "fenced"
	case r.Fenced:
		return "fencing" // its server still answers
	case op != nil && op.Target == r.Name && (op.Phase == ag.PhasePromoting || op.Phase == ag.PhaseFencing):
		return "promoting"
	case r.Local.Reach != ag.ReachOK:
		return podState(f, r.Name)
	case r.Local.Role == ag.RolePrimary:
		return "online"
	case r.Local.Role == ag.RoleNone:
		return "not joined"
	case r.Local.Role == ag.RoleResolving:
		return "resolving"
	case r.Remote != nil && r.Remote.Seeding:
		return "seeding"
	case r.Remote != nil && !r.Remote.Connected:
		return "disconnected"
	}
	if r.Mode == ag.ModeConfigurationOnly {
		return "witness"
	}
	if s := worstSync(r); s != ag.SyncUnknown {
		return strings.ToLower(string(s))
	}
	return "connected"
}

// podState says what is known of a replica whose server was not reached.
func podState(f groupFacts, name string) string {
	pod := f.Scope.pods[name]
	switch {
	case pod == nil:
		return "missing"
	case pod.DeletionTimestamp != nil:
		return "stopping"
	case pod.Spec.NodeName == "":
		return "pending"
	case podReady(pod):
		return "unreachable"
	case f.initialized() && podRuns(pod):
		return "lost"
	}
	return "starting"
}

func replicaMessage(f groupFacts, r *ag.Replica) string {
	for _, rec := range f.Report.Memory.Recoveries {
		if rec.Replica == r.Name {
			return fmt.Sprintf("%s: recovery at step %s, attempt %d", rec.Symptom, rec.Rung, rec.Attempts)
		}
	}
	if r.Local.Reach != ag.ReachOK && r.Local.Err != nil && r.Pod.Ready {
		return r.Local.Err.Message
	}
	if r.Remote != nil && !r.Remote.Connected && r.Remote.LastConnectText != "" && r.Local.Role != ag.RolePrimary {
		return fmt.Sprintf("%s (Msg %d)", r.Remote.LastConnectText, r.Remote.LastConnectError)
	}
	return ""
}

// replicaInStep tells whether a replica is where it should be, and if not why.
func replicaInStep(f groupFacts, r *ag.Replica) (bool, string) {
	pod := f.Scope.pods[r.Name]
	switch {
	case r.Fenced:
		return false, "is fenced"
	case pod == nil:
		return false, "has no pod"
	case !podReady(pod):
		return false, "is not ready"
	case r.Local.Reach != ag.ReachOK:
		return false, "does not answer"
	case r.Local.Role == ag.RoleNone:
		return false, "has not joined the group"
	case r.Local.Role != ag.RolePrimary && r.Local.Role != ag.RoleSecondary:
		return false, "is " + roleText(r.Local.Role)
	case r.Local.Role == ag.RolePrimary:
		return true, ""
	case r.Remote == nil || !r.Remote.Connected:
		return false, "is not connected to the primary"
	case r.Mode == ag.ModeConfigurationOnly:
		return true, ""
	}
	for _, d := range databaseViews(r) {
		if !databaseInStep(r, d) {
			return false, fmt.Sprintf("database %s is %s", d.Name, orUnknown(string(d.Sync)))
		}
	}
	return true, ""
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
