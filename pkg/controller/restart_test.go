package controller

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

func TestARestartIsAnsweredWhenEveryPodThatItNamesWasMadeForItAndIsReady(t *testing.T) {
	t.Parallel()
	order := func(target string) string {
		return v1alpha1.Request{ID: "r1", Kind: v1alpha1.RequestRestart, Target: target, By: "ann"}.String()
	}
	run := func(target string, change func(*groupFacts)) v1alpha1.LastRequestStatus {
		f := threeInStep()
		f.Group.Annotations = map[string]string{v1alpha1.AnnotationRequest: order(target)}
		f.Scope.restart = restartOrder(f.Group)
		change(&f)
		for _, name := range f.Scope.server.Replicas {
			if p := f.Scope.pods[name]; p != nil && restartDue(f.Scope.restart, p) {
				f.Scope.restarts = append(f.Scope.restarts, name)
			}
		}
		s := statusOf(f)
		if s.LastRequest == nil {
			t.Fatal("no answer")
		}
		handled := s.Memory != nil && s.Memory.HandledRequest == "r1"
		if handled != (s.LastRequest.Result != v1alpha1.RequestRunning) {
			t.Errorf("handled %v, result %s", handled, s.LastRequest.Result)
		}
		return *s.LastRequest
	}
	restarted := func(names ...int) func(*groupFacts) {
		return func(f *groupFacts) {
			for _, i := range names {
				f.Scope.pods[fmt.Sprintf("shop-%d", i)].Annotations = map[string]string{v1alpha1.AnnotationRestart: "r1"}
			}
		}
	}
	for name, c := range map[string]struct {
		target string
		change func(*groupFacts)
		want   string
	}{
		"nothing done yet":          {"", restarted(), v1alpha1.RequestRunning},
		"two of three":              {"", restarted(1, 2), v1alpha1.RequestRunning},
		"all":                       {"", restarted(0, 1, 2), v1alpha1.RequestDone},
		"the named one":             {"shop-1", restarted(1), v1alpha1.RequestDone},
		"another than the named":    {"shop-1", restarted(2), v1alpha1.RequestRunning},
		"no such replica":           {"shop-9", restarted(), v1alpha1.RequestRefused},
		"made anew, not ready yet":  {"shop-1", func(f *groupFacts) { restarted(1)(f); f.Scope.pods["shop-1"].Status = corev1.PodStatus{} }, v1alpha1.RequestRunning},
		"gone, not yet made anew":   {"shop-1", func(f *groupFacts) { delete(f.Scope.pods, "shop-1") }, v1alpha1.RequestRunning},
		"an order without a target": {"", func(f *groupFacts) { delete(f.Scope.pods, "shop-0"); restarted(1, 2)(f) }, v1alpha1.RequestRunning},
	} {
		if got := run(c.target, c.change); got.Result != c.want || got.Kind != "restart" {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

func TestAnAnsweredRestartIsNotCarriedOutAgain(t *testing.T) {
	t.Parallel()
	f := threeInStep()
	f.Group.Annotations = map[string]string{v1alpha1.AnnotationRequest: v1alpha1.Request{ID: "r1", Kind: v1alpha1.RequestRestart}.String()}
	if restartOrder(f.Group) == nil {
		t.Fatal("a new order is not seen")
	}
	f.Group.Status.LastRequest = &v1alpha1.LastRequestStatus{ID: "r1", Result: v1alpha1.RequestRunning}
	if restartOrder(f.Group) == nil {
		t.Error("an order under way is forgotten")
	}
	f.Group.Status.Memory = &v1alpha1.MemoryStatus{HandledRequest: "r1"}
	if restartOrder(f.Group) != nil {
		t.Error("an answered order is carried out again")
	}
	f.Group.Annotations[v1alpha1.AnnotationRequest] = v1alpha1.Request{ID: "r2", Kind: v1alpha1.RequestFailover}.String()
	if restartOrder(f.Group) != nil {
		t.Error("another kind of order is taken for a restart")
	}
}
