package create

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

func statusOf(obj client.Object) (api.Phase, string, []metav1.Condition) {
	switch o := obj.(type) {
	case *api.SQLServerAvailabilityGroup:
		return o.Status.Phase, o.Status.Reason, o.Status.Conditions
	case *api.SQLServerInstance:
		return o.Status.Phase, o.Status.Reason, o.Status.Conditions
	}
	return "", "", nil
}

// firstProblem is the message of the condition that a person must act on.
func firstProblem(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Type == api.ConditionConfigured && c.Status == metav1.ConditionFalse {
			return c.Message
		}
	}
	for _, c := range conditions {
		if c.Type == api.ConditionBootstrapFailed && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}
