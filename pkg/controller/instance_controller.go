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

// InstanceReconciler reconciles standalone instances.
type InstanceReconciler struct {
	*shared
	// Version asks the server in a pod for its product version.
	Version versionFunc
}

// instanceAgain is the period of passes over an instance at rest.
const instanceAgain = 5 * time.Minute

// Reconcile makes one pass over one instance.
func (r *InstanceReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	instance := &v1alpha1.SQLServerInstance{}
	if err := r.Get(ctx, req.NamespacedName, instance); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if instance.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	sc := newScope(desired.ForInstance(instance), instance)
	sc.requeue(instanceAgain)
	sc.restart = instanceRestart(instance)
	err := errors.Join(instanceConfig(instance, sc), r.runPhases(ctx, sc))
	if err == nil {
		err = r.replaceOutdated(ctx, sc)
	}
	facts := instanceFacts{Instance: instance, Scope: sc, Err: err, Now: r.Clock.Now()}
	facts.Version = r.version(ctx, sc, instance)
	writeErr := r.writeStatus(ctx, facts)
	if err = ignoreCanceled(ctx, errors.Join(err, writeErr)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: sc.again}, nil
}

// replaceOutdated ends the pod of an instance whose settings changed: there is
// nobody to hand over to.
func (r *InstanceReconciler) replaceOutdated(ctx context.Context, sc *scope) error {
	if sc.paused || sc.fatal {
		return nil
	}
	for _, name := range sc.outdated {
		if pod := sc.pods[name]; pod != nil && pod.DeletionTimestamp == nil {
			sc.next = name
			return r.removePod(ctx, sc, pod, replaceReason(sc, name))
		}
	}
	return nil
}

// version is asked for once the pod is ready and when it is not known for this image.
func (r *InstanceReconciler) version(ctx context.Context, sc *scope, i *v1alpha1.SQLServerInstance) string {
	pod := sc.pods[i.ReplicaName()]
	if r.Version == nil || !podReady(pod) || pod.Status.PodIP == "" {
		return i.Status.Version
	}
	if i.Status.Version != "" && i.Status.Phase == v1alpha1.PhaseRunning && i.Status.ObservedGeneration == i.Generation {
		return i.Status.Version
	}
	address := ag.Pod{Exists: true, UID: string(pod.UID), IP: pod.Status.PodIP, Port: sc.server.Port()}
	v, err := r.Version(ctx, ag.Key{Namespace: i.Namespace, Name: i.Name}, pod.Name, address)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("the server did not tell its version", "error", err.Error())
		return i.Status.Version
	}
	return v
}

// instanceFacts is all that the status of an instance is made from.
type instanceFacts struct {
	Instance *v1alpha1.SQLServerInstance
	Scope    *scope
	Version  string
	Err      error
	Now      time.Time
}

// instanceStatus writes what was seen into the status; it is pure.
func instanceStatus(f instanceFacts, s *v1alpha1.SQLServerInstanceStatus) {
	s.ObservedGeneration = f.Instance.Generation
	s.Version = f.Version
	port := f.Instance.Spec.Service.Port
	if port == 0 {
		port = v1alpha1.PortTDS
	}
	s.Endpoint = fmt.Sprintf("%s.%s.svc:%d", f.Instance.ServiceName(), f.Instance.Namespace, port)
	configured := configured(f.Scope, f.Err)
	up := f.Scope.ready() > 0
	available := no(v1alpha1.ReasonStarting, notReadyText(f))
	if up {
		available = yes(v1alpha1.ReasonAsExpected, "the server accepts logins; clients reach it at "+s.Endpoint)
	} else if configured.status != "True" {
		available = no(configured.reason, configured.message)
	}
	setConditions(&s.Conditions, f.Instance.Generation, f.Now, map[string]verdict{
		v1alpha1.ConditionConfigured:      configured,
		v1alpha1.ConditionAvailable:       available,
		v1alpha1.ConditionStorageResizing: resizing(f.Scope),
		v1alpha1.ConditionRollingChange:   instanceRolling(f),
	})
	s.Volume = volumeStatus(f.Scope, f.Instance.ReplicaName())
	answerInstanceRestart(f, s)
	switch {
	case f.Scope.paused:
		s.Phase, s.Reason = v1alpha1.PhasePaused, "the annotation "+v1alpha1.AnnotationPaused+" stops every change; the server keeps running"
	case up:
		s.Phase, s.Reason = v1alpha1.PhaseRunning, available.message
	case configured.status == "True":
		s.Phase, s.Reason = v1alpha1.PhaseStarting, available.message
	case configured.reason == v1alpha1.ReasonServerDoesNotStart:
		s.Phase, s.Reason = v1alpha1.PhaseFailed, configured.message
	default:
		s.Phase, s.Reason = v1alpha1.PhasePending, configured.message
	}
}

// notReadyText says why the server is not up, as far as its pod tells.
func notReadyText(f instanceFacts) string {
	pod := f.Scope.pods[f.Instance.ReplicaName()]
	switch {
	case pod == nil:
		return "the server has no pod yet"
	case pod.DeletionTimestamp != nil:
		return "the server's pod is ending"
	case pod.Spec.NodeName == "":
		return "the server's pod waits for a node"
	case podRuns(pod):
		return "the server does not accept logins, or its node " + pod.Spec.NodeName + " does not report"
	}
	return "the server does not accept logins yet"
}

func (r *InstanceReconciler) writeStatus(ctx context.Context, f instanceFacts) error {
	next := f.Instance.DeepCopy()
	instanceStatus(f, &next.Status)
	if equality.Semantic.DeepEqual(f.Instance.Status, next.Status) {
		return nil
	}
	fresh := &v1alpha1.SQLServerInstance{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(f.Instance), fresh); err != nil {
		return client.IgnoreNotFound(err)
	}
	if fresh.UID != f.Instance.UID {
		return nil
	}
	next = fresh.DeepCopy()
	instanceStatus(f, &next.Status)
	if equality.Semantic.DeepEqual(fresh.Status, next.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, next, client.MergeFrom(fresh), client.FieldOwner(fieldManager)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("write the status: %w", err)
	}
	r.tell(next, transitions(fresh.Status.Conditions, next.Status.Conditions, fresh.Status.Phase, next.Status.Phase, next.Status.Reason))
	return nil
}
