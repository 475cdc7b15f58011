package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// groupStatus writes what was seen into the status. It is pure, and leaves alone
// what the engine writes itself: memory, history, the answers to its own orders.
func groupStatus(f groupFacts, s *v1alpha1.SQLServerAvailabilityGroupStatus) {
	s.ObservedGeneration = f.Group.Generation
	s.ReplicaStatuses = replicaStatuses(f)
	s.ReadyReplicas = fmt.Sprintf("%d/%d", f.Scope.ready(), len(f.Group.Spec.Replicas))
	if f.Report != nil {
		fillAuthority(f, s)
	}
	cancelRestart(f.Group.Annotations[v1alpha1.AnnotationRequest], f.Now, s.LastRequest)
	answerRestart(f.Scope, f.Now, s)
	setConditions(&s.Conditions, f.Group.Generation, f.Now, groupConditions(f))
	s.Phase, s.Reason = groupPhase(f, s.Conditions)
	if f.Report != nil {
		fillProgress(f, s)
	}
}

func fillAuthority(f groupFacts, s *v1alpha1.SQLServerAvailabilityGroupStatus) {
	a := f.Report.Authority
	switch w, _ := f.writable(); w {
	case writable:
		s.PrimaryReplica = f.holder()
		if v := f.Report.Snapshot.Find(s.PrimaryReplica).Local.Version; v != "" {
			s.Version = v
		}
	case notWritable:
		if f.acknowledgesNothing() == "" {
			s.PrimaryReplica = ""
		}
	case unknownWhetherWritable:
		// One look that failed says nothing: the primary stays what it was.
	}
	s.TargetPrimary = ""
	if a.Operation != nil {
		s.TargetPrimary = a.Operation.Target
	}
	s.SafeTargets = strconv.Itoa(f.safeTargets())
	if id := groupID(f.Report); id != "" {
		s.AGID = id
	}
	s.CommitRule, s.Authority = nil, nil
	if !a.Exists {
		return
	}
	s.CommitRule = &v1alpha1.CommitRuleStatus{K: a.Rule.K, Set: a.Rule.Names(), Number: a.Rule.Number}
	s.Authority = &v1alpha1.AuthorityStatus{
		Holder: a.Holder.Replica, Epoch: a.Epoch, Stale: slices.Clone(a.Stale), Operation: operationStatus(a.Operation),
	}
	for _, u := range a.Unfenced {
		if !slices.Contains(s.Authority.Unfenced, u.Run.Replica) {
			s.Authority.Unfenced = append(s.Authority.Unfenced, u.Run.Replica)
		}
	}
}

func groupID(r *Report) string {
	if r.Authority.GroupID != "" {
		return r.Authority.GroupID
	}
	for _, x := range r.Snapshot.Replicas {
		if x.Local.GroupID != "" {
			return x.Local.GroupID
		}
	}
	return ""
}

func operationStatus(op *ag.Operation) *v1alpha1.OperationStatus {
	if op == nil {
		return nil
	}
	out := &v1alpha1.OperationStatus{
		ID: op.ID, Kind: string(op.Kind), Phase: string(op.Phase), From: op.From, Target: op.Target,
		StartedAt: metav1.NewTime(op.StartedAt), Deadline: metav1.NewTime(op.Deadline),
	}
	for _, s := range op.Steps {
		out.Steps = append(out.Steps, v1alpha1.TimelineEntry{At: metav1.NewTime(s.At), What: s.What})
	}
	return out
}

// groupPhase is the phase and the sentence behind it, from the conditions.
func groupPhase(f groupFacts, conditions []metav1.Condition) (v1alpha1.Phase, string) {
	condition := func(t string) metav1.Condition { return findCondition(conditions, t) }
	configured := condition(v1alpha1.ConditionConfigured)
	if f.Scope.paused {
		return v1alpha1.PhasePaused, "the annotation " + v1alpha1.AnnotationPaused + " stops every change; the servers keep running"
	}
	if !f.initialized() {
		return startingPhase(f, condition(v1alpha1.ConditionBootstrapFailed), configured)
	}
	if f.Report == nil {
		// Nothing new is known of the servers.
		reason := "the servers could not be looked at"
		if f.Err != nil {
			reason += ": " + firstLine(f.Err.Error())
		}
		if f.Group.Status.Phase == "" {
			return v1alpha1.PhaseDegraded, reason
		}
		return f.Group.Status.Phase, reason
	}
	if op := f.operation(); op != nil {
		text := fmt.Sprintf("%s to %s: %s", op.Kind, orUnknown(op.Target), op.Phase)
		switch op.Kind {
		case ag.OperationSwitchover, ag.OperationHandover:
			return v1alpha1.PhaseSwitchingOver, text
		case ag.OperationFailover, ag.OperationForced:
			return v1alpha1.PhaseFailingOver, text
		case ag.OperationBootstrap:
		}
	}
	w, why := f.writable()
	switch w {
	case writable, unknownWhetherWritable:
		healthy := condition(v1alpha1.ConditionHealthy)
		if w == writable && healthy.Status == metav1.ConditionTrue {
			return v1alpha1.PhaseHealthy, healthy.Message
		}
		if w == unknownWhetherWritable {
			return v1alpha1.PhaseDegraded, why
		}
		return v1alpha1.PhaseDegraded, healthy.Message
	case notWritable:
	}
	if b := condition(v1alpha1.ConditionFailoverBlocked); b.Status == metav1.ConditionTrue {
		return v1alpha1.PhaseBlocked, b.Message
	}
	for _, x := range f.Report.Decision.Findings {
		if x.Replica == f.holder() && x.Replica != "" {
			return v1alpha1.PhaseFailingOver, x.Replica + ": " + x.Message
		}
	}
	return v1alpha1.PhaseFailingOver, why
}

func startingPhase(f groupFacts, failed, configured metav1.Condition) (v1alpha1.Phase, string) {
	total := len(f.Group.Spec.Replicas)
	switch {
	case failed.Status == metav1.ConditionTrue:
		return v1alpha1.PhaseFailed, failed.Message
	case configured.Status == metav1.ConditionFalse && configured.Reason == v1alpha1.ReasonServerDoesNotStart:
		return v1alpha1.PhaseFailed, configured.Message
	case configured.Status == metav1.ConditionFalse:
		return v1alpha1.PhasePending, configured.Message
	case f.Scope.ready() < total:
		return v1alpha1.PhaseStarting, fmt.Sprintf("%d of %d servers accept logins", f.Scope.ready(), total) + awaited(f)
	}
	return v1alpha1.PhaseBootstrapping, "the availability group is being made" + setupText(f)
}

// longStart is when a start takes so long that people ask what it waits for; before that it
// would only be one more line that changes.
const longStart = 2 * time.Minute

// awaited is what the making of a group waits for, by name: above all the replica of a group
// that was made anew over its volumes, and one of which does not come back.
func awaited(f groupFacts) string {
	if f.Report == nil || len(f.Report.Setup.Waiting) == 0 || f.Now.Sub(f.Group.CreationTimestamp.Time) < longStart {
		return ""
	}
	return "; it waits: " + strings.Join(f.Report.Setup.Waiting, "; ")
}

func setupText(f groupFacts) string {
	if f.Report == nil {
		return ""
	}
	for _, s := range f.Report.Memory.Setup {
		if s.LastError != "" {
			return fmt.Sprintf(": %s, attempt %d: %s", s.Step, s.Attempts, s.LastError)
		}
	}
	return ""
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
