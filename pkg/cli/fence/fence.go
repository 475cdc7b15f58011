package fence

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/renewal"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

const defaultOperatorNamespace = manifests.DefaultNamespace

// Options of one call.
type Options struct {
	change.Call
	Target            string
	OperatorNamespace string
}

// act is one of the two verbs.
type act func(context.Context, *change.Result) error

// Run one of the two, for a group or for an instance.
func (o *Options) Run(ctx context.Context, group, instance act) error {
	return o.Do(ctx, &change.Result{Target: o.Target}, func(ctx context.Context, r *change.Result) error { return o.run(ctx, r, group, instance) })
}

func (o *Options) run(ctx context.Context, r *change.Result, do, instance act) error {
	if err := o.LoadAny(ctx); err != nil {
		return err
	}
	if o.Instance != nil && o.Target != o.Instance.ReplicaName() {
		return exit.Errorf(exit.NotFound, "name it", "%s is an instance, its only server is %s", o.Name, o.Instance.ReplicaName())
	}
	if o.Instance == nil {
		if err := o.Replica(o.Target); err != nil {
			return err
		}
	}
	if err := o.Held(); err != nil {
		return err
	}
	if o.Instance != nil {
		return instance(ctx, r)
	}
	r.From = o.Group.Status.PrimaryReplica
	return do(ctx, r)
}

// fenced are the orders in the group or instance.
func (o *Options) fenced(x client.Object) ([]api.FencedReplica, error) {
	list, err := api.ParseFenced(x.GetAnnotations()[api.AnnotationFenced])
	if err != nil {
		kind := "sqlag"
		if o.Instance != nil {
			kind = "sqli"
		}
		return nil, exit.With(exit.Unexpected, fmt.Sprintf("see it with: kubectl get %s -n %s %s -o yaml", kind, o.Namespace, o.Name), err)
	}
	return list, nil
}

// Find the order for a replica, or nil.
func Find(list []api.FencedReplica, replica string) *api.FencedReplica {
	for i := range list {
		if list[i].Replica == replica {
			return &list[i]
		}
	}
	return nil
}

// Write puts a list into the group or instance.
func Write(x client.Object, list []api.FencedReplica) error {
	m := x.GetAnnotations()
	if m == nil {
		m = map[string]string{}
	}
	delete(m, api.AnnotationFenced)
	if len(list) > 0 {
		text, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("write the list of fenced replicas: %w", err)
		}
		m[api.AnnotationFenced] = string(text)
	}
	x.SetAnnotations(m)
	return nil
}

// on fences.
func (o *Options) on(ctx context.Context, r *change.Result) error {
	list, err := o.fenced(o.Group)
	if err != nil {
		return err
	}
	if f := Find(list, o.Target); f != nil {
		fmt.Fprintf(o.Streams.ErrOut, "%s %s is %s\n", o.Streams.Mark(iostreams.MarkOK), o.Target, Text(*f))
		r.Result, r.Message = change.ResultAlreadySo, Text(*f)
		if s := change.StatusOf(o.Group, o.Target); s != nil && s.State == "fenced" || change.DryRun(o.DryRun) != change.DryRunNone {
			return nil
		}
		return o.untilFenced(ctx, r)
	}
	if err := o.Busy(); err != nil {
		return err
	}
	w := change.Judge(o.Group, o.Target)
	if err := o.refuse(ctx, w); err != nil {
		return err
	}
	p := o.plan(w)
	r.Plan = p.Lines
	entry := api.FencedReplica{Replica: o.Target, Reason: o.Reason, Since: o.Now()}
	if change.DryRun(o.DryRun) != change.DryRunClient {
		entry.By = o.WhoAmI(ctx)
	}
	r.Request = entry
	apply := func(g *api.SQLServerAvailabilityGroup) error {
		now, err := o.fenced(g)
		if err != nil {
			return err
		}
		return Write(g, append(now, entry))
	}
	if dry := change.DryRun(o.DryRun); dry != change.DryRunNone {
		if dry == change.DryRunServer {
			if err := o.Patch(ctx, "fence a replica of", apply); err != nil {
				return err
			}
		}
		text, err := json.Marshal([]api.FencedReplica{entry})
		o.ShowDryRun(p, r, api.AnnotationFenced+"="+string(text))
		return err
	}
	if err := o.Ask(p); err != nil {
		return err
	}
	if err := o.Patch(ctx, "fence a replica of", apply); err != nil {
		return err
	}
	return o.untilFenced(ctx, r)
}

// refuse is the safety gate: what would stop writes, or leave nobody to move the primary.
func (o *Options) refuse(ctx context.Context, w change.Without) error {
	g := o.Group
	status := fmt.Sprintf("%s status %s shows every replica", o.Factory.Name(), o.Name)
	switch {
	case !g.Status.InitializationComplete:
		return exit.Errorf(exit.Refused, status, "%s was not made yet", o.Name)
	case w.Primary && len(w.Successors) == 0:
		return exit.Errorf(exit.Refused, fmt.Sprintf("%s failover %s --dry-run shows which rule refuses each replica", o.Factory.Name(), o.Name),
			"refused: %s is the primary and no replica could take over without loss, so that nobody could write", o.Target)
	case w.NoQuorum():
		return exit.Errorf(exit.Refused, status,
			"refused: %d of %d voters would be left, so that the primary could not change its configuration any more, and writes would stop when it must", w.Left, w.Voters)
	case w.Stalls() && w.Required:
		return exit.Errorf(exit.Refused, status, "refused: %s", w.Describe())
	case w.Primary && g.Status.PrimaryReplica != "":
		return o.operatorActs(ctx)
	}
	return nil
}

// operatorActs refuses the primary's fence while nobody would move the primary first. What
// cannot be known does not hinder.
func (o *Options) operatorActs(ctx context.Context) error {
	lock, err := renewal.ReadLock(ctx, o.Client, o.OperatorNamespace, o.Factory)
	if err != nil || !lock.Silent() {
		return nil //nolint:nilerr // a courtesy: without the right to read it nothing is known
	}
	return exit.Errorf(exit.Refused, fmt.Sprintf("move it first: %s failover %s --direct", o.Factory.Name(), o.Name),
		"refused: %s is the primary, and the operator that would move it first has not been heard of for %s", o.Target, lock.Age.Truncate(time.Second))
}

// plan is what will happen.
func (o *Options) plan(w change.Without) *change.Plan {
	g := o.Group
	p := &change.Plan{Title: fmt.Sprintf("Fence %s/%s: %s", g.Namespace, g.Name, o.Target), Level: change.Reversible, Word: o.Target,
		Undo: fmt.Sprintf("%s fence off %s %s", o.Factory.Name(), o.Name, o.Target)}
	switch {
	case w.Primary:
		p.Add("checks", "could take over without loss: %s", strings.Join(w.Successors, ", "))
		p.Add("effect", "the primary moves away first, writes stop %s; then the server of %s is stopped", change.Expected(g), o.Target)
		p.Raise(change.Outage)
	default:
		p.Add("effect", "the server of %s is stopped; its readers are disconnected", o.Target)
	}
	if text := w.Describe(); text != "" {
		p.Add("writes", "%s", text)
		p.Raise(change.Outage)
	}
	if w.Headless {
		p.Add("risk", "nobody is primary now: without %s fewer replicas can prove what was committed, and a failover may stay blocked", o.Target)
		p.Raise(change.Copy)
	}
	if w.LastCandidate {
		p.Add("risk", "nobody could take over from the primary afterwards: its failure would be an outage until a person acts")
		p.Raise(change.Copy)
	}
	p.Add("after", "pod and data stay; log is kept on the primary for %s until it is back", o.Target)
	p.Add("undo", "%s", p.Undo)
	return p
}

// untilFenced follows until the server is stopped, and until another replica is primary
// where this one was.
func (o *Options) untilFenced(ctx context.Context, r *change.Result) error {
	t := o.Trail(r)
	defer t.Stop()
	before := r.From
	t.Done("requested       %s is to be fenced", o.Target)
	return o.Follow(ctx, t, func(g *api.SQLServerAvailabilityGroup) (bool, error) {
		list, err := o.fenced(g)
		if err != nil {
			return false, err
		}
		if Find(list, o.Target) == nil {
			return false, exit.Errorf(exit.Conflict, "", "somebody took the fence of %s away meanwhile", o.Target)
		}
		t.Operation(g)
		s := change.StatusOf(g, o.Target)
		if before == o.Target && g.Status.PrimaryReplica != "" && g.Status.PrimaryReplica != before {
			r.To = g.Status.PrimaryReplica
			t.Done("moved           %s is primary", r.To)
		}
		switch {
		case s == nil || !s.Fenced:
			t.Step("waiting until the operator has seen it")
		case !o.Wait:
			t.Done("accepted; the operator goes on")
			r.Result = change.ResultRunning
			return true, nil
		case s.State == "fenced" && !s.Ready && g.Status.PrimaryReplica != o.Target:
			t.Done("fenced          the server of %s is stopped", o.Target)
			if r.Result == "" {
				r.Result = change.ResultDone
			}
			return true, nil
		case change.Operation(g) == nil:
			t.Step("%s is stopping", o.Target)
		}
		return false, nil
	})
}

// off takes the fence away.
func (o *Options) off(ctx context.Context, r *change.Result) error {
	list, err := o.fenced(o.Group)
	if err != nil {
		return err
	}
	if Find(list, o.Target) == nil {
		fmt.Fprintf(o.Streams.ErrOut, "%s %s is not fenced\n", o.Streams.Mark(iostreams.MarkOK), o.Target)
		r.Result, r.Message = change.ResultAlreadySo, "not fenced"
		return nil
	}
	p := &change.Plan{Title: fmt.Sprintf("Take the fence of %s/%s away: %s", o.Namespace, o.Name, o.Target), Level: change.Reversible}
	p.Add("was", "%s", Text(*Find(list, o.Target)))
	p.Add("effect", "its server starts and catches up; then it is a candidate again")
	r.Plan = p.Lines
	apply := func(g *api.SQLServerAvailabilityGroup) error {
		now, err := o.fenced(g)
		if err != nil {
			return err
		}
		return Write(g, slices.DeleteFunc(now, func(f api.FencedReplica) bool { return f.Replica == o.Target }))
	}
	if dry := change.DryRun(o.DryRun); dry != change.DryRunNone {
		if dry == change.DryRunServer {
			if err := o.Patch(ctx, "unfence a replica of", apply); err != nil {
				return err
			}
		}
		o.ShowDryRun(p, r, "")
		return nil
	}
	if err := o.Ask(p); err != nil {
		return err
	}
	if err := o.Patch(ctx, "unfence a replica of", apply); err != nil {
		return err
	}
	t := o.Trail(r)
	defer t.Stop()
	t.Done("requested       %s may come back", o.Target)
	return o.Follow(ctx, t, func(g *api.SQLServerAvailabilityGroup) (bool, error) {
		s := change.StatusOf(g, o.Target)
		switch {
		case s == nil || s.Fenced:
			t.Step("waiting until the operator has seen it")
		case !o.Wait:
			t.Done("accepted; the server starts")
			r.Result = change.ResultRunning
			return true, nil
		case change.InStep(s):
			t.Done("back            %s is %s", o.Target, s.State)
			r.Result = change.ResultDone
			return true, nil
		default:
			t.Step("%s is %s", o.Target, s.State)
		}
		return false, nil
	})
}

// Text says who fenced a replica, when and why.
func Text(f api.FencedReplica) string {
	text := "fenced"
	if f.By != "" {
		text += " by " + f.By
	}
	if f.Since != nil {
		text += " at " + f.Since.UTC().Format(time.RFC3339)
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}
