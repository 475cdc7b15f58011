package controller

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

const (
	// workers is how many groups are looked at at the same time; a pass waits for
	// servers most of the time.
	workers = 16
	// passLimit ends a pass that hangs; every call in it has a shorter deadline of its own.
	passLimit = 2 * time.Minute
	// A failed pass is tried again after a second at first, and every five at least: a
	// longer pause would delay the next failover.
	firstRetry, lastRetry = time.Second, 5 * time.Second
)

// podHandler finds the owner of a pod, and takes down how a pod vanished before the
// pass that this starts.
type podHandler struct {
	handler.EventHandler
	ends *podEnds
}

// Delete implements handler.EventHandler.
func (h podHandler) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if pod, ok := e.Object.(*corev1.Pod); ok {
		h.ends.vanished(pod)
	}
	h.EventHandler.Delete(ctx, e, q)
}

func controllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		ReconciliationTimeout:   passLimit,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// watch sets up what a controller of this kind listens to.
func (s *shared) watch(mgr ctrl.Manager, name string, kind client.Object, component string) *builder.Builder {
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), kind, handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(kind, builder.WithPredicates(specOrAnnotations())).
		Owns(&corev1.Service{}).
		Owns(&corev1.Secret{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&rbacv1.Role{}).
		Owns(&rbacv1.RoleBinding{}).
		Watches(&corev1.Pod{}, podHandler{EventHandler: owner, ends: s.Ends}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(byLabels(component))).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(s.onNode(component)), builder.WithPredicates(nodeHealth())).
		WithOptions(controllerOptions())
}

// SetupWithManager registers the reconciler.
func (r *GroupReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return r.watch(mgr, "availabilitygroup", &v1alpha1.SQLServerAvailabilityGroup{}, v1alpha1.ComponentAG).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&coordinationv1.Lease{}, builder.WithPredicates(leaseRecord())).
		Complete(r)
}

// SetupWithManager registers the reconciler.
func (r *InstanceReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return r.watch(mgr, "instance", &v1alpha1.SQLServerInstance{}, v1alpha1.ComponentInstance).Complete(r)
}

// byLabels finds the resource of an object that has no owner: a data volume's claim.
func byLabels(component string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		l := o.GetLabels()
		if l[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy || l[v1alpha1.LabelComponent] != component {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: l[v1alpha1.LabelInstance]}}}
	}
}

// onNode finds the resources that have a pod on the node. Those that wait for the
// proof of a vanished pod look again by themselves.
func (s *shared) onNode(component string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: component}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the pods of a node", "node", o.GetName())
			return nil
		}
		seen := map[types.NamespacedName]bool{}
		var out []reconcile.Request
		for i := range pods.Items {
			p := &pods.Items[i]
			key := types.NamespacedName{Namespace: p.Namespace, Name: p.Labels[v1alpha1.LabelInstance]}
			if p.Spec.NodeName == o.GetName() && !seen[key] {
				seen[key] = true
				out = append(out, reconcile.Request{NamespacedName: key})
			}
		}
		return out
	}
}
