package change_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// joins answers as an operator does: every replica of the spec is in step.
func joins(t *testing.T, a *clitest.API) {
	a.React(func(_ string, u *unstructured.Unstructured) {
		var g api.SQLServerAvailabilityGroup
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &g); err != nil || u.GetKind() != "SQLServerAvailabilityGroup" {
			return
		}
		for i := len(g.Status.ReplicaStatuses); i < len(g.Spec.Replicas); i++ {
			s := g.Status.ReplicaStatuses[1]
			s.Name, s.AvailabilityMode = g.ReplicaName(i), g.Spec.Replicas[i].AvailabilityMode
			g.Status.ReplicaStatuses = append(g.Status.ReplicaStatuses, s)
		}
		g.Status.ObservedGeneration = g.Generation
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&g)
		if err != nil {
			t.Error(err)
			return
		}
		u.Object = m
	})
}

func TestAGroupGetsMoreReplicasAndNeverFewer(t *testing.T) {
	t.Parallel()
	witness := func(g *api.SQLServerAvailabilityGroup) {
		g.Spec.Replicas[1].ReadableSecondary = true
		g.Spec.Replicas[2].AvailabilityMode = api.ConfigurationOnly
		g.Status.ReplicaStatuses[2].AvailabilityMode = api.ConfigurationOnly
	}
	for name, c := range map[string]struct {
		group []func(*api.SQLServerAvailabilityGroup)
		args  string
		code  exit.Code
		says  string
		// last is the last replica of the spec afterwards.
		count int
		last  api.AGReplicaSpec
	}{
		"not asked":    {nil, "scale sales --replicas 4", exit.NotConfirmed, "replicas cannot be removed yet", 3, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}},
		"two more":     {nil, "scale sales --replicas 5 --yes", exit.OK, "all 5 replicas are in step", 5, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}},
		"far away":     {nil, "scale sales --replicas 4 --async --yes", exit.OK, "sales-3: asynchronous", 4, api.AGReplicaSpec{AvailabilityMode: api.AsynchronousCommit, FailoverMode: api.FailoverManual}},
		"no witness":   {[]func(*api.SQLServerAvailabilityGroup){witness}, "scale sales --replicas 4 --yes", exit.OK, "all 4", 4, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic, ReadableSecondary: true}},
		"so already":   {nil, "scale sales --replicas 3", exit.OK, "3 replicas already", 3, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}},
		"fewer":        {nil, "scale sales --replicas 2 --yes", exit.Refused, "none can be removed yet", 3, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}},
		"too many":     {nil, "scale sales --replicas 10 --yes", exit.Usage, "1 to 9", 3, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}},
		"none said":    {nil, "scale sales", exit.Usage, "--replicas", 3, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}},
		"paused":       {[]func(*api.SQLServerAvailabilityGroup){paused}, "scale sales --replicas 4 --yes", exit.Refused, "maintenance off", 3, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}},
		"a trial only": {nil, "scale sales --replicas 4 --dry-run=server", exit.OK, "", 3, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales(c.group...))
			joins(t, a)
			got := quiet(t, a, strings.Fields(c.args)...)
			if got.code != c.code || !strings.Contains(strings.Join(strings.Fields(got.errOut), " "), c.says) {
				t.Errorf("want exit %d and %q\n%s", c.code, c.says, got)
			}
			var g api.SQLServerAvailabilityGroup
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.Get(groups, "prod", "sales").Object, &g); err != nil {
				t.Fatal(err)
			}
			if n := len(g.Spec.Replicas); n != c.count || g.Spec.Replicas[n-1] != c.last {
				t.Errorf("%d replicas, the last %+v", n, g.Spec.Replicas[n-1])
			}
		})
	}
}
