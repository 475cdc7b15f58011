package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

func TestWhatPeopleOrderIsToldOnceWithWhoAndWhy(t *testing.T) {
	t.Parallel()
	quiet := statusOf(threeInStep())
	fenced := *quiet.DeepCopy()
	fenced.ReplicaStatuses[2].Fenced = true
	fenced.ReplicaStatuses[2].Fence = &v1alpha1.FenceStatus{By: "ann", Reason: "disk"}
	restart := &v1alpha1.Request{ID: "r1", Kind: v1alpha1.RequestRestart, By: "ann", Reason: "kernel"}
	answered := func(result, message string) v1alpha1.SQLServerAvailabilityGroupStatus {
		s := *quiet.DeepCopy()
		s.LastRequest = &v1alpha1.LastRequestStatus{ID: "r1", Kind: "restart", Result: result, Message: message}
		return s
	}
	asked := told{corev1.EventTypeNormal, v1alpha1.EventRestartRequested, "A restart of all replicas was requested by ann: kernel"}
	for name, c := range map[string]struct {
		before, after v1alpha1.SQLServerAvailabilityGroupStatus
		want          []told
	}{
		"nothing":               {quiet, quiet, nil},
		"a fence":               {quiet, fenced, []told{{corev1.EventTypeWarning, v1alpha1.EventReplicaFenced, "shop-2 is fenced by ann: disk"}}},
		"it stands":             {fenced, fenced, nil},
		"it is taken away":      {fenced, quiet, []told{{corev1.EventTypeNormal, v1alpha1.EventReplicaUnfenced, "shop-2 is not fenced any more"}}},
		"a new resource":        {v1alpha1.SQLServerAvailabilityGroupStatus{}, fenced, nil},
		"a restart":             {quiet, answered(v1alpha1.RequestRunning, ""), []told{asked}},
		"it goes on":            {answered(v1alpha1.RequestRunning, "a"), answered(v1alpha1.RequestRunning, "b"), nil},
		"it is done":            {answered(v1alpha1.RequestRunning, ""), answered(v1alpha1.RequestDone, "restarted"), []told{{corev1.EventTypeNormal, v1alpha1.EventRestarted, "The restart of all replicas (r1): restarted"}}},
		"it is refused at once": {quiet, answered(v1alpha1.RequestRefused, "no"), []told{asked, {corev1.EventTypeWarning, v1alpha1.EventRefused, "The restart of all replicas (r1): no"}}},
		"it was done before":    {answered(v1alpha1.RequestDone, ""), answered(v1alpha1.RequestDone, ""), nil},
	} {
		if diff := cmp.Diff(c.want, orders(c.before, c.after, restart), cmp.AllowUnexported(told{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOnlyBeginningAndEndOfARollingChangeAreNews(t *testing.T) {
	t.Parallel()
	of := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionRollingChange, Status: status, Reason: reason, Message: "m"}}
	}
	done, begun, waits := of(metav1.ConditionFalse, v1alpha1.ReasonRolloutComplete), of(metav1.ConditionTrue, v1alpha1.ReasonRolloutInProgress), of(metav1.ConditionTrue, v1alpha1.ReasonRolloutWaits)
	for name, c := range map[string]struct {
		before, after []metav1.Condition
		want          []told
	}{
		"it begins": {done, begun, []told{{corev1.EventTypeNormal, v1alpha1.ReasonRolloutInProgress, "m"}}},
		"it waits":  {begun, waits, nil},
		"it ends":   {waits, done, []told{{corev1.EventTypeNormal, v1alpha1.ReasonRolloutComplete, "m"}}},
	} {
		if diff := cmp.Diff(c.want, transitions(c.before, c.after, "", "", ""), cmp.AllowUnexported(told{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
