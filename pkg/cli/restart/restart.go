// Package restart is `kubectl mssql restart`: one server, or all of a group in rolling order.
package restart

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// Options of one call.
type Options struct {
	change.Call
	// Target replica; empty for all of them.
	Target string
	NewID  func() (string, error)
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Call: change.Call{Factory: f, Streams: s, Verb: "restart"}, NewID: func() (string, error) { return change.NewID("re") }}
	cmd := &cobra.Command{
		Use:   "restart NAME [REPLICA]",
		Short: "Restart one server, or all of a group one after the other",
		Long: `Restart one server, or all servers of an availability group one after the other, or a standalone instance.

Secondaries come first, each is waited for until it is in step again; then the primary moves, once, and the
old one is restarted last. The order stands in the group: the operator goes on when this command, or the
operator itself, is interrupted.`,
		Example: fmt.Sprintf(`  # all of them, one switchover
  %[1]s restart demo --reason "new kernel"

  # one
  %[1]s restart demo demo-2`, f.Name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want the name of a group and perhaps of one replica, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if len(args) == 2 {
				o.Target = args[1]
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddTo(cmd, 15*time.Minute)
	return cmd
}

// Run checks, asks, orders and follows.
func (o *Options) Run(ctx context.Context) error {
	return o.Do(ctx, &change.Result{Target: o.Target}, o.run)
}

func (o *Options) run(ctx context.Context, r *change.Result) error {
	if err := o.LoadAny(ctx); err != nil {
		return err
	}
	if err := o.Held(); err != nil {
		return err
	}
	if o.Instance != nil {
		return o.instance(ctx, r)
	}
	if o.Target != "" {
		if err := o.Replica(o.Target); err != nil {
			return err
		}
	}
	r.From, r.Order = o.Group.Status.PrimaryReplica, o.order()
	pending, err := o.Attach(func(p *api.Request) bool { return p.Kind == api.RequestRestart && p.Target == o.Target })
	if err != nil {
		return err
	}
	if pending == nil {
		p, err := o.judge()
		if err != nil {
			return err
		}
		if pending, err = o.place(ctx, r, p); err != nil || pending == nil {
			return err
		}
	}
	r.RequestID, r.Request = pending.ID, pending
	return o.follow(ctx, r, pending.ID)
}

// order of the replicas that are restarted.
func (o *Options) order() []string {
	if o.Target != "" {
		return []string{o.Target}
	}
	return change.Order(o.Group)
}

// place asks and orders; nil without an error after a dry run.
func (o *Options) place(ctx context.Context, r *change.Result, p *change.Plan) (*api.Request, error) {
	r.Plan = p.Lines
	id, err := o.NewID()
	if err != nil {
		return nil, err
	}
	dry := change.DryRun(o.DryRun)
	if dry == change.DryRunNone {
		if err := o.Ask(p); err != nil {
			return nil, err
		}
	}
	q := o.Seen(ctx, api.Request{ID: id, Kind: api.RequestRestart, Target: o.Target})
	q.ExpectedSequence = 0 // the configuration may change while replicas come and go
	if dry != change.DryRunClient {
		if err := o.Place(ctx, q); err != nil {
			return nil, err
		}
	}
	if dry != change.DryRunNone {
		r.Request = q
		o.ShowDryRun(p, r, q.String())
		return nil, nil
	}
	return &q, nil
}

// judge is the safety gate and the plan.
func (o *Options) judge() (*change.Plan, error) {
	g := o.Group
	if err := o.refuse(); err != nil {
		return nil, err
	}
	what, level := o.Target, change.Reversible
	if what == "" {
		what = "all replicas, one after the other"
	}
	p := &change.Plan{Title: fmt.Sprintf("Restart %s/%s: %s", g.Namespace, g.Name, what), Level: level, Word: g.Name}
	if o.Target == "" && len(o.order()) > 1 {
		p.Add("order", "%s", change.OrderText(g))
	}
	moves := o.Target == "" || o.Target == g.Status.PrimaryReplica
	switch {
	case moves && change.DataReplicas(g) == 1:
		p.Add("effect", "writes stop until its server is up again: there is no other replica")
		p.Raise(change.Outage)
	case moves:
		p.Add("effect", "%s", change.MoveEffect(g))
		p.Raise(change.Outage)
	default:
		p.Add("effect", "its readers are disconnected; writes go on")
	}
	stalled := map[string]bool{}
	for _, name := range o.order() {
		w := change.Judge(g, name)
		if text := w.Describe(); text != "" && !w.Primary && !stalled[text] {
			stalled[text] = true
			p.Add("writes", "while %s is away: %s", name, text)
			p.Raise(change.Outage)
		}
	}
	p.Add("after", "each is waited for until it is in step again; the operator goes on without this command")
	return p, nil
}

// refuse what could not be carried out, or would stop writes for want of a successor.
func (o *Options) refuse() error {
	g := o.Group
	status := fmt.Sprintf("%s status %s", o.Factory.Name(), o.Name)
	if !g.Status.InitializationComplete {
		return exit.Errorf(exit.Refused, status, "%s was not made yet", o.Name)
	}
	for _, s := range g.Status.ReplicaStatuses {
		if s.Fenced && (o.Target == "" || o.Target == s.Name) {
			return exit.Errorf(exit.Refused, fmt.Sprintf("%s fence off %s %s", o.Factory.Name(), o.Name, s.Name), "refused: %s is fenced: its server is kept stopped", s.Name)
		}
	}
	if err := o.Busy(); err != nil {
		return err
	}
	if c := change.Condition(g, api.ConditionRollingChange); o.Target == "" && c.Status == "True" {
		return exit.Errorf(exit.Conflict, "follow it with "+status+" -w", "a rolling change is under way already: %s", c.Message)
	}
	p := g.Status.PrimaryReplica
	if o.Target == "" && p == "" {
		return exit.Errorf(exit.Refused, status+"; one replica can be restarted by name", "refused: nobody is primary now: the others cannot be restarted in turn")
	}
	if (o.Target == "" || o.Target == p) && p != "" && change.DataReplicas(g) > 1 && len(change.Judge(g, p).Successors) == 0 {
		return exit.Errorf(exit.Refused, fmt.Sprintf("%s failover %s --dry-run shows which rule refuses each replica", o.Factory.Name(), o.Name),
			"refused: no replica could take over from %s without loss: %s", p, refusals(g))
	}
	return nil
}

func refusals(g *api.SQLServerAvailabilityGroup) string {
	var out []string
	for _, s := range g.Status.ReplicaStatuses {
		if s.Name != g.Status.PrimaryReplica && s.FailoverRefusal != "" {
			out = append(out, s.Name+": "+s.FailoverRefusal)
		}
	}
	return strings.Join(out, "; ")
}

// follow until the operator says that all are restarted, and all of them are in step.
func (o *Options) follow(ctx context.Context, r *change.Result, id string) error {
	t := o.Trail(r)
	defer t.Stop()
	t.Done("requested       %s", id)
	return o.Follow(ctx, t, func(g *api.SQLServerAvailabilityGroup) (bool, error) {
		a := change.Answer(g, id)
		if a == nil {
			t.Step("waiting until the operator has accepted it")
			return false, nil
		}
		r.Result, r.Reason, r.Message = a.Result, a.Reason, a.Message
		if a.Result == api.RequestRefused || a.Result == api.RequestFailed {
			return true, exit.Errorf(exit.Refused, fmt.Sprintf("%s status %s", o.Factory.Name(), o.Name), "refused: %s", a.Message)
		}
		if !o.Wait {
			t.Done("accepted; the operator goes on")
			return true, nil
		}
		r.To = change.Rolling(t, g, r.Order, r.From)
		if a.Result == api.RequestDone && o.back(g) {
			t.Done("restarted       %s", strings.Join(r.Order, ", "))
			return true, nil
		}
		return false, nil
	})
}

// back: what was restarted is in step again.
func (o *Options) back(g *api.SQLServerAvailabilityGroup) bool {
	for _, name := range o.order() {
		if !change.InStep(change.StatusOf(g, name)) {
			return false
		}
	}
	return o.Target != "" || change.Condition(g, api.ConditionRollingChange).Status == "False"
}
