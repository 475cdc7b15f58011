// Package scale is `kubectl mssql scale`: more replicas of an availability group.
package scale

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/arguments"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// maxReplicas of a group (FG 8): the primary and eight secondaries.
const maxReplicas = 9

// Options of one call.
type Options struct {
	change.Call
	Replicas int
	Async    bool
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Call: change.Call{Factory: f, Streams: s, Verb: "scale"}}
	cmd := &cobra.Command{
		Use:   "scale NAME",
		Short: "Add replicas to an availability group",
		Long: `Add replicas to an availability group.

Each new one gets a pod and a volume of its own, joins the group and is seeded from the primary while clients
write on. New replicas are like the last one that holds data, or asynchronous with --async. Replicas cannot be
removed yet.`,
		Example: fmt.Sprintf(`  %[1]s scale demo --replicas 5

  # two more, far away
  %[1]s scale demo --replicas 5 --async`, f.Name()),
		Args: arguments.OneName("availability group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	o.AddTo(cmd, 0)
	cmd.Flags().IntVar(&o.Replicas, "replicas", 0, "number of replicas that the group shall have, a witness among them")
	cmd.Flags().BoolVar(&o.Async, "async", false, "the new ones commit asynchronously and take over by hand only")
	return cmd
}

// Run checks, asks, patches the spec and follows.
func (o *Options) Run(ctx context.Context) error {
	return o.Do(ctx, &change.Result{}, o.run)
}

func (o *Options) run(ctx context.Context, r *change.Result) error {
	if o.Replicas < 1 || o.Replicas > maxReplicas {
		return exit.Errorf(exit.Usage, fmt.Sprintf("use --replicas with 1 to %d", maxReplicas), "%d replicas cannot be", o.Replicas)
	}
	if err := o.Load(ctx); err != nil {
		return err
	}
	if err := o.Held(); err != nil {
		return err
	}
	g := o.Group
	have := len(g.Spec.Replicas)
	switch {
	case o.Replicas < have:
		return exit.Errorf(exit.Refused, fmt.Sprintf("keep one out of roles and routing with: %s fence on %s %s", o.Factory.Name(), o.Name, g.ReplicaName(have-1)),
			"refused: %s has %d replicas, and none can be removed yet", o.Name, have)
	case o.Replicas == have:
		return o.already(ctx, r)
	}
	p := o.plan()
	r.Plan = p.Lines
	dry := change.DryRun(o.DryRun)
	if dry == change.DryRunNone {
		if err := o.Ask(p); err != nil {
			return err
		}
	}
	r.Request = map[string]any{"replicas": o.Replicas, "added": o.added(g)}
	if dry != change.DryRunClient {
		if err := o.Patch(ctx, "add replicas to", func(g *api.SQLServerAvailabilityGroup) error {
			g.Spec.Replicas = append(g.Spec.Replicas, o.added(g)...)
			return nil
		}); err != nil {
			return err
		}
	}
	if dry != change.DryRunNone {
		o.ShowDryRun(p, r, fmt.Sprintf("spec.replicas: %d more", o.Replicas-have))
		return nil
	}
	return o.follow(ctx, r)
}

// already: the spec has so many, and they are there, or on their way.
func (o *Options) already(ctx context.Context, r *change.Result) error {
	r.Result, r.Message = change.ResultAlreadySo, fmt.Sprintf("%s has %d replicas already", o.Name, o.Replicas)
	fmt.Fprintf(o.Streams.ErrOut, "%s %s\n", o.Streams.Mark(iostreams.MarkOK), r.Message)
	if change.DryRun(o.DryRun) != change.DryRunNone || o.missing(o.Group) == nil {
		return nil
	}
	return o.follow(ctx, r)
}

// added are the new ones: like the last one with data.
func (o *Options) added(g *api.SQLServerAvailabilityGroup) []api.AGReplicaSpec {
	like := api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}
	for _, x := range g.Spec.Replicas {
		if x.AvailabilityMode != api.ConfigurationOnly {
			like = x
		}
	}
	like.Name = ""
	if o.Async {
		like.AvailabilityMode, like.FailoverMode = api.AsynchronousCommit, api.FailoverManual
	}
	var out []api.AGReplicaSpec
	for range o.Replicas - len(g.Spec.Replicas) {
		out = append(out, like)
	}
	return out
}

// names of the replicas beyond those that were there.
func (o *Options) names(g *api.SQLServerAvailabilityGroup, from int) []string {
	var out []string
	for i := from; i < o.Replicas; i++ {
		out = append(out, g.ReplicaName(i))
	}
	return out
}

func (o *Options) plan() *change.Plan {
	g := o.Group
	have := len(g.Spec.Replicas)
	p := &change.Plan{Title: fmt.Sprintf("Scale %s/%s from %d to %d replicas", g.Namespace, g.Name, have, o.Replicas), Level: change.Outage, Word: g.Name}
	mode := "synchronous"
	if o.added(g)[0].AvailabilityMode == api.AsynchronousCommit {
		mode = "asynchronous"
	}
	size := g.Spec.Storage.DataVolumeSize
	volume := "a volume"
	if !size.IsZero() {
		volume = "a volume of " + size.String()
	}
	p.Add("new", "%s: %s, each with a pod and %s", strings.Join(o.names(g, have), ", "), mode, volume)
	p.Add("effect", "every database is seeded to them from the primary; clients write on, and log is kept until they have caught up")
	if mode == "synchronous" {
		p.Add("commits", "they take part in the commit rule, and may be waited for")
	}
	p.Add("undo", "none: replicas cannot be removed yet")
	return p
}

// missing is a replica that is not in step, or nil.
func (o *Options) missing(g *api.SQLServerAvailabilityGroup) *string {
	for i := range g.Spec.Replicas {
		if name := g.ReplicaName(i); !change.InStep(change.StatusOf(g, name)) {
			return &name
		}
	}
	return nil
}

// follow until all of them are in step.
func (o *Options) follow(ctx context.Context, r *change.Result) error {
	t := o.Trail(r)
	defer t.Stop()
	t.Done("requested       %d replicas", o.Replicas)
	return o.Follow(ctx, t, func(g *api.SQLServerAvailabilityGroup) (bool, error) {
		if g.Status.ObservedGeneration < g.Generation {
			t.Step("waiting until the operator has accepted it")
			return false, nil
		}
		if !o.Wait {
			t.Done("accepted; the operator goes on")
			r.Result = change.ResultRunning
			return true, nil
		}
		name := o.missing(g)
		if name == nil {
			t.Done("scaled          all %d replicas are in step", len(g.Spec.Replicas))
			if r.Result == "" {
				r.Result = change.ResultDone
			}
			return true, nil
		}
		if s := change.StatusOf(g, *name); s != nil && s.State != "" {
			t.Step("%s is %s", *name, s.State)
		} else {
			t.Step("%s is being made", *name)
		}
		return false, nil
	})
}
