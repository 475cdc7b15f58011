package failover

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/renewal"
)

// lookAround is the most that a dry run spends on how old the operator's word is.
const lookAround = 3 * time.Second

// outdated tells why what the resource says of the replicas may not be so any more: the
// operator does not look, or the primary is not heard of. What may not be read says nothing.
func (o *Options) outdated(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, lookAround)
	defer cancel()
	if lock, err := renewal.ReadLock(ctx, o.Client, o.OperatorNamespace, o.Factory); err == nil && lock.Silent() {
		return fmt.Sprintf("the operator has not looked for %s", lock.Age.Round(time.Second))
	}
	g := o.Group
	if g.Status.PrimaryReplica == "" || g.Status.TargetPrimary != "" {
		return "" // the operator says itself that nobody is, or that one is on the way
	}
	var l coordinationv1.Lease
	if err := o.Client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: api.LeaseName(g.Name)}, &l); err != nil {
		return ""
	}
	limit := 2 * g.Spec.AutomaticFailover.Timing.Effective().A
	if silent, known := renewal.Age(&l, o.Factory); known && silent > limit {
		return fmt.Sprintf("primary %s has not renewed its Lease for %s", g.Status.PrimaryReplica, silent.Round(time.Second))
	}
	return ""
}
