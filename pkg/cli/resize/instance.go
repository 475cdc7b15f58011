package resize

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// instance is the same for a standalone server: there is nobody to take over.
func (o *Options) instance(ctx context.Context, r *change.Result) error {
	i := o.Instance
	want := i.DeepCopy()
	o.apply(&want.Spec.ServerSpec)
	rolls, grows := resourcesDiffer(&i.Spec.ServerSpec, &want.Spec.ServerSpec), o.storageDiffers(&i.Spec.ServerSpec)
	dry := change.DryRun(o.DryRun)
	if !rolls && !grows {
		if dry == change.DryRunNone && !o.instanceReached(i) {
			fmt.Fprintf(o.Streams.ErrOut, "%s the spec asks for it already; following\n", o.Streams.Mark(iostreams.MarkOK))
			return o.followInstance(ctx, r)
		}
		fmt.Fprintf(o.Streams.ErrOut, "%s %s has that already\n", o.Streams.Mark(iostreams.MarkOK), o.Name)
		r.Result, r.Message = change.ResultAlreadySo, "already so"
		return nil
	}
	p := &change.Plan{Title: fmt.Sprintf("Resize %s/%s: %s", i.Namespace, i.Name, o.wish()), Level: change.Outage, Word: i.Name}
	if grows {
		if err := o.judgeStorage(ctx, p, &i.Spec.ServerSpec, "its data volume"); err != nil {
			return err
		}
	}
	if rolls {
		o.memoryLine(p, &want.Spec.ServerSpec)
		p.Add("effect", "its pod is replaced: the server is down until it has started again")
	}
	r.Plan, r.Request = p.Lines, o.patch(&i.Spec.ServerSpec)
	if dry == change.DryRunNone {
		if err := o.Ask(p); err != nil {
			return err
		}
	}
	if dry != change.DryRunClient {
		err := o.PatchInstance(ctx, "resize", func(i *api.SQLServerInstance) error {
			o.apply(&i.Spec.ServerSpec)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if dry != change.DryRunNone {
		o.ShowDryRun(p, r, o.patchText(&i.Spec.ServerSpec))
		return nil
	}
	return o.followInstance(ctx, r)
}

// instanceReached: the operator has seen the present spec, and the server has it.
func (o *Options) instanceReached(i *api.SQLServerInstance) bool {
	if i.Status.ObservedGeneration != i.Generation || o.storage != nil && o.smaller(i.Status.Volume) {
		return false
	}
	if o.cpu == nil && o.memory == nil {
		return true
	}
	c := meta.FindStatusCondition(i.Status.Conditions, api.ConditionRollingChange)
	return c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == i.Generation && i.Status.Phase == api.PhaseRunning
}

func (o *Options) followInstance(ctx context.Context, r *change.Result) error {
	t := o.Trail(r)
	defer t.Stop()
	t.Done("requested       %s", o.wish())
	return o.FollowInstance(ctx, t, func(i *api.SQLServerInstance) (bool, error) {
		if i.Status.ObservedGeneration != i.Generation {
			t.Step("waiting until the operator has accepted it")
			return false, nil
		}
		if c := meta.FindStatusCondition(i.Status.Conditions, api.ConditionStorageResizing); c != nil && o.storage != nil {
			if err := o.unsupported(*c, i.Generation); err != nil {
				return false, err
			}
		}
		switch {
		case !o.Wait:
			t.Done("accepted; the operator goes on")
			r.Result = change.ResultRunning
			return true, nil
		case o.instanceReached(i):
			t.Done("resized         %s has %s", i.Name, o.wish())
			r.Result = change.ResultDone
			return true, nil
		case o.storage != nil && o.smaller(i.Status.Volume) && i.Status.Volume != nil && i.Status.Volume.Message != "":
			t.Step("its volume %s", i.Status.Volume.Message)
		case i.Status.Reason != "":
			t.Step("%s", i.Status.Reason)
		}
		return false, nil
	})
}
