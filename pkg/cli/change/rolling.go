package change

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// Condition of the group; Unknown when the operator has not set it.
func Condition(g *api.SQLServerAvailabilityGroup, t string) metav1.Condition {
	if c := meta.FindStatusCondition(g.Status.Conditions, t); c != nil {
		return *c
	}
	return metav1.Condition{Type: t, Status: metav1.ConditionUnknown}
}

// DataReplicas counts the replicas that hold databases.
func DataReplicas(g *api.SQLServerAvailabilityGroup) int {
	n := 0
	for _, r := range g.Spec.Replicas {
		if r.AvailabilityMode != api.ConfigurationOnly {
			n++
		}
	}
	return n
}

// Rolling tells which replicas are new and in step, that the primary moved, and what is
// going on; it gives the present primary.
func Rolling(t *Trail, g *api.SQLServerAvailabilityGroup, order []string, was string) string {
	t.Operation(g)
	if p := g.Status.PrimaryReplica; p != "" && was != "" && p != was {
		t.Done("moved           %s is primary", p)
	}
	for _, name := range order {
		if InStep(StatusOf(g, name)) {
			t.Done("in step         %s, with its new pod", name)
		}
	}
	if Operation(g) == nil {
		switch c := Condition(g, api.ConditionRollingChange); {
		case c.Status == metav1.ConditionTrue:
			t.Step("%s", c.Message)
		case g.Status.Reason != "":
			t.Step("%s", g.Status.Reason)
		}
	}
	return g.Status.PrimaryReplica
}
