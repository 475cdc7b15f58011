package controller

import (
	"strings"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func TestPodsAreReplacedOneAtATimeSecondariesFirstAndThePrimaryLast(t *testing.T) {
	t.Parallel()
	all := []string{"shop-0", "shop-1", "shop-2"}
	const behind = "shop-1 is behind"
	for name, c := range map[string]struct {
		f     rolloutFacts
		want  string
		waits string
	}{
		"nothing is outdated":               {rolloutFacts{Replicas: all, Holder: "shop-0", Safe: 2}, "", ""},
		"the last secondary first":          {rolloutFacts{Replicas: all, Outdated: all, Holder: "shop-0", Safe: 2}, "shop-2", ""},
		"then the other":                    {rolloutFacts{Replicas: all, Outdated: all[:2], Holder: "shop-0", Safe: 2}, "shop-1", ""},
		"the primary last":                  {rolloutFacts{Replicas: all, Outdated: all[:1], Holder: "shop-0", Safe: 2}, "shop-0", ""},
		"a primary that is not the first":   {rolloutFacts{Replicas: all, Outdated: all, Holder: "shop-2", Safe: 2}, "shop-1", ""},
		"not while a replica is behind":     {rolloutFacts{Replicas: all, Outdated: all, Holder: "shop-0", Safe: 1, Unhealthy: behind}, "", behind},
		"not while an operation runs":       {rolloutFacts{Replicas: all, Outdated: all, Busy: "the switchover to shop-1", Holder: "shop-0", Safe: 2}, "", "the switchover to shop-1"},
		"not the primary without a target":  {rolloutFacts{Replicas: all, Outdated: all[:1], Holder: "shop-0"}, "", "no replica could take over from shop-0 without loss"},
		"a secondary that a person named":   {rolloutFacts{Replicas: all, Outdated: all[1:2], Ordered: "shop-1", Recovering: true, Unhealthy: behind, Holder: "shop-0"}, "shop-1", ""},
		"a named primary without a target":  {rolloutFacts{Replicas: all, Outdated: all[:1], Ordered: "shop-0", Holder: "shop-0"}, "", "no replica could take over from shop-0 without loss"},
		"a named primary with a target":     {rolloutFacts{Replicas: all, Outdated: all[:1], Ordered: "shop-0", Holder: "shop-0", Safe: 1}, "shop-0", ""},
		"not while a replica comes back":    {rolloutFacts{Replicas: all, Outdated: all, Recovering: true, Holder: "shop-0", Safe: 2}, "", "a replica is on its way back"},
		"the only replica there is":         {rolloutFacts{Replicas: all[:1], Outdated: all[:1], Holder: "shop-0", Alone: true}, "shop-0", ""},
		"a broken one, though not healthy":  {rolloutFacts{Replicas: all, Outdated: all, Broken: all[1:2], Holder: "shop-0", Unhealthy: behind}, "shop-1", ""},
		"a broken primary is left alone":    {rolloutFacts{Replicas: all, Outdated: all, Broken: all[:1], Holder: "shop-0", Unhealthy: behind}, "", behind},
		"a broken one that is not outdated": {rolloutFacts{Replicas: all, Outdated: all[:1], Broken: all[1:2], Holder: "shop-0", Unhealthy: behind}, "", behind},
		"nobody is primary":                 {rolloutFacts{Replicas: all, Outdated: all, Safe: 2, Unhealthy: "no primary"}, "", "no primary"},
	} {
		if got, waits := nextRollout(c.f); got != c.want || waits != c.waits {
			t.Errorf("%s: %q, waits for %q; want %q, %q", name, got, waits, c.want, c.waits)
		}
	}
}

func TestARollingChangeIsToldUntilTheLastNewPodIsInStep(t *testing.T) {
	t.Parallel()
	of := func(f groupFacts) (status, reason, message string) {
		c := findCondition(statusOf(f).Conditions, v1alpha1.ConditionRollingChange)
		return string(c.Status), c.Reason, c.Message
	}
	f := threeInStep()
	f.Scope.outdated, f.Scope.next = []string{"shop-0", "shop-1"}, "shop-1"
	if status, reason, message := of(f); status != "True" || reason != v1alpha1.ReasonRolloutInProgress ||
		message != "1 of 3 pods are new; to be replaced: shop-0, shop-1; shop-1 is being replaced" {
		t.Errorf("under way: %s, %s, %s", status, reason, message)
	}
	f.Scope.next, f.Scope.waits = "", "shop-2 is not ready"
	if _, reason, message := of(f); reason != v1alpha1.ReasonRolloutWaits || !strings.Contains(message, "waits for: shop-2 is not ready") {
		t.Errorf("waiting: %s, %s", reason, message)
	}
	f.Group.Status = statusOf(f)
	f.Scope.outdated = nil
	f.Report.Snapshot.Replicas[2].Local.Role = ag.RoleResolving
	if status, _, message := of(f); status != "True" || !strings.Contains(message, "every pod is new") {
		t.Errorf("the last new pod is not in step: %s, %s", status, message)
	}
	f.Report.Snapshot.Replicas[2].Local.Role = ag.RoleSecondary
	if status, reason, _ := of(f); status != "False" || reason != v1alpha1.ReasonRolloutComplete {
		t.Errorf("done: %s, %s", status, reason)
	}
	sick := threeInStep()
	sick.Report.Snapshot.Replicas[2].Local.Role = ag.RoleResolving
	if status, _, _ := of(sick); status != "False" {
		t.Errorf("a sick replica is taken for a rolling change: %s", status)
	}
}
