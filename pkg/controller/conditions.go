package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// commitPendingLimit is how long a configuration commit may wait for its quorum before people are told (safety.md §4).
const commitPendingLimit = time.Minute

// verdict is one condition before it has times and generations.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func yes(reason, message string) verdict {
	return verdict{metav1.ConditionTrue, reason, message}
}

func no(reason, message string) verdict {
	return verdict{metav1.ConditionFalse, reason, message}
}

func unsure(reason, message string) verdict {
	return verdict{metav1.ConditionUnknown, reason, message}
}

// groupConditions is the one list of conditions of a group. A condition that is left
// out keeps what it was: nothing new is known of it.
func groupConditions(f groupFacts) map[string]verdict {
	out := map[string]verdict{
		v1alpha1.ConditionConfigured:      configured(f.Scope, f.Err),
		v1alpha1.ConditionStorageResizing: resizing(f.Scope),
		v1alpha1.ConditionRollingChange:   rolling(f),
	}
	if f.Report == nil {
		if f.initialized() {
			return out
		}
		for _, t := range []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionHealthy, v1alpha1.ConditionFailoverReady} {
			out[t] = no(v1alpha1.ReasonNotInitialized, "the availability group does not exist yet")
		}
		for _, t := range []string{v1alpha1.ConditionFailoverBlocked, v1alpha1.ConditionRecoveryBlocked, v1alpha1.ConditionBootstrapFailed,
			v1alpha1.ConditionPrimaryCutOff, v1alpha1.ConditionConfigurationCommitPending} {
			out[t] = no(v1alpha1.ReasonNotInitialized, "the availability group does not exist yet")
		}
		out[v1alpha1.ConditionDatabasesReady] = databasesReady(f)
		return out
	}
	out[v1alpha1.ConditionBootstrapFailed] = bootstrapFailed(f)
	out[v1alpha1.ConditionAvailable] = available(f)
	out[v1alpha1.ConditionHealthy] = healthy(f)
	out[v1alpha1.ConditionFailoverReady] = failoverReady(f)
	out[v1alpha1.ConditionFailoverBlocked] = failoverBlocked(f)
	out[v1alpha1.ConditionRecoveryBlocked] = recoveryBlocked(f)
	out[v1alpha1.ConditionPrimaryCutOff] = primaryCutOff(f)
	out[v1alpha1.ConditionConfigurationCommitPending] = commitPending(f)
	if v, known := databasesReadyNow(f); known {
		out[v1alpha1.ConditionDatabasesReady] = v
	}
	return out
}

// databasesReadyNow says whether anything is known at all: a database that was
// everywhere is not missed because a replica could not be looked at.
func databasesReadyNow(f groupFacts) (verdict, bool) {
	v := databasesReady(f)
	was := findCondition(f.Group.Status.Conditions, v1alpha1.ConditionDatabasesReady).Status
	if v.status == metav1.ConditionTrue || was != metav1.ConditionTrue {
		return v, true
	}
	for _, r := range f.Report.Snapshot.Replicas {
		if r.Local.Reach != ag.ReachOK {
			return v, false
		}
	}
	return v, true
}

func configured(sc *scope, err error) verdict {
	if len(sc.problems) > 0 {
		problems := sc.problems
		if err != nil {
			problems = append(slices.Clone(problems), Problem{Message: err.Error()})
		}
		return no(problems[0].Reason, problemText(problems))
	}
	if err != nil {
		return no(v1alpha1.ReasonControllerError, problemText([]Problem{{Message: err.Error()}}))
	}
	return yes(v1alpha1.ReasonAsExpected, "everything that the spec names is there and usable")
}

func resizing(sc *scope) verdict {
	switch {
	case len(sc.cannotGrow) > 0 && sc.cannotGrow[0].Reason == v1alpha1.ReasonExpansionUnsupported:
		return no(v1alpha1.ReasonExpansionUnsupported, problemText(sc.cannotGrow))
	case len(sc.growing) > 0:
		message := "growing: " + strings.Join(sc.growing, ", ")
		if len(sc.cannotGrow) > 0 {
			message += "; " + problemText(sc.cannotGrow)
		}
		return yes(v1alpha1.ReasonResizeInProgress, message)
	}
	return no(v1alpha1.ReasonResizeComplete, "every data volume has the size of the spec")
}

// rolling tells how far a change that replaces pods has come. It lasts until the last new
// pod is in step.
func rolling(f groupFacts) verdict {
	if len(f.Scope.outdated) == 0 {
		if findCondition(f.Group.Status.Conditions, v1alpha1.ConditionRollingChange).Status == metav1.ConditionTrue && f.Report != nil {
			if v := healthy(f); v.reason != v1alpha1.ReasonAllGood {
				return yes(v1alpha1.ReasonRolloutInProgress, "every pod is new; waits for: "+v.message)
			}
		}
		return no(v1alpha1.ReasonRolloutComplete, "every pod runs with the settings of the spec")
	}
	message := fmt.Sprintf("%d of %d pods are new; to be replaced: %s", len(f.Scope.server.Replicas)-len(f.Scope.outdated),
		len(f.Scope.server.Replicas), strings.Join(f.Scope.outdated, ", "))
	switch {
	case f.Scope.paused:
		return yes(v1alpha1.ReasonRolloutWaits, message+"; paused")
	case f.Scope.next != "":
		return yes(v1alpha1.ReasonRolloutInProgress, message+"; "+f.Scope.next+" is being replaced")
	case f.Scope.waits != "":
		return yes(v1alpha1.ReasonRolloutWaits, message+"; waits for: "+f.Scope.waits)
	}
	return yes(v1alpha1.ReasonRolloutInProgress, message)
}

func bootstrapFailed(f groupFacts) verdict {
	if s := f.bootstrapFailure(); s != nil {
		return yes(v1alpha1.ReasonBootstrapAttemptsUsedUp, fmt.Sprintf(
			"%s failed %d times, last with: %s. Remove the cause, then start again: kubectl annotate sqlag %s %s='{\"id\":\"%s\",\"kind\":\"%s\"}' --overwrite",
			s.Step, s.Attempts, s.LastError, f.Group.Name, v1alpha1.AnnotationRequest, "again-1", v1alpha1.RequestRebootstrap))
	}
	return no(v1alpha1.ReasonAsExpected, "the bootstrap has attempts left or is done")
}

func available(f groupFacts) verdict {
	if !f.initialized() {
		return no(v1alpha1.ReasonInitializing, "the availability group is being made")
	}
	switch w, why := f.writable(); w {
	case writable:
		return yes(v1alpha1.ReasonAsExpected, why+"; clients reach it through Service "+f.Group.ListenerName())
	case unknownWhetherWritable:
		return unsure(v1alpha1.ReasonNoPrimary, why)
	case notWritable:
		return no(v1alpha1.ReasonNoPrimary, why)
	}
	return unsure(v1alpha1.ReasonNoPrimary, "")
}

func healthy(f groupFacts) verdict {
	if !f.initialized() {
		return no(v1alpha1.ReasonInitializing, "the availability group is being made")
	}
	if w, why := f.writable(); w != writable {
		return no(v1alpha1.ReasonNoPrimary, why)
	}
	var missing, behind []string
	for i := range f.Report.Snapshot.Replicas {
		r := &f.Report.Snapshot.Replicas[i]
		ok, why := replicaInStep(f, r)
		switch {
		case ok:
		case f.Scope.pods[r.Name] == nil || r.Local.Reach != ag.ReachOK:
			missing = append(missing, r.Name+" "+why)
		default:
			behind = append(behind, r.Name+" "+why)
		}
	}
	switch {
	case len(missing) > 0:
		return no(v1alpha1.ReasonReplicasMissing, strings.Join(append(missing, behind...), "; "))
	case len(behind) > 0:
		return no(v1alpha1.ReasonReplicasBehind, strings.Join(behind, "; "))
	}
	if v, known := databasesReadyNow(f); known && v.status != metav1.ConditionTrue {
		return no(v.reason, v.message)
	}
	if fr := failoverReady(f); wantsFailoverReady(f.Group) && fr.status != metav1.ConditionTrue {
		return no(fr.reason, "all replicas are in step, but "+fr.message)
	}
	return yes(v1alpha1.ReasonAllGood, fmt.Sprintf("%s is primary, all %d replicas are in step", f.holder(), len(f.Group.Spec.Replicas)))
}

// wantsFailoverReady: a group that is meant to survive its primary is not healthy while
// it could not, for example because commits do not wait for a secondary yet. A group of
// one, one that is moved by hand, and one whose owner wants k = 0 are not measured by it.
func wantsFailoverReady(g *v1alpha1.SQLServerAvailabilityGroup) bool {
	if k := g.Spec.RequiredSynchronizedSecondariesToCommit; k != nil && *k == 0 {
		return false
	}
	candidates := 0
	for _, r := range g.Spec.Replicas {
		if r.AvailabilityMode == v1alpha1.SynchronousCommit && r.FailoverMode != v1alpha1.FailoverManual {
			candidates++
		}
	}
	return g.AutomaticFailoverEnabled() && candidates > 1
}

func failoverReady(f groupFacts) verdict {
	if !f.initialized() {
		return no(v1alpha1.ReasonInitializing, "the availability group is being made")
	}
	var ready, refused []string
	for _, r := range f.Report.Decision.Readiness {
		if r.Ready {
			ready = append(ready, r.Replica)
		} else if r.Replica != f.holder() {
			refused = append(refused, r.Replica+" ("+refusal(r.Rule, r.Message)+")")
		}
	}
	switch {
	case len(ready) > 0 && !f.Group.AutomaticFailoverEnabled():
		return no(v1alpha1.ReasonAutomaticFailoverOff, "automatic failover is off; on request these could be promoted without loss: "+strings.Join(ready, ", "))
	case len(ready) > 0:
		return yes(v1alpha1.ReasonAsExpected, "could be promoted now without loss: "+strings.Join(ready, ", "))
	case len(refused) == 0:
		return no(v1alpha1.ReasonNoSafeCandidate, "there is no other replica that could be promoted")
	}
	return no(v1alpha1.ReasonNoSafeCandidate, "nobody could be promoted without loss: "+strings.Join(refused, "; "))
}

func failoverBlocked(f groupFacts) verdict {
	w, _ := f.writable()
	if !f.initialized() || w != notWritable || len(f.Report.Decision.Blocks) == 0 {
		return no(v1alpha1.ReasonNotBlocked, "nothing is refused")
	}
	b := f.Report.Decision.Blocks
	return yes(orReasonNoSafe(b[0].Reason), blocksText(b))
}

func orReasonNoSafe(reason string) string {
	if reason == "" {
		return v1alpha1.ReasonNoSafeCandidate
	}
	return reason
}

func blocksText(blocks []ag.Block) string {
	var problems []Problem
	for _, b := range blocks {
		m := b.Message
		if b.Rule != "" {
			m += " (" + string(b.Rule) + ")"
		}
		problems = append(problems, Problem{Replica: b.Replica, Message: m})
	}
	return problemText(problems)
}

func recoveryBlocked(f groupFacts) verdict {
	var stuck []string
	for _, r := range f.Report.Memory.Recoveries {
		if r.Rung == ag.RungBlocked {
			why := fmt.Sprintf("%s after %d attempts", r.Symptom, r.Attempts)
			for _, b := range f.Report.Decision.Blocks {
				if b.Replica == r.Replica && b.Reason == ag.ReasonAttemptsUsedUp {
					why = b.Message
				}
			}
			stuck = append(stuck, fmt.Sprintf("%s does not come back (%s)", r.Replica, why))
		}
	}
	if len(stuck) > 0 {
		return yes(v1alpha1.ReasonAttemptsUsedUp, strings.Join(stuck, "; "))
	}
	return no(v1alpha1.ReasonNotBlocked, "no replica needs help")
}

// primaryCutOff repeats what the decision found under that name.
func primaryCutOff(f groupFacts) verdict {
	for _, b := range f.Report.Decision.Blocks {
		if b.Reason == v1alpha1.ConditionPrimaryCutOff {
			return yes(v1alpha1.ConditionPrimaryCutOff, b.Message)
		}
	}
	return no(v1alpha1.ReasonAsExpected, "the primary renews its Lease, or nothing speaks for its life")
}

func commitPending(f groupFacts) verdict {
	for _, b := range f.Report.Decision.Blocks {
		if b.Reason == v1alpha1.ConditionConfigurationCommitPending {
			return yes(b.Reason, b.Replica+": "+b.Message)
		}
	}
	for _, r := range f.Report.Snapshot.Replicas {
		if r.Local.Role == ag.RolePrimary && r.Local.CommitPendingFor > commitPendingLimit {
			return yes(v1alpha1.ConditionConfigurationCommitPending, fmt.Sprintf(
				"a change of the group's configuration on %s waits for enough synchronous secondaries", r.Name))
		}
	}
	return no(v1alpha1.ReasonAsExpected, "no configuration commit waits")
}

func databasesReady(f groupFacts) verdict {
	if len(f.Group.Spec.Databases) == 0 {
		return yes(v1alpha1.ReasonAsExpected, "the spec declares no databases")
	}
	if f.Report == nil || !f.initialized() {
		return no(v1alpha1.ReasonInitializing, "the availability group is being made")
	}
	var missing []string
	for _, d := range f.Group.Spec.Databases {
		for i := range f.Report.Snapshot.Replicas {
			r := &f.Report.Snapshot.Replicas[i]
			if r.Mode == ag.ModeConfigurationOnly {
				continue
			}
			has := slices.ContainsFunc(databaseViews(r), func(x ag.Database) bool {
				return strings.EqualFold(x.Name, d.Name) && x.Sync != ag.SyncUnknown && x.Sync != ag.SyncInitializing
			})
			if !has {
				missing = append(missing, fmt.Sprintf("%s on %s", d.Name, r.Name))
			}
		}
	}
	if len(missing) == 0 {
		return yes(v1alpha1.ReasonAsExpected, "every declared database is in the group on every replica")
	}
	message := "not there yet: " + strings.Join(missing, ", ")
	reason := v1alpha1.ReasonDatabasesMissing
	for _, s := range f.Report.Memory.Setup {
		if s.LastError != "" {
			message += "; " + s.Step + ": " + s.LastError
		}
	}
	for _, r := range f.Report.Snapshot.Replicas {
		if r.Remote != nil && len(r.Remote.SeedingFailed) > 0 {
			reason = v1alpha1.ReasonSeedingFailed
			message += fmt.Sprintf("; seeding to %s failed: %s", r.Name, strings.Join(r.Remote.SeedingFailed, ", "))
		}
	}
	return no(reason, problemText([]Problem{{Message: message}}))
}

// setConditions merges verdicts into the list: times change only with the status.
func setConditions(list *[]metav1.Condition, generation int64, now time.Time, verdicts map[string]verdict) {
	types := make([]string, 0, len(verdicts))
	for t := range verdicts {
		types = append(types, t)
	}
	slices.Sort(types)
	for _, t := range types {
		v := verdicts[t]
		meta.SetStatusCondition(list, metav1.Condition{
			Type: t, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: generation,
			LastTransitionTime: metav1.NewTime(now),
		})
	}
}

func findCondition(list []metav1.Condition, t string) metav1.Condition {
	if c := meta.FindStatusCondition(list, t); c != nil {
		return *c
	}
	return metav1.Condition{Type: t, Status: metav1.ConditionUnknown}
}
