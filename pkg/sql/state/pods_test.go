package state_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// What a grant and a proof of death rest on (R8): which container runs, since when, and since when the pod is ready.
func TestAPodAsTheKubeletReportsIt(t *testing.T) {
	t.Parallel()
	began, since := metav1.NewTime(start.Truncate(time.Second)), metav1.NewTime(start.Truncate(time.Second).Add(4*time.Second))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ag1-0", UID: "u1", Labels: map[string]string{v1alpha1.LabelAG: "ag1", v1alpha1.LabelRole: v1alpha1.RolePrimary}},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "another", ContainerID: "x"},
				{
					Name: v1alpha1.ContainerName, ContainerID: "c2", RestartCount: 1,
					State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}},
					LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "c1", Reason: "Error", ExitCode: 137}},
				},
			},
		},
	}
	want := ag.Pod{
		Exists: true, UID: "u1", IP: "10.0.0.1", Node: "n1", Phase: "Running", Ready: true, ReadySince: since.UTC(), RoleLabel: ag.RolePrimary,
		Container: ag.Container{ID: "c2", Running: true, StartedAt: began.UTC(), Restarts: 1, TerminatedID: "c1", TerminatedReason: "Error", ExitCode: 137},
	}
	look := func() ag.Pod {
		pods, _, err := state.Cluster{Reader: fake.NewClientBuilder().WithObjects(pod).Build()}.Pods(context.Background(), ag.Key{Namespace: "ns", Name: "ag1"}, []string{"ag1-0"})
		if err != nil {
			t.Fatal(err)
		}
		return pods[0]
	}
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	want.Ready, want.ReadySince = false, ag.Pod{}.ReadySince
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Errorf("not ready: (-want +got)\n%s", diff)
	}
}
