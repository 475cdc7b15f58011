package controller

import (
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// specOrAnnotations lets a resource's own events through when people changed it: its
// status, which we write ourselves, does not feed the loop.
func specOrAnnotations() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionStarted())
}

func deletionStarted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// leaseRecord lets everything of a Lease through but renewals: holders renew every
// two seconds.
func leaseRecord() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*coordinationv1.Lease)
		after, ok2 := e.ObjectNew.(*coordinationv1.Lease)
		if !ok1 || !ok2 {
			return true
		}
		b, a := before.Spec.DeepCopy(), after.Spec.DeepCopy()
		b.RenewTime, a.RenewTime = nil, nil
		b.AcquireTime, a.AcquireTime = nil, nil
		return !equality.Semantic.DeepEqual(b, a) || !maps.Equal(before.Annotations, after.Annotations)
	}}
}

// nodeHealth lets a node through when what we conclude from it changed.
func nodeHealth() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*corev1.Node)
			after, ok2 := e.ObjectNew.(*corev1.Node)
			return !ok1 || !ok2 || viewNode(before) != viewNode(after)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
