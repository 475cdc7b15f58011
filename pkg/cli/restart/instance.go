package restart

import (
	"context"
	"fmt"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// instance restarts a standalone server: there is nobody to take over.
func (o *Options) instance(ctx context.Context, r *change.Result) error {
	i := o.Instance
	if o.Target != "" && o.Target != i.ReplicaName() {
		return exit.Errorf(exit.NotFound, "leave it out", "%s is an instance, its only server is %s", i.Name, i.ReplicaName())
	}
	r.Order = []string{i.ReplicaName()}
	id := ""
	if q, err := api.ParseRequest(i.Annotations[api.AnnotationRequest]); err == nil && q != nil && q.Kind == api.RequestRestart &&
		i.Status.LastRequest != nil && i.Status.LastRequest.ID == q.ID && i.Status.LastRequest.Result == api.RequestRunning {
		id = q.ID
	}
	if id == "" {
		p := &change.Plan{Title: fmt.Sprintf("Restart %s/%s", i.Namespace, i.Name), Level: change.Outage, Word: i.Name}
		p.Add("effect", "the server is down until it has started again: there is no other replica")
		q, err := o.place(ctx, r, p)
		if err != nil || q == nil {
			return err
		}
		id = q.ID
	}
	r.RequestID = id
	t := o.Trail(r)
	defer t.Stop()
	t.Done("requested       %s", id)
	return o.FollowInstance(ctx, t, func(i *api.SQLServerInstance) (bool, error) {
		a := i.Status.LastRequest
		if a == nil || a.ID != id {
			t.Step("waiting until the operator has accepted it")
			return false, nil
		}
		r.Result, r.Reason, r.Message = a.Result, a.Reason, a.Message
		switch {
		case a.Result == api.RequestRefused:
			return true, exit.Errorf(exit.Refused, "", "refused: %s", a.Message)
		case a.Result == api.RequestDone:
			t.Done("restarted       %s", i.ReplicaName())
			return true, nil
		case !o.Wait:
			t.Done("accepted; the operator goes on")
			return true, nil
		}
		t.Step("%s", i.Status.Reason)
		return false, nil
	})
}
