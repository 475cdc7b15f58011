// Package failover is `kubectl mssql failover`: it asks the operator to move the primary,
// or, when there is no operator, moves it itself under the group's Lease.
package failover

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/arguments"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Options of one call.
type Options struct {
	change.Call
	To       string
	DataLoss string
	// Direct runs the engine here; OperatorNamespace is where the controllers' lock is looked for.
	Direct            bool
	OperatorNamespace string

	NewID func() (string, error)
	// Engine makes what runs the passes of --direct.
	Engine EngineFunc

	maxLoss int
	engine  Engine
	trail   *change.Trail
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Call: change.Call{Factory: f, Streams: s, Verb: "failover"}, Engine: liveEngine,
		NewID: func() (string, error) { return change.NewID("fo") }}
	cmd := &cobra.Command{
		Use:     "failover NAME",
		Aliases: []string{"switchover"},
		Short:   "Move the primary to another replica, without loss",
		Long: `Move the primary of an availability group to another replica.

The planned form loses nothing: it is refused when the target does not hold every commit at the moment
of the move. With --allow-data-loss the target is forced, and what may be lost is said first.

The operator carries it out, and goes on when this command is interrupted. With --direct this command
carries it out itself, for the day when no operator runs: with the same rules, under the same Lease, and
anybody can finish what it began.`,
		Example: fmt.Sprintf(`  # to the replica that the operator would choose
  %[1]s failover demo

  # to a certain one, without a question
  %[1]s failover demo --to demo-1 --yes

  # who could take over, and which rule refuses the others
  %[1]s failover demo --dry-run

  # no operator runs
  %[1]s failover demo --direct`, f.Name()),
		Args: arguments.OneName("availability group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	o.AddTo(cmd, 2*time.Minute)
	fl := cmd.Flags()
	fl.StringVar(&o.To, "to", "", "replica that becomes primary; the operator's choice when left out")
	fl.StringVar(&o.DataLoss, "allow-data-loss", "", "force the move, and accept that commits are lost: at most this many seconds of them, or \"unlimited\"")
	fl.Lookup("allow-data-loss").NoOptDefVal = "unlimited"
	fl.BoolVar(&o.Direct, "direct", false, "carry it out here, when no operator runs")
	fl.StringVar(&o.OperatorNamespace, "operator-namespace", manifests.DefaultNamespace, "with --direct: where the operator's lock is looked for")
	return cmd
}

// Run checks, asks, requests and waits.
func (o *Options) Run(ctx context.Context) error {
	return o.Do(ctx, &change.Result{Target: o.To}, o.run)
}

func (o *Options) run(ctx context.Context, r *change.Result) error {
	var err error
	if o.maxLoss, err = maxLoss(o.DataLoss); err != nil {
		return err
	}
	if o.maxLoss != 0 && o.To == "" {
		return exit.Errorf(exit.Usage, "name it with --to", "a forced failover needs a target")
	}
	if err := o.Load(ctx); err != nil {
		return err
	}
	if o.To != "" {
		if err := o.Replica(o.To); err != nil {
			return err
		}
	}
	if err := o.Held(); err != nil {
		return err
	}
	if o.Direct {
		if err := o.lookMyself(ctx); err != nil {
			return err
		}
		defer o.engine.Close()
	}
	g := o.Group
	r.From = g.Status.PrimaryReplica
	if change.DryRun(o.DryRun) != change.DryRunNone {
		return o.dryRun(ctx, r)
	}
	// A primary whose configuration cannot be committed may be promoted onto itself.
	stuck := o.maxLoss != 0 && meta.IsStatusConditionTrue(g.Status.Conditions, api.ConditionConfigurationCommitPending)
	if o.To != "" && g.Status.PrimaryReplica == o.To && g.Status.TargetPrimary == "" && !stuck {
		fmt.Fprintf(o.Streams.ErrOut, "%s %s is primary already\n", o.Streams.Mark(iostreams.MarkOK), o.To)
		r.To, r.Result, r.Message = o.To, change.ResultAlreadySo, "already primary"
		return nil
	}
	pending, err := o.Attach(o.same)
	if err != nil {
		return err
	}
	if pending == nil && (!o.Direct || o.otherMove()) {
		if err := o.Busy(); err != nil {
			return err
		}
	}
	if o.Direct {
		return o.direct(ctx, r, pending)
	}
	if pending == nil {
		if pending, err = o.order(ctx, r); err != nil {
			return err
		}
	}
	r.RequestID, r.Request = pending.ID, pending
	return o.follow(ctx, r, pending.ID)
}

// same: the pending order is the one that this call would place.
func (o *Options) same(p *api.Request) bool {
	return p.Kind == api.RequestFailover && p.AllowDataLoss == (o.maxLoss != 0) && (o.To == "" || p.Target == o.To)
}

// otherMove: the primary is on its way to another replica than the one asked for.
func (o *Options) otherMove() bool {
	op := change.Operation(o.Group)
	return op != nil && o.To != "" && op.Target != o.To
}

// maxLoss reads --allow-data-loss: 0 is planned, −1 unlimited.
func maxLoss(text string) (int, error) {
	switch text {
	case "":
		return 0, nil
	case "unlimited":
		return -1, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < time.Second {
		return 0, exit.Errorf(exit.Usage, "write it as --allow-data-loss=60, or --allow-data-loss=unlimited", "%q is no number of seconds", text)
	}
	return int(d / time.Second), nil
}

// request is the order of this call.
func (o *Options) request(ctx context.Context) (api.Request, error) {
	id, err := o.NewID()
	if err != nil {
		return api.Request{}, err
	}
	q := api.Request{ID: id, Kind: api.RequestFailover, Target: o.To, AllowDataLoss: o.maxLoss != 0, MaxLossSeconds: max(o.maxLoss, 0)}
	return o.Seen(ctx, q), nil
}

// order shows the plan, asks, and places the order.
func (o *Options) order(ctx context.Context, r *change.Result) (*api.Request, error) {
	p := o.plan()
	r.Plan = p.Lines
	if err := o.Ask(p); err != nil {
		return nil, err
	}
	q, err := o.request(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.Place(ctx, q); err != nil {
		return nil, err
	}
	return &q, nil
}

// follow prints each step once, until the operator has answered.
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
		t.Operation(g)
		switch {
		case a.Result != api.RequestRunning:
			return true, o.finish(g, *a, r, t)
		case !o.Wait:
			t.Done("accepted; the operator goes on")
			r.To, r.Result = a.Target, a.Result
			return true, nil
		}
		return false, nil
	})
}

// finish tells the answer.
func (o *Options) finish(g *api.SQLServerAvailabilityGroup, a api.LastRequestStatus, r *change.Result, t *change.Trail) error {
	r.To, r.Result, r.Reason, r.Message = a.Target, a.Result, a.Reason, a.Message
	took := ""
	if i := slices.IndexFunc(g.Status.History, func(h api.RoleChange) bool { return h.RequestID == a.ID }); i >= 0 {
		h := g.Status.History[i]
		r.From, r.To = h.From, h.To
		for _, s := range h.Timeline {
			t.Done("%s", s.What)
		}
		if !h.CompletedAt.IsZero() {
			r.WritesDown = h.CompletedAt.Sub(h.StartedAt.Time).Seconds()
			took = fmt.Sprintf(", the move took %.0f s", r.WritesDown)
		}
	}
	switch a.Result {
	case api.RequestDone:
		if r.To == "" {
			r.To = g.Status.PrimaryReplica
		}
		t.Done("switched over   %s is primary%s", r.To, took)
		return nil
	case api.RequestRefused:
		return exit.Errorf(exit.Refused, fmt.Sprintf("%s failover %s --dry-run shows every replica", o.Factory.Name(), o.Name), "refused: %s", a.Message)
	}
	return exit.Errorf(exit.Unexpected, fmt.Sprintf("%s status %s", o.Factory.Name(), o.Name), "the move did not succeed: %s", a.Message)
}
