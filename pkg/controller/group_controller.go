package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller/desired"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// GroupReconciler reconciles availability groups.
type GroupReconciler struct {
	*shared
	Engine  Engine
	Metrics *Metrics
	paths   writePaths
}

// phase is one part of a pass. An error does not keep the later ones from running.
type phase struct {
	name string
	run  func(context.Context, *scope) error
	// always: runs while the resource is paused too.
	always bool
}

func (s *shared) phases() []phase {
	return []phase{
		{name: "inputs", run: s.phaseInputs, always: true},
		{name: "secrets", run: s.phaseSecrets},
		{name: "certificates", run: s.phaseCertificates},
		{name: "configuration", run: s.phaseConfiguration},
		{name: "network", run: s.phaseNetwork},
		{name: "storage", run: s.phaseStorage, always: true},
		{name: "workload", run: s.phaseWorkload, always: true},
	}
}

func (s *shared) runPhases(ctx context.Context, sc *scope) error {
	var errs []error
	for _, p := range s.phases() {
		if sc.paused && !p.always {
			continue
		}
		if err := p.run(ctx, sc); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			// A pod must not be made from half of what it needs.
			sc.fatal = true
		}
	}
	return errors.Join(errs...)
}

// Reconcile makes one pass over one group. The availability phase runs whatever
// happened before it: a broken Service must not stop a failover.
func (r *GroupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	began := r.Clock.Now()
	group := &v1alpha1.SQLServerAvailabilityGroup{}
	if err := r.Get(ctx, req.NamespacedName, group); err != nil {
		if apierrors.IsNotFound(err) {
			r.Metrics.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}
	if group.DeletionTimestamp != nil {
		// What belongs to it goes with it; volumes stay.
		r.Engine.Forget(string(group.UID))
		r.paths.forget(group.UID)
		r.Metrics.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	sc := newScope(desired.ForGroup(group), group)
	sc.restart = restartOrder(group)
	sc.restartRefused = refuseRestart(sc.restart, group)
	errs := []error{groupConfig(group, sc), r.runPhases(ctx, sc)}
	report, err := r.availability(ctx, sc, group)
	errs = append(errs, err)
	err = errors.Join(errs...)
	if errs[0] == nil && errs[1] == nil && err == nil && report != nil {
		errs = append(errs, r.rollout(ctx, sc, group, report))
		err = errors.Join(errs...)
	}
	facts := groupFacts{Group: group, Scope: sc, Report: report, Err: err, Now: r.Clock.Now()}
	writeErr := r.writeStatus(ctx, facts)
	r.followPrimary(ctx, facts)
	r.Metrics.observe(facts, r.Clock.Since(began))
	if err = ignoreCanceled(ctx, errors.Join(err, writeErr)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: sc.again}, nil
}

// availability runs the engine where there is something to look at.
func (r *GroupReconciler) availability(ctx context.Context, sc *scope, group *v1alpha1.SQLServerAvailabilityGroup) (*Report, error) {
	if len(sc.pods) == 0 && !group.Status.InitializationComplete {
		return nil, nil
	}
	report, err := r.Engine.Step(ctx, ag.Key{Namespace: group.Namespace, Name: group.Name})
	if err != nil {
		sc.requeue(time.Second)
		return nil, fmt.Errorf("availability: %w", err)
	}
	sc.requeue(max(report.Next, minPass))
	for _, e := range report.Events {
		r.event(group, e.Type, e.Reason, "Reconcile", "%s", shorten(e.Message))
	}
	return &report, nil
}

// minPass bounds how often one group is looked at without an event.
const minPass = 100 * time.Millisecond

// writeStatus writes the status when it says something new, and then tells of it. It
// compares with what the API server has, not with the cache: so that nothing is
// written or told twice.
func (r *GroupReconciler) writeStatus(ctx context.Context, f groupFacts) error {
	next := f.Group.DeepCopy()
	groupStatus(f, &next.Status)
	if equality.Semantic.DeepEqual(f.Group.Status, next.Status) {
		return nil
	}
	fresh := &v1alpha1.SQLServerAvailabilityGroup{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(f.Group), fresh); err != nil {
		return client.IgnoreNotFound(err)
	}
	if fresh.UID != f.Group.UID {
		return nil
	}
	next = fresh.DeepCopy()
	f.Group = withStatus(f.Group, fresh.Status)
	groupStatus(f, &next.Status)
	if equality.Semantic.DeepEqual(fresh.Status, next.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, next, client.MergeFrom(fresh), client.FieldOwner(fieldManager)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("write the status: %w", err)
	}
	r.tell(next, orders(fresh.Status, next.Status, f.Scope.restart))
	r.tell(next, transitions(fresh.Status.Conditions, next.Status.Conditions, fresh.Status.Phase, next.Status.Phase, next.Status.Reason))
	return nil
}

func withStatus(g *v1alpha1.SQLServerAvailabilityGroup, s v1alpha1.SQLServerAvailabilityGroupStatus) *v1alpha1.SQLServerAvailabilityGroup {
	c := g.DeepCopy()
	s.DeepCopyInto(&c.Status)
	return c
}
