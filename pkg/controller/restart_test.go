package controller

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func TestARestartThatWasTakenBackIsCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotation, result, want string
	}{
		"taken back":               {"", v1alpha1.RequestRunning, v1alpha1.RequestCancelled},
		"another one in its place": {`{"id":"r2","kind":"failover"}`, v1alpha1.RequestRunning, v1alpha1.RequestCancelled},
		"still ordered":            {`{"id":"r1","kind":"restart","target":"shop-1"}`, v1alpha1.RequestRunning, v1alpha1.RequestRunning},
		"not to be read":           {"{", v1alpha1.RequestRunning, v1alpha1.RequestRunning},
		"over already":             {"", v1alpha1.RequestDone, v1alpha1.RequestDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := threeInStep()
			f.Group.Annotations = map[string]string{v1alpha1.AnnotationRequest: c.annotation}
			f.Group.Status.LastRequest = &v1alpha1.LastRequestStatus{ID: "r1", Kind: "restart", Result: c.result, Message: "still to restart: shop-0"}
			got := statusOf(f).LastRequest
			if got.Result != c.want || (got.CompletedAt != nil) != (c.want == v1alpha1.RequestCancelled) {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

func TestARestartIsAnsweredWhenEveryPodThatItNamesWasMadeForItAndIsReady(t *testing.T) {
	t.Parallel()
	order := func(target string) string {
		return v1alpha1.Request{ID: "r1", Kind: v1alpha1.RequestRestart, Target: target, By: "ann"}.String()
	}
	run := func(target string, change func(*groupFacts)) v1alpha1.LastRequestStatus {
		f := threeInStep()
		f.Group.Annotations = map[string]string{v1alpha1.AnnotationRequest: order(target)}
		change(&f)
		f.Scope.restart = restartOrder(f.Group)
		f.Scope.restartRefused = refuseRestart(f.Scope.restart, f.Group)
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

func TestARestartIsRefusedWhenItCannotWorkOrItsAuthorSawAnotherPrimary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		order  v1alpha1.Request
		change func(*v1alpha1.SQLServerAvailabilityGroup)
		want   string
	}{
		"all is well":                     {v1alpha1.Request{}, func(*v1alpha1.SQLServerAvailabilityGroup) {}, ""},
		"the primary is the expected one": {v1alpha1.Request{ExpectedPrimary: "shop-0"}, func(*v1alpha1.SQLServerAvailabilityGroup) {}, ""},
		"the primary has moved":           {v1alpha1.Request{ExpectedPrimary: "shop-1"}, func(*v1alpha1.SQLServerAvailabilityGroup) {}, ag.ReasonStaleView},
		"the primary has moved since it began": {v1alpha1.Request{ExpectedPrimary: "shop-1"}, func(g *v1alpha1.SQLServerAvailabilityGroup) {
			g.Status.LastRequest = &v1alpha1.LastRequestStatus{ID: "r1", Result: v1alpha1.RequestRunning}
		}, ""},
		"no such replica":                  {v1alpha1.Request{Target: "shop-7"}, func(*v1alpha1.SQLServerAvailabilityGroup) {}, ag.ReasonUnknownReplica},
		"its target is fenced":             {v1alpha1.Request{Target: "shop-2"}, fence("shop-2"), v1alpha1.ReasonReplicaFenced},
		"another is fenced":                {v1alpha1.Request{Target: "shop-1"}, fence("shop-2"), ""},
		"one of all is fenced":             {v1alpha1.Request{}, fence("shop-2"), v1alpha1.ReasonReplicaFenced},
		"a replica that is gone is fenced": {v1alpha1.Request{}, fence("shop-9"), ""},
	} {
		g := threeInStep().Group
		g.Status.PrimaryReplica = "shop-0"
		c.change(g)
		c.order.ID, c.order.Kind = "r1", v1alpha1.RequestRestart
		got := ""
		if p := refuseRestart(&c.order, g); p != nil {
			got = p.Reason
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func fence(replica string) func(*v1alpha1.SQLServerAvailabilityGroup) {
	return func(g *v1alpha1.SQLServerAvailabilityGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationFenced: `[{"replica":"` + replica + `","by":"ann","reason":"disk"}]`}
	}
}

func TestWhoFencedAReplicaAndWhyStandsInTheStatus(t *testing.T) {
	t.Parallel()
	f := threeInStep()
	fence("shop-2")(f.Group)
	f.Report.Snapshot.Replicas[2].Fenced = true
	f.Report.Snapshot.Replicas[2].Local = ag.Local{Reach: ag.ReachRefused}
	s := statusOf(f).ReplicaStatuses[2]
	if s.State != "fenced" || !s.Fenced || s.Fence == nil || s.Fence.By != "ann" || s.Fence.Reason != "disk" || s.Message != "fenced by ann: disk" {
		t.Errorf("%+v", s)
	}
	f.Group.Annotations, f.Report.Snapshot.Replicas[2].Fenced = nil, false
	if s := statusOf(f).ReplicaStatuses[2]; s.Fenced || s.Fence != nil || s.State == "fenced" {
		t.Errorf("not fenced any more: %+v", s)
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
