package fence

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// up: the only server of an instance accepts logins.
func up(i *api.SQLServerInstance) bool {
	return meta.IsStatusConditionTrue(i.Status.Conditions, api.ConditionAvailable)
}

// instanceOn stops the only server there is.
func (o *Options) instanceOn(ctx context.Context, r *change.Result) error {
	list, err := o.fenced(o.Instance)
	if err != nil {
		return err
	}
	dry := change.DryRun(o.DryRun)
	if f := Find(list, o.Target); f != nil {
		fmt.Fprintf(o.Streams.ErrOut, "%s %s is %s\n", o.Streams.Mark(iostreams.MarkOK), o.Target, Text(*f))
		r.Result, r.Message = change.ResultAlreadySo, Text(*f)
		if dry != change.DryRunNone || !up(o.Instance) {
			return nil
		}
		return o.instanceFollow(ctx, r, false)
	}
	p := &change.Plan{Title: fmt.Sprintf("Fence %s/%s: %s", o.Namespace, o.Name, o.Target), Level: change.Outage,
		Undo: fmt.Sprintf("%s fence off %s %s", o.Factory.Name(), o.Name, o.Target)}
	p.Add("effect", "its only server is stopped: nobody can use %s until the fence is taken away", o.Name)
	p.Add("after", "pod and data stay; it stays stopped through restarts of its pod and of the operator")
	p.Add("undo", "%s", p.Undo)
	entry := api.FencedReplica{Replica: o.Target, Reason: o.Reason, Since: o.Now()}
	if dry != change.DryRunClient {
		entry.By = o.WhoAmI(ctx)
	}
	r.Plan, r.Request = p.Lines, entry
	text, err := json.Marshal([]api.FencedReplica{entry})
	if err != nil {
		return fmt.Errorf("write the order: %w", err)
	}
	apply := func(i *api.SQLServerInstance) error {
		now, err := o.fenced(i)
		if err != nil {
			return err
		}
		return Write(i, append(now, entry))
	}
	if done, err := o.instancePatch(ctx, r, p, "fence", api.AnnotationFenced+"="+string(text), apply); done || err != nil {
		return err
	}
	return o.instanceFollow(ctx, r, false)
}

// instanceOff lets it start.
func (o *Options) instanceOff(ctx context.Context, r *change.Result) error {
	list, err := o.fenced(o.Instance)
	if err != nil {
		return err
	}
	f := Find(list, o.Target)
	if f == nil {
		fmt.Fprintf(o.Streams.ErrOut, "%s %s is not fenced\n", o.Streams.Mark(iostreams.MarkOK), o.Target)
		r.Result, r.Message = change.ResultAlreadySo, "not fenced"
		return nil
	}
	p := &change.Plan{Title: fmt.Sprintf("Take the fence of %s/%s away: %s", o.Namespace, o.Name, o.Target), Level: change.Reversible}
	p.Add("was", "%s", Text(*f))
	p.Add("effect", "its server starts")
	r.Plan = p.Lines
	apply := func(i *api.SQLServerInstance) error { return Write(i, nil) } // it has one server
	if done, err := o.instancePatch(ctx, r, p, "unfence", "", apply); done || err != nil {
		return err
	}
	return o.instanceFollow(ctx, r, true)
}

// instancePatch asks and sends; done after a dry run.
func (o *Options) instancePatch(ctx context.Context, r *change.Result, p *change.Plan, what, request string, apply func(*api.SQLServerInstance) error) (done bool, err error) {
	dry := change.DryRun(o.DryRun)
	if dry == change.DryRunNone {
		if err := o.Ask(p); err != nil {
			return true, err
		}
	}
	if dry != change.DryRunClient {
		if err := o.PatchInstance(ctx, what, apply); err != nil {
			return true, err
		}
	}
	if dry != change.DryRunNone {
		o.ShowDryRun(p, r, request)
		return true, nil
	}
	return false, nil
}

// instanceFollow until the server is as it was ordered to be.
func (o *Options) instanceFollow(ctx context.Context, r *change.Result, wantUp bool) error {
	t := o.Trail(r)
	defer t.Stop()
	word, doing := "fenced          the server of %s is stopped", "stopping"
	if wantUp {
		word, doing = "back            %s accepts logins", "starting"
	}
	t.Done("requested       %s", o.Target)
	return o.FollowInstance(ctx, t, func(i *api.SQLServerInstance) (bool, error) {
		switch {
		case up(i) == wantUp:
			t.Done(word, o.Target)
			if r.Result == "" {
				r.Result = change.ResultDone
			}
			return true, nil
		case !o.Wait:
			t.Done("written; its instance manager follows it within seconds")
			r.Result = change.ResultRunning
			return true, nil
		}
		t.Step("%s is %s", o.Target, doing)
		return false, nil
	})
}
