package complete

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
)

// orders are the ids of those that are not answered, with what each is.
func orders(ctx context.Context, f factory.Factory) ([]cobra.Completion, error) {
	c, ns, err := connect(f)
	if err != nil {
		return nil, err
	}
	var out []cobra.Completion
	add := func(x client.Object, last *api.LastRequestStatus) {
		q, err := api.ParseRequest(x.GetAnnotations()[api.AnnotationRequest])
		if err != nil || q == nil || last != nil && last.ID == q.ID && last.Result != api.RequestRunning {
			return
		}
		out = append(out, cobra.CompletionWithDesc(q.ID, string(q.Kind)+" of "+x.GetName()))
	}
	var groups api.SQLServerAvailabilityGroupList
	if err := c.List(ctx, &groups, client.InNamespace(ns)); err != nil {
		return nil, err
	}
	for i := range groups.Items {
		add(&groups.Items[i], groups.Items[i].Status.LastRequest)
	}
	var instances api.SQLServerInstanceList
	err = c.List(ctx, &instances, client.InNamespace(ns))
	for i := range instances.Items {
		add(&instances.Items[i], instances.Items[i].Status.LastRequest)
	}
	slices.Sort(out)
	return out, err
}
