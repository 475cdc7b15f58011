// Package cancel is `kubectl mssql cancel`: take back an order, where it can still be stopped.
package cancel

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// settled is after how long without an answer an order that was taken back will get none:
// the operator looks at a group at least every two seconds.
const settled = 5 * time.Second

// Options of one call.
type Options struct {
	change.Call
	ID string
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Call: change.Call{Factory: f, Streams: s, Verb: "cancel"}}
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Take back an order that was given, where it can still be stopped",
		Long: `Take back an order that was given, by the id that its verb has told, where it can still be stopped.

An order that the operator has not begun is taken back whole. Of a restart of all replicas those that are
left stay as they are. A move that has begun is not stopped half-way: it succeeds within its time, or the
operator gives it up and the old primary goes on.`,
		Example: fmt.Sprintf(`  %[1]s cancel restart-91af03c2`, f.Name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want the id of one order, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ID = args[0]
			return o.Run(cmd.Context())
		},
	}
	o.AddTo(cmd, time.Minute)
	return cmd
}

// Run finds the order and takes it back.
func (o *Options) Run(ctx context.Context) error {
	return o.Do(ctx, &change.Result{RequestID: o.ID}, o.run)
}

// given is the order of the id in what it was given to.
type given struct {
	name    string
	request *api.Request
	last    *api.LastRequestStatus
	// moving: the group's operation in flight is this order's.
	moving bool
}

func (g given) answered() bool {
	return g.last != nil && g.last.Result != api.RequestRunning
}

func (o *Options) run(ctx context.Context, r *change.Result) error {
	g, err := o.find(ctx)
	if err != nil {
		return err
	}
	o.Name, r.Target = g.name, g.request.Target
	if err := o.LoadAny(ctx); err != nil {
		return err
	}
	status := fmt.Sprintf("%s status %s", o.Factory.Name(), o.Name)
	switch {
	case g.answered():
		fmt.Fprintf(o.Streams.ErrOut, "%s %s is over: %s\n", o.Streams.Mark(iostreams.MarkOK), o.ID, answerText(g.last))
		r.Result, r.Message = change.ResultAlreadySo, answerText(g.last)
		return nil
	case g.moving:
		return exit.Errorf(exit.Refused, "follow it: "+status+" -w", "refused: the move has begun, and is not stopped half-way: it succeeds, or the operator gives it up by itself")
	}
	p := o.plan(g)
	r.Plan, r.Request = p.Lines, g.request
	dry := change.DryRun(o.DryRun)
	if dry == change.DryRunNone {
		if err := o.Ask(p); err != nil {
			return err
		}
	}
	if dry != change.DryRunClient {
		if err := o.takeBack(ctx); err != nil {
			return err
		}
	}
	if dry != change.DryRunNone {
		o.ShowDryRun(p, r, api.AnnotationRequest+"-")
		return nil
	}
	return o.follow(ctx, r)
}

func answerText(a *api.LastRequestStatus) string {
	if a.Message == "" {
		return a.Result
	}
	return a.Result + ", " + a.Message
}

// find looks for the id in the groups and instances of the namespace.
func (o *Options) find(ctx context.Context) (given, error) {
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return given{}, err
	}
	c, err := o.Factory.Client()
	if err != nil {
		return given{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var groups api.SQLServerAvailabilityGroupList
	if err := c.List(ctx, &groups, client.InNamespace(ns)); err != nil {
		if meta.IsNoMatchError(err) {
			return given{}, exit.Errorf(exit.NotFound, o.Factory.Name()+" install", "the operator is not installed in this cluster")
		}
		return given{}, fmt.Errorf("list availability groups: %w", err)
	}
	for i := range groups.Items {
		g := &groups.Items[i]
		if q := o.mine(g); q != nil {
			last := change.Answer(g, o.ID)
			moving := q.Kind == api.RequestFailover && last != nil && last.Result == api.RequestRunning
			return given{name: g.Name, request: q, last: last, moving: moving}, nil
		}
	}
	var instances api.SQLServerInstanceList
	if err := c.List(ctx, &instances, client.InNamespace(ns)); err != nil {
		return given{}, fmt.Errorf("list instances: %w", err)
	}
	for i := range instances.Items {
		x := &instances.Items[i]
		if q := o.mine(x); q != nil {
			found := given{name: x.Name, request: q}
			if l := x.Status.LastRequest; l != nil && l.ID == o.ID {
				found.last = l
			}
			return found, nil
		}
	}
	return given{}, exit.Errorf(exit.NotFound, "the verb that gave it told the id; an order that another one has replaced is over",
		"no group or instance in namespace %s has an order %s", ns, o.ID)
}

// mine is the order in the annotations when it has the id; an unreadable one is nobody's.
func (o *Options) mine(x client.Object) *api.Request {
	q, err := api.ParseRequest(x.GetAnnotations()[api.AnnotationRequest])
	if err != nil || q == nil || q.ID != o.ID {
		return nil
	}
	return q
}

// plan is what will happen.
func (o *Options) plan(g given) *change.Plan {
	p := &change.Plan{Title: fmt.Sprintf("Take back the %s of %s/%s: %s", g.request.Kind, o.Namespace, o.Name, o.ID), Level: change.Reversible}
	if g.request.By != "" {
		p.Add("ordered", "by %s", g.request.By)
	}
	if g.last == nil {
		p.Add("effect", "the operator has not begun: nothing was changed")
	} else {
		p.Add("effect", "a replica whose pod is being replaced comes back; those that are left are not touched")
		p.Add("so far", "%s", answerText(g.last))
	}
	return p
}

// takeBack removes the order, if it is still the same one.
func (o *Options) takeBack(ctx context.Context) error {
	apply := func(x client.Object) error {
		if o.mine(x) == nil {
			return exit.Errorf(exit.Conflict, "", "another order has taken its place meanwhile")
		}
		m := x.GetAnnotations()
		delete(m, api.AnnotationRequest)
		x.SetAnnotations(m)
		return nil
	}
	if o.Instance != nil {
		return o.PatchInstance(ctx, "take back an order of", func(i *api.SQLServerInstance) error { return apply(i) })
	}
	return o.Patch(ctx, "take back an order of", func(g *api.SQLServerAvailabilityGroup) error { return apply(g) })
}

// follow until the operator has answered, or has had time to see that it is gone. It may
// have begun in the very moment: then that is said.
func (o *Options) follow(ctx context.Context, r *change.Result) error {
	t := o.Trail(r)
	defer t.Stop()
	t.Done("taken back      %s", o.ID)
	began := o.Factory.Clock().Now()
	look := func(a *api.LastRequestStatus) (bool, error) {
		running := a != nil && a.ID == o.ID && a.Result == api.RequestRunning
		switch {
		case running && a.Kind == string(api.RequestFailover):
			return true, exit.Errorf(exit.Conflict, fmt.Sprintf("follow it: %s status %s -w", o.Factory.Name(), o.Name),
				"the operator had begun the move in that very moment: it goes on")
		case running:
			t.Step("waiting until the operator has seen it")
			return false, nil
		case a != nil && a.ID == o.ID:
			r.Result, r.Reason, r.Message = change.ResultDone, a.Reason, a.Message
			t.Done("answered        %s", answerText(a))
			return true, nil
		case !o.Wait || o.Factory.Clock().Since(began) >= settled:
			r.Result = change.ResultDone
			return true, nil
		}
		t.Step("waiting whether the operator had begun")
		return false, nil
	}
	if o.Instance != nil {
		return o.FollowInstance(ctx, t, func(i *api.SQLServerInstance) (bool, error) { return look(i.Status.LastRequest) })
	}
	return o.Follow(ctx, t, func(g *api.SQLServerAvailabilityGroup) (bool, error) { return look(g.Status.LastRequest) })
}
