package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// told is one event of a transition.
type told struct {
	kind, reason, note string
}

// badWhenTrue are the conditions whose True is the trouble.
func badWhenTrue(conditionType string) bool {
	switch conditionType {
	case v1alpha1.ConditionBootstrapFailed, v1alpha1.ConditionFailoverBlocked, v1alpha1.ConditionRecoveryBlocked,
		v1alpha1.ConditionPrimaryCutOff, v1alpha1.ConditionConfigurationCommitPending:
		return true
	}
	return false
}

// toldByEngine: the engine's own events speak of these.
func toldByEngine(conditionType string) bool {
	return conditionType == v1alpha1.ConditionFailoverBlocked
}

// transitions are the events of a status that was just written. Because they are
// made from what is stored, each is told once, whoever wrote it: a condition that
// turned, a trouble whose cause changed, a phase that changed.
func transitions(before, after []metav1.Condition, oldPhase, newPhase v1alpha1.Phase, reason string) []told {
	var out []told
	for _, c := range after {
		if toldByEngine(c.Type) {
			continue
		}
		old := meta.FindStatusCondition(before, c.Type)
		bad := c.Status == metav1.ConditionTrue
		if !badWhenTrue(c.Type) {
			bad = c.Status == metav1.ConditionFalse
		}
		switch {
		case c.Status == metav1.ConditionUnknown:
		case old == nil:
			// The first look at a new resource: only what is wrong with its input is news.
			if c.Type == v1alpha1.ConditionConfigured && bad {
				out = append(out, told{corev1.EventTypeWarning, c.Reason, c.Message})
			}
		case c.Type == v1alpha1.ConditionRollingChange:
			// Its reason goes to and fro while each pod is waited for: only beginning and end are news.
			if old.Status != c.Status {
				out = append(out, told{corev1.EventTypeNormal, c.Reason, c.Message})
			}
		case c.Type == v1alpha1.ConditionStorageResizing:
			if old.Status != c.Status || old.Reason != c.Reason {
				kind := corev1.EventTypeNormal
				if c.Reason == v1alpha1.ReasonExpansionUnsupported {
					kind = corev1.EventTypeWarning
				}
				out = append(out, told{kind, c.Reason, c.Message})
			}
		case bad && (old.Status != c.Status || old.Reason != c.Reason) && !starting(c.Reason):
			out = append(out, told{corev1.EventTypeWarning, c.Reason, c.Type + " is " + string(c.Status) + ": " + c.Message})
		case !bad && old.Status != c.Status && old.Status != metav1.ConditionUnknown:
			out = append(out, told{corev1.EventTypeNormal, c.Reason, c.Type + " is " + string(c.Status) + ": " + c.Message})
		}
	}
	if oldPhase != newPhase {
		kind := corev1.EventTypeNormal
		if newPhase == v1alpha1.PhaseBlocked || newPhase == v1alpha1.PhaseFailed || newPhase == v1alpha1.PhaseFailingOver {
			kind = corev1.EventTypeWarning
		}
		out = append(out, told{kind, v1alpha1.EventPhaseChanged, orUnknown(string(oldPhase)) + " → " + string(newPhase) + ": " + reason})
	}
	return out
}

// orders are the events of what people ordered, made from a status that was just written:
// replicas that were fenced or taken back, and restarts that began or were answered.
func orders(before, after v1alpha1.SQLServerAvailabilityGroupStatus, restart *v1alpha1.Request) []told {
	var out []told
	fenced := map[string]bool{}
	for _, r := range before.ReplicaStatuses {
		fenced[r.Name] = r.Fenced
	}
	for _, r := range after.ReplicaStatuses {
		was, known := fenced[r.Name]
		switch {
		case !known || was == r.Fenced:
		case r.Fenced:
			out = append(out, told{corev1.EventTypeWarning, v1alpha1.EventReplicaFenced, r.Name + " is " + fencedText(r.Fence)})
		default:
			out = append(out, told{corev1.EventTypeNormal, v1alpha1.EventReplicaUnfenced, r.Name + " is not fenced any more"})
		}
	}
	if last := after.LastRequest; last != nil && last.Kind == string(v1alpha1.RequestRestart) && restart != nil && last.ID == restart.ID {
		old := before.LastRequest
		what := "all replicas"
		if last.Target != "" {
			what = last.Target
		}
		if old == nil || old.ID != last.ID {
			note := "A restart of " + what + " was requested by " + orUnknown(restart.By)
			if restart.Reason != "" {
				note += ": " + restart.Reason
			}
			out = append(out, told{corev1.EventTypeNormal, v1alpha1.EventRestartRequested, note})
		}
		if last.Result != v1alpha1.RequestRunning && (old == nil || old.ID != last.ID || old.Result != last.Result) {
			kind, reason := corev1.EventTypeNormal, v1alpha1.EventRestarted
			if last.Result != v1alpha1.RequestDone {
				kind, reason = corev1.EventTypeWarning, v1alpha1.EventRefused
			}
			out = append(out, told{kind, reason, "The restart of " + what + " (" + last.ID + "): " + last.Message})
		}
	}
	return out
}

// starting: reasons that are no trouble but a beginning.
func starting(reason string) bool {
	switch reason {
	case v1alpha1.ReasonInitializing, v1alpha1.ReasonNotInitialized, v1alpha1.ReasonStarting:
		return true
	}
	return false
}

func (s *shared) tell(obj client.Object, list []told) {
	for _, e := range list {
		s.event(obj, e.kind, e.reason, "Reconcile", "%s", shorten(e.note))
	}
}

// shorten keeps a note below the API server's limit of 1024 bytes.
func shorten(s string) string {
	const most = 1000
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " …"
}
