package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// instanceRestart is the order to restart in the instance's annotation. It stands there
// for good: the pod that was made for it, or after it, carries its id. An unreadable
// order is shown by phaseInputs.
func instanceRestart(i *v1alpha1.SQLServerInstance) *v1alpha1.Request {
	r, err := v1alpha1.ParseRequest(i.Annotations[v1alpha1.AnnotationRequest])
	if err != nil || r == nil || r.Kind != v1alpha1.RequestRestart || r.Target != "" && r.Target != i.ReplicaName() {
		return nil
	}
	return r
}

// answerInstanceRestart writes how the order in the annotation stands into the status.
func answerInstanceRestart(f instanceFacts, s *v1alpha1.SQLServerInstanceStatus) {
	order, err := v1alpha1.ParseRequest(f.Instance.Annotations[v1alpha1.AnnotationRequest])
	if err != nil {
		return
	}
	if order == nil {
		cancelRestart("", f.Now, s.LastRequest)
		return
	}
	if last := s.LastRequest; last != nil && last.ID == order.ID && last.Result != v1alpha1.RequestRunning {
		return
	}
	answer := v1alpha1.LastRequestStatus{ID: order.ID, Kind: string(order.Kind), Target: order.Target}
	pod := f.Scope.pods[f.Instance.ReplicaName()]
	switch {
	case order.Kind != v1alpha1.RequestRestart:
		answer.Result, answer.Reason, answer.Message = v1alpha1.RequestRefused, v1alpha1.ReasonInvalidAnnotation, "an instance knows only the order restart"
	case f.Scope.restart == nil:
		answer.Result, answer.Reason, answer.Message = v1alpha1.RequestRefused, ag.ReasonUnknownReplica, "the only server is "+f.Instance.ReplicaName()
	case pod == nil || restartDue(order, pod) || !podReady(pod):
		answer.Result, answer.Message = v1alpha1.RequestRunning, "still to restart: "+f.Instance.ReplicaName()
	default:
		answer.Result, answer.Message = v1alpha1.RequestDone, "restarted"
	}
	if answer.Result != v1alpha1.RequestRunning {
		at := metav1.NewTime(f.Now)
		answer.CompletedAt = &at
	}
	s.LastRequest = &answer
}

// instanceRolling tells whether the one pod is being replaced, until the new one is ready.
func instanceRolling(f instanceFacts) verdict {
	name := f.Instance.ReplicaName()
	switch {
	case len(f.Scope.outdated) > 0 && f.Scope.paused:
		return yes(v1alpha1.ReasonRolloutWaits, name+" is to be replaced; paused")
	case len(f.Scope.outdated) > 0:
		return yes(v1alpha1.ReasonRolloutInProgress, name+" is being replaced")
	case f.Scope.ready() == 0 && findCondition(f.Instance.Status.Conditions, v1alpha1.ConditionRollingChange).Status == metav1.ConditionTrue:
		return yes(v1alpha1.ReasonRolloutInProgress, "the new pod of "+name+" is not ready yet")
	}
	return no(v1alpha1.ReasonRolloutComplete, "the pod runs with the settings of the spec")
}
