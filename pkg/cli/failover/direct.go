package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/tunnel"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/live"
)

// Engine runs passes over one group; *live.System is the real one.
type Engine interface {
	Look(ctx context.Context, key ag.Key, clk clock.Clock) (agops.Report, error)
	Drive(ctx context.Context, key ag.Key, clk clock.Clock, done func(agops.Report) bool) (agops.Report, error)
	// Release gives an operation that was begun here to whoever looks next.
	Release(ctx context.Context, key ag.Key) (bool, error)
	Close()
}

// EngineFunc makes an engine that acts under this identity and tells of all that it tries.
type EngineFunc func(config *rest.Config, c client.Client, clk clock.Clock, identity string, progress func(agops.Done)) Engine

// liveEngine reaches servers and instance managers through the API server.
func liveEngine(config *rest.Config, c client.Client, clk clock.Clock, identity string, progress func(agops.Done)) Engine {
	return live.New(live.Options{
		Client: c, Reader: c, Clock: clk, Identity: identity, Progress: progress,
		Dial: tunnel.Dialer(config),
	})
}

const (
	// lockDuration is how long it holds when the Lease does not say so.
	lockDuration = 15 * time.Second
	// lockMargin is waited longer, so that a slow renewal is not taken for none.
	lockMargin = 3 * time.Second
	// lookLimit is the deadline of the first look at everything.
	lookLimit = 30 * time.Second
	// settleLimit is how long the old primary is waited for once the move itself is done.
	settleLimit = 45 * time.Second
	// releaseLimit is the deadline of giving away what was begun.
	releaseLimit = 5 * time.Second
)

func (o *Options) key() ag.Key { return ag.Key{Namespace: o.Namespace, Name: o.Name} }

// lookMyself replaces what the status says, which nobody keeps up to date, by what is seen now.
func (o *Options) lookMyself(ctx context.Context) error {
	config, err := o.Factory.RESTConfig()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	who := o.WhoAmI(ctx)
	if who == "" {
		who = "somebody"
	}
	o.engine = o.Engine(config, o.Client, o.Factory.Clock(), "direct/"+who+"@"+host, o.told)
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	report, err := o.engine.Look(ctx, o.key(), o.Factory.Clock())
	if err != nil {
		o.engine.Close()
		return fmt.Errorf("look at %s: %w", o.Name, err)
	}
	if !report.Memory.Initialized {
		o.engine.Close()
		return exit.Errorf(exit.Refused, "", "%s was not made yet: there is nothing to move", o.Name)
	}
	overlay(o.Group, report)
	return nil
}

// overlay writes what was seen over the copy of the status that this call decides by.
func overlay(g *api.SQLServerAvailabilityGroup, r agops.Report) {
	s := &g.Status
	s.PrimaryReplica, s.TargetPrimary = "", ""
	if s.Authority == nil {
		s.Authority = &api.AuthorityStatus{}
	}
	s.Authority.Operation = nil
	if op := r.Authority.Operation; op != nil {
		s.TargetPrimary = op.Target
		s.Authority.Operation = &api.OperationStatus{ID: op.ID, Kind: string(op.Kind), Phase: string(op.Phase), From: op.From, Target: op.Target}
	}
	s.ReplicaStatuses = nil
	for _, x := range r.Snapshot.Replicas {
		out := api.ReplicaStatus{Name: x.Name, Role: string(x.Local.Role), SequenceNumber: x.Local.Sequence, Fenced: x.Fenced}
		if x.Local.Role == ag.RolePrimary && (x.Name == r.Authority.Holder.Replica || !r.Authority.Exists) {
			s.PrimaryReplica = x.Name
		}
		for _, d := range r.Decision.Readiness {
			if d.Replica == x.Name {
				out.FailoverReady, out.FailoverRefusal = d.Ready, d.Message
				if d.Rule != "" && !d.Ready {
					out.FailoverRefusal = string(d.Rule) + ": " + d.Message
				}
			}
		}
		s.ReplicaStatuses = append(s.ReplicaStatuses, out)
	}
}

// told prints what was tried, good or bad.
func (o *Options) told(d agops.Done) {
	if o.trail == nil {
		return
	}
	if d.Err != nil {
		o.trail.Warn("%s: %v", d.What, d.Err)
		return
	}
	o.trail.Done("%s", d.What)
}

// direct carries the order out in the foreground. The order stands in the group as usual:
// an operator that comes back meanwhile finishes it, and whoever loses a swap on the
// Lease stops and looks again.
func (o *Options) direct(ctx context.Context, r *change.Result, pending *api.Request) error {
	o.trail = o.Trail(r)
	defer o.trail.Stop()
	if err := o.noController(ctx); err != nil {
		return err
	}
	o.trail.Stop()
	if pending == nil && change.Operation(o.Group) != nil {
		return o.finishOperation(ctx, r)
	}
	if pending == nil {
		var err error
		if pending, err = o.order(ctx, r); err != nil {
			return err
		}
	}
	r.RequestID, r.Request = pending.ID, pending
	o.trail.Done("requested       %s, and carried out here", pending.ID)
	drive, cancel := o.limited(ctx)
	defer cancel()
	clk := o.Factory.Clock()
	var answered time.Time
	report, err := o.engine.Drive(drive, o.key(), clk, func(p agops.Report) bool {
		last := p.Memory.LastResult
		if last == nil || last.ID != pending.ID || last.Result == api.RequestRunning {
			o.show(p)
			return false
		}
		if last.Result != api.RequestDone {
			return true
		}
		if answered.IsZero() {
			answered = clk.Now()
			o.trail.Step("the old primary comes back as a secondary")
		}
		return settled(p) || clk.Since(answered) > settleLimit
	})
	last := report.Memory.LastResult
	if last == nil || last.ID != pending.ID || last.Result == api.RequestRunning {
		return o.abandoned(drive, r, err)
	}
	g := o.Group.DeepCopy()
	g.Status.History = nil
	for _, h := range report.Memory.History {
		if h.RequestID == pending.ID {
			r.From, r.To = h.From, h.To
			r.WritesDown = h.CompletedAt.Sub(h.StartedAt).Seconds()
		}
	}
	return o.finish(g, api.LastRequestStatus{ID: last.ID, Target: last.Target, Result: last.Result, Reason: last.Reason, Message: last.Message}, r, o.trail)
}

// finishOperation drives what somebody else began, and can no longer finish, to its end.
// Its deadline is waited for first, as for every operation of another owner.
func (o *Options) finishOperation(ctx context.Context, r *change.Result) error {
	op := change.Operation(o.Group)
	o.trail.Done("under way       %s from %s to %s: it is finished here", op.Kind, orDash(op.From), orDash(op.Target))
	drive, cancel := o.limited(ctx)
	defer cancel()
	report, err := o.engine.Drive(drive, o.key(), o.Factory.Clock(), func(p agops.Report) bool {
		o.show(p)
		return settled(p)
	})
	if report.Authority.Operation != nil || err != nil {
		return o.abandoned(drive, r, err)
	}
	r.To, r.Result = report.Authority.Holder.Replica, change.ResultDone
	o.trail.Done("finished        %s is primary", orDash(r.To))
	if o.To != "" && r.To != o.To {
		return exit.Errorf(exit.Unexpected, fmt.Sprintf("%s failover %s --direct --to %s", o.Factory.Name(), o.Name, o.To), "the primary is %s and not %s", orDash(r.To), o.To)
	}
	return nil
}

// limited by --timeout.
func (o *Options) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, o.Timeout, errDirectTimeout)
}

// show what a pass found.
func (o *Options) show(p agops.Report) {
	if op := p.Authority.Operation; op != nil {
		o.trail.Step("%s: %s -> %s", op.Phase, orDash(op.From), orDash(op.Target))
	} else {
		o.trail.Step("looking")
	}
	for _, b := range p.Decision.Blocks {
		o.trail.Step("blocked: %s %s", b.Rule, b.Message)
	}
}

var errDirectTimeout = errors.New("time-out")

// settled: the record is at rest and every server that answers has its role.
func settled(p agops.Report) bool {
	if p.Authority.Operation != nil || len(p.Outcomes) > 0 {
		return false
	}
	for _, x := range p.Snapshot.Replicas {
		if x.Local.Reach == ag.ReachOK && x.Local.Role != ag.RolePrimary && x.Local.Role != ag.RoleSecondary {
			return false
		}
	}
	return true
}

// abandoned: nobody goes on with what was begun, until somebody does.
func (o *Options) abandoned(ctx context.Context, r *change.Result, err error) error {
	hint := fmt.Sprintf("what was begun stands in the group's Lease: the same command again, or an operator, finishes it: %s failover %s --direct", o.Factory.Name(), o.Name)
	r.Result = change.ResultRunning
	// Its own context has ended: what is given away here must be given all the same.
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	if _, err := o.engine.Release(release, o.key()); err != nil {
		o.trail.Warn("the operation could not be given away (%v): whoever finishes it waits for its deadline first", err)
	}
	switch {
	case errors.Is(context.Cause(ctx), errDirectTimeout):
		return exit.Errorf(exit.Timeout, hint, "not finished after %s, and nobody goes on with it (%v)", o.Timeout, err)
	case ctx.Err() != nil:
		return exit.Errorf(exit.Interrupted, hint, "stopped in the middle, and nobody goes on with it")
	}
	return exit.With(exit.Unexpected, hint, fmt.Errorf("move the primary of %s: %w", o.Name, err))
}

// noController refuses while a controller acts: its lock is renewed while it is watched.
// No two machines' clocks are compared. When the lock may not be read this goes on: the
// group's own Lease keeps two from acting against each other.
func (o *Options) noController(ctx context.Context) error {
	var first coordinationv1.Lease
	key := client.ObjectKey{Namespace: o.OperatorNamespace, Name: manifests.Name}
	err := o.Client.Get(ctx, key, &first)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		o.trail.Warn("it is not known whether an operator runs: you may not read Lease %s in namespace %s", manifests.Name, o.OperatorNamespace)
		return nil
	case err != nil:
		return fmt.Errorf("look for an operator: %w", err)
	}
	if first.Spec.HolderIdentity == nil || *first.Spec.HolderIdentity == "" {
		return nil
	}
	wait := lockDuration
	if s := first.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		wait = time.Duration(*s) * time.Second
	}
	clk := o.Factory.Clock()
	end := clk.Now().Add(wait + lockMargin)
	ticker := clk.NewTicker(time.Second)
	defer ticker.Stop()
	o.trail.Step("watching for %s whether the operator %s still acts", wait+lockMargin, *first.Spec.HolderIdentity)
	for clk.Now().Before(end) {
		select {
		case <-ctx.Done():
			return exit.Errorf(exit.Interrupted, "", "stopped; nothing was changed")
		case <-ticker.C():
		}
		var now coordinationv1.Lease
		if err := o.Client.Get(ctx, key, &now); err != nil {
			continue // the API server is asked again before anything is done
		}
		if now.Spec.HolderIdentity == nil || *now.Spec.HolderIdentity == "" {
			return nil
		}
		if now.ResourceVersion != first.ResourceVersion {
			return exit.Errorf(exit.Refused, fmt.Sprintf("leave out --direct: %s failover %s", o.Factory.Name(), o.Name),
				"the operator %s acts: it carries out the move itself", *now.Spec.HolderIdentity)
		}
	}
	return nil
}
