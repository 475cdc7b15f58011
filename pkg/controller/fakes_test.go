package controller

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// fakeEngine answers with what the test says and counts its passes.
type fakeEngine struct {
	mu     sync.Mutex
	steps  map[ag.Key]int
	answer func(ag.Key) (Report, error)
}

func (e *fakeEngine) Step(_ context.Context, key ag.Key) (Report, error) {
	e.mu.Lock()
	if e.steps == nil {
		e.steps = map[ag.Key]int{}
	}
	e.steps[key]++
	answer := e.answer
	e.mu.Unlock()
	if answer != nil {
		return answer(key)
	}
	return Report{Next: 100 * time.Millisecond}, nil
}

func (e *fakeEngine) Forget(string) {}

func (e *fakeEngine) count(namespace, name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.steps[ag.Key{Namespace: namespace, Name: name}]
}

// recorder keeps events as text.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("%s %s: %s", kind, reason, fmt.Sprintf(note, args...)))
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// groupReconciler works on the API server itself, without a cache: a pass sees what
// is there.
func groupReconciler(cli client.Client, live client.Reader, engine Engine) (*GroupReconciler, *recorder) {
	rec := &recorder{}
	return &GroupReconciler{Engine: engine, shared: &shared{
		Client: cli, Live: live, Scheme: cli.Scheme(), Recorder: rec, Clock: clock.RealClock{}, Ends: newPodEnds(),
		Settings: Settings{OperatorImage: "example.com/operator:1", OperatorPullPolicy: corev1.PullIfNotPresent},
	}}, rec
}

func instanceReconciler(cli client.Client, live client.Reader) (*InstanceReconciler, *recorder) {
	g, rec := groupReconciler(cli, live, nil)
	return &InstanceReconciler{shared: g.shared}, rec
}

func requestFor(namespace, name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// createGroup makes a group of three, and its Secret unless password is empty.
func (a apiServer) createGroup(t *testing.T, ns, name, password string) *v1alpha1.SQLServerAvailabilityGroup {
	t.Helper()
	if password != "" {
		a.createSecret(t, ns, "sa", map[string]string{"SA_PASSWORD": password})
	}
	g := &v1alpha1.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	g.Spec.AcceptEula = "Y"
	g.Spec.Replicas = make([]v1alpha1.AGReplicaSpec, 3)
	g.Spec.SAPasswordSecretRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "sa"}, Key: "SA_PASSWORD"}
	// As a user's manifest: what is left out is left to the defaults of the schema.
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g)
	if err != nil {
		t.Fatal(err)
	}
	spec, ok := m["spec"].(map[string]any)
	if !ok {
		t.Fatal("no spec")
	}
	u := object(t, "kind: SQLServerAvailabilityGroup\nmetadata: {name: "+name+"}\n", ns)
	u.Object["spec"] = map[string]any{
		"acceptEula": "Y", "replicas": []any{map[string]any{}, map[string]any{}, map[string]any{}},
		"saPasswordSecretRef": spec["saPasswordSecretRef"],
	}
	if err := a.cli.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return a.group(t, ns, name)
}

func (a apiServer) group(t *testing.T, ns, name string) *v1alpha1.SQLServerAvailabilityGroup {
	t.Helper()
	g := &v1alpha1.SQLServerAvailabilityGroup{}
	if err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, g); err != nil {
		t.Fatal(err)
	}
	return g
}

func (a apiServer) createSecret(t *testing.T, ns, name string, data map[string]string) {
	t.Helper()
	if err := a.cli.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, StringData: data}); err != nil {
		t.Fatal(err)
	}
}

// node makes a Ready node, as a kubelet would.
func (a apiServer) node(t *testing.T, bootID string, ready bool) string {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}
	if err := a.cli.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	a.nodeStatus(t, n.Name, bootID, ready)
	return n.Name
}

func (a apiServer) nodeStatus(t *testing.T, name, bootID string, ready bool) {
	t.Helper()
	n := &corev1.Node{}
	if err := a.cli.Get(t.Context(), types.NamespacedName{Name: name}, n); err != nil {
		t.Fatal(err)
	}
	before := n.DeepCopy()
	n.Status.NodeInfo.BootID = bootID
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	if err := a.cli.Status().Patch(t.Context(), n, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// run gives a pod to a node and reports it running and ready, as scheduler and kubelet would.
func (a apiServer) run(t *testing.T, ns, name, node string) {
	t.Helper()
	pod := &corev1.Pod{}
	key := types.NamespacedName{Namespace: ns, Name: name}
	if err := a.cli.Get(t.Context(), key, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.NodeName == "" {
		b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
		if err := a.cli.SubResource("binding").Create(t.Context(), pod, b); err != nil {
			t.Fatal(err)
		}
		if err := a.cli.Get(t.Context(), key, pod); err != nil {
			t.Fatal(err)
		}
	}
	a.podStatus(t, pod, func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.ContainerName, Ready: true, Image: "x", ImageID: "x",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	})
}

func (a apiServer) podStatus(t *testing.T, pod *corev1.Pod, change func(*corev1.PodStatus)) {
	t.Helper()
	before := pod.DeepCopy()
	change(&pod.Status)
	if err := a.cli.Status().Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// end reports all containers of a pod terminated, as a kubelet does before it removes the pod.
func (a apiServer) end(t *testing.T, ns, name string) {
	t.Helper()
	pod := &corev1.Pod{}
	if err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	a.podStatus(t, pod, func(s *corev1.PodStatus) {
		s.Phase = corev1.PodSucceeded
		s.Conditions = nil
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.ContainerName, Image: "x", ImageID: "x",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}}
	})
}

// deletePod starts a graceful deletion, or deletes at once.
func (a apiServer) deletePod(t *testing.T, ns, name string, grace int64) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	if err := a.cli.Delete(t.Context(), pod, client.GracePeriodSeconds(grace)); err != nil {
		t.Fatal(err)
	}
}

func (a apiServer) pods(t *testing.T, ns string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := a.cli.List(t.Context(), &list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
