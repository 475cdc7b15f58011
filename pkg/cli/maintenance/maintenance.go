// Package maintenance is `kubectl mssql maintenance`: the operator leaves a group or an
// instance alone until a person ends it.
package maintenance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/arguments"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// Options of one call.
type Options struct {
	change.Call
	on bool
}

// New is the command with its sub-commands.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "maintenance",
		Short: "Make the operator leave a group or instance alone, and end that",
		Long: `Make the operator leave a group or an instance alone, and end that.

While it lasts the servers run on and the primary stays primary, and the operator does nothing: no failover,
no repair, no rolling change, and a pod that ends is not made again. Who said so, when and why stands in the
resource and on the first line of its status.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "unknown verb %q: it is on or off", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newOne(f, s, true), newOne(f, s, false))
	return cmd
}

func newOne(f factory.Factory, s *iostreams.IOStreams, on bool) *cobra.Command {
	o := &Options{Call: change.Call{Factory: f, Streams: s, Verb: "maintenance off"}, on: on}
	cmd := &cobra.Command{
		Use:     "off NAME",
		Short:   "Let the operator look after a group or instance again",
		Example: fmt.Sprintf(`  %[1]s maintenance off demo`, f.Name()),
		Args:    arguments.OneName("group or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	if on {
		o.Verb, cmd.Use, cmd.Short = "maintenance on", "on NAME", "Make the operator leave a group or instance alone"
		cmd.Example = fmt.Sprintf(`  %[1]s maintenance on demo --reason "storage is moved, ticket 4711"`, f.Name())
	}
	o.AddTo(cmd, time.Minute)
	return cmd
}

// Run pauses, or goes on.
func (o *Options) Run(ctx context.Context) error {
	return o.Do(ctx, &change.Result{}, o.run)
}

func (o *Options) run(ctx context.Context, r *change.Result) error {
	if err := o.LoadAny(ctx); err != nil {
		return err
	}
	note, paused := api.Paused(o.object().GetAnnotations())
	dry := change.DryRun(o.DryRun)
	if paused == o.on {
		r.Message = "not paused"
		if paused {
			r.Message = change.PausedText(note)
		}
		r.Result = change.ResultAlreadySo
		fmt.Fprintf(o.Streams.ErrOut, "%s %s is %s\n", o.Streams.Mark(iostreams.MarkOK), o.Name, r.Message)
		if dry != change.DryRunNone || o.reached(o.phase()) {
			return nil
		}
		return o.follow(ctx, r)
	}
	if o.on && o.Group != nil {
		if err := o.Busy(); err != nil {
			return err
		}
	}
	entry := api.PauseNote{Reason: o.Reason, Since: o.Now()}
	if o.on && dry != change.DryRunClient {
		entry.By = o.WhoAmI(ctx)
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("write the note of the pause: %w", err)
	}
	p := o.plan(note)
	r.Plan = p.Lines
	if o.on {
		r.Request = entry
	}
	if dry == change.DryRunNone {
		if err := o.Ask(p); err != nil {
			return err
		}
	}
	if dry != change.DryRunClient {
		if err := o.write(ctx, string(text)); err != nil {
			return err
		}
	}
	if dry != change.DryRunNone {
		would := api.AnnotationPaused + "-"
		if o.on {
			would = api.AnnotationPaused + "=true"
		}
		o.ShowDryRun(p, r, would)
		return nil
	}
	return o.follow(ctx, r)
}

func (o *Options) object() client.Object {
	if o.Instance != nil {
		return o.Instance
	}
	return o.Group
}

func (o *Options) phase() api.Phase {
	if o.Instance != nil {
		return o.Instance.Status.Phase
	}
	return o.Group.Status.Phase
}

// reached: the operator has seen it.
func (o *Options) reached(p api.Phase) bool { return (p == api.PhasePaused) == o.on }

// plan is what will happen.
func (o *Options) plan(note api.PauseNote) *change.Plan {
	what := o.Namespace + "/" + o.Name
	if !o.on {
		p := &change.Plan{Title: "End the maintenance of " + what, Level: change.Reversible}
		p.Add("was", "%s", change.PausedText(note))
		p.Add("effect", "the operator looks after it again, and does at once what is due: repairs, rolling changes, a failover")
		return p
	}
	p := &change.Plan{Title: "Maintenance of " + what, Level: change.Reversible, Undo: fmt.Sprintf("%s maintenance off %s", o.Factory.Name(), o.Name)}
	if o.Group != nil {
		p.Add("effect", "the servers run on; the operator does nothing: no failover, no repair, no rolling change")
		p.Add("risk", "when the primary is lost, writes stop until somebody ends the maintenance")
	} else {
		p.Add("effect", "the server runs on; the operator does nothing")
	}
	p.Add("pods", "a pod that ends is not made again")
	p.Add("undo", "%s", p.Undo)
	return p
}

// write sets or removes the annotations.
func (o *Options) write(ctx context.Context, note string) error {
	what := "end the maintenance of"
	if o.on {
		what = "pause"
	}
	apply := func(x client.Object) {
		m := x.GetAnnotations()
		if m == nil {
			m = map[string]string{}
		}
		if o.on {
			m[api.AnnotationPaused], m[api.AnnotationPauseNote] = "true", note
		} else {
			delete(m, api.AnnotationPaused)
			delete(m, api.AnnotationPauseNote)
		}
		x.SetAnnotations(m)
	}
	if o.Instance != nil {
		return o.PatchInstance(ctx, what, func(i *api.SQLServerInstance) error { apply(i); return nil })
	}
	return o.Patch(ctx, what, func(g *api.SQLServerAvailabilityGroup) error { apply(g); return nil })
}

// follow until the status shows that the operator has seen it.
func (o *Options) follow(ctx context.Context, r *change.Result) error {
	t := o.Trail(r)
	defer t.Stop()
	look := func(p api.Phase) (bool, error) {
		switch {
		case !o.reached(p):
			t.Step("waiting until the operator has seen it")
			return false, nil
		case o.on:
			t.Done("paused          the operator leaves %s alone", o.Name)
		default:
			t.Done("ended           the operator looks after %s again", o.Name)
		}
		if r.Result == "" {
			r.Result = change.ResultDone
		}
		return true, nil
	}
	if o.Instance != nil {
		return o.FollowInstance(ctx, t, func(i *api.SQLServerInstance) (bool, error) { return look(i.Status.Phase) })
	}
	return o.Follow(ctx, t, func(g *api.SQLServerAvailabilityGroup) (bool, error) { return look(g.Status.Phase) })
}
