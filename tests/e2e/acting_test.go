package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// actingController is the pod of the controller that holds the leader's lock, nil when
// it cannot be told.
func (e *env) actingController(t *testing.T) *corev1.Pod {
	t.Helper()
	o := manifests.Default()
	l := &coordinationv1.Lease{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: "kubectl-mssql-controller"}, l); err != nil || l.Spec.HolderIdentity == nil {
		return nil
	}
	name, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
	p := &corev1.Pod{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: name}, p); err != nil {
		return nil
	}
	return p
}

// actingNode is where it runs, or empty.
func (e *env) actingNode(t *testing.T) string {
	t.Helper()
	if p := e.actingController(t); p != nil {
		return p.Spec.NodeName
	}
	return ""
}

// controllers are the pods of the operator.
func (e *env) controllers(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	o := manifests.Default()
	if err := e.client.List(t.Context(), &pods, client.InNamespace(o.Namespace), client.MatchingLabels{"app.kubernetes.io/component": "controller"}); err != nil {
		return nil
	}
	return pods.Items
}

// restarts of a pod's first container.
func restarts(p *corev1.Pod) int32 {
	if len(p.Status.ContainerStatuses) == 0 {
		return 0
	}
	return p.Status.ContainerStatuses[0].RestartCount
}

// freshControllers replaces controllers that were killed before: their kubelet would let
// them wait, longer each time, and a case would measure the cases before it.
func (e *env) freshControllers(t *testing.T) {
	t.Helper()
	present := e.controllers(t)
	if len(present) == 0 {
		return // not installed yet
	}
	for _, p := range present {
		if restarts(&p) == 0 {
			continue
		}
		if err := client.IgnoreNotFound(e.client.Delete(t.Context(), &p, client.GracePeriodSeconds(1))); err != nil {
			t.Fatal(err)
		}
	}
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		ready := 0
		for _, p := range e.controllers(t) {
			if len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Ready && restarts(&p) == 0 && p.DeletionTimestamp == nil {
				ready++
			}
		}
		acting := e.actingController(t)
		return ready == int(manifests.Default().Replicas) && acting != nil && acting.DeletionTimestamp == nil, nil
	})
	if err != nil {
		t.Fatal("the controllers were not replaced in two minutes")
	}
}

// controllersGoOn: none of them was started anew by its kubelet.
func (s *scene) controllersGoOn(t *testing.T) bool {
	t.Helper()
	for _, p := range s.e.controllers(t) {
		if n := restarts(&p); n > 0 {
			t.Errorf("the container of %s was started anew %d times: an outage of the API server is no crash", p.Name, n)
		}
	}
	return true
}

// killController ends the acting controller at once: SIGKILL, which it cannot answer by
// giving up its lock. Containers of a local cluster are processes of this machine.
func (s *scene) killController(t *testing.T) {
	t.Helper()
	if err := s.controllerKiller(t)(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// controllerKiller does the same later and within one round trip: which process belongs to
// which controller is looked up now, which of them acts only then.
func (s *scene) controllerKiller(t *testing.T) func(context.Context) error {
	t.Helper()
	processes := map[string]int{}
	for _, p := range s.e.controllers(t) {
		if len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil {
			_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
			processes[p.Name] = processesOf(t, id)[0]
		}
	}
	return func(ctx context.Context) error {
		l := &coordinationv1.Lease{}
		if err := s.e.quick.Get(ctx, client.ObjectKey{Namespace: manifests.Default().Namespace, Name: "kubectl-mssql-controller"}, l); err != nil {
			return fmt.Errorf("look which controller acts: %w", err)
		}
		if l.Spec.HolderIdentity == nil {
			return errors.New("no controller acts")
		}
		name, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
		pid, known := processes[name]
		if !known {
			return fmt.Errorf("the acting controller %s is none of %v", name, processes)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the controller %s: %w", name, err)
		}
		s.timeline.note("killed the controller %s, process %d", name, pid)
		return nil
	}
}

// processesOf finds the processes of the container with this ID, its first one first.
func processesOf(t *testing.T, id string) []int {
	t.Helper()
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range groups {
		b, err := os.ReadFile(file)
		if err != nil || id == "" || !strings.Contains(string(b), id) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		t.Fatalf("no process of the container %s", id)
	}
	slices.Sort(pids)
	return pids
}

// containerID of a pod's first container, without the runtime's name.
func (e *env) containerID(t *testing.T, pod string) string {
	t.Helper()
	var p corev1.Pod
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: pod}, &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Status.ContainerStatuses) == 0 {
		t.Fatalf("%s has no container", pod)
	}
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	return id
}
