package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// podFacts is what is known about one replica's pod and volume.
type podFacts struct {
	Replica string
	Claim   *corev1.PersistentVolumeClaim
	Last    lastPod
	// Pod that is there, or nil.
	Pod *corev1.Pod
	// Node of the pod that is there, or of the one that vanished.
	Node nodeView
	// SeenEnd: the vanished pod's end was seen when it vanished.
	SeenEnd bool
	// Hold: no pod may be made now (paused, or the input is not usable).
	Hold bool
}

// podPlan is what to do about it. At most one of Create, Release and Remove is set.
type podPlan struct {
	// Record is what the claim shall remember, when it differs from what it does.
	Record *lastPod
	// Create a pod; on Node when that is not empty.
	Create bool
	Node   string
	// Release the pod to the scheduler: the claim remembers it.
	Release bool
	// Remove the object of a pod that has ended for good.
	Remove bool
	// Problem tells why no pod is made.
	Problem *Problem
}

// planPod decides about one replica. It is pure. A pod for a volume is made only
// after the end of the previous one is proven (safety.md R8). When it is not, but
// the previous one's node is alive, the new pod goes to that very node: there the
// lock that an instance manager holds on the data volume keeps two servers apart.
func planPod(f podFacts) podPlan {
	if f.Pod != nil {
		return planPresent(f)
	}
	if f.Claim == nil && f.Hold {
		return podPlan{}
	}
	if f.Claim == nil || f.Claim.DeletionTimestamp != nil {
		message := "its data volume's claim is not there yet"
		if f.Claim != nil {
			message = fmt.Sprintf("its claim %s is being deleted: the replica waits until it is gone and starts with an empty volume then", f.Claim.Name)
		}
		return podPlan{Problem: &Problem{Reason: v1alpha1.ReasonVolumePending, Replica: f.Replica, Message: message}}
	}
	var plan podPlan
	proof := endProof(f.Last, f.Node, f.SeenEnd)
	if proof != "" && f.Last.UID != "" && f.Last.Ended == "" {
		next := f.Last
		next.Ended = proof
		plan.Record = &next
	}
	switch {
	case f.Hold:
	case proof != "":
		plan.Create = true
	case f.Node.Ready:
		plan.Create, plan.Node = true, f.Last.Node
	default:
		plan.Problem = &Problem{Reason: v1alpha1.ReasonEndNotProven, Replica: f.Replica, Message: endNotProven(f)}
	}
	return plan
}

func endNotProven(f podFacts) string {
	state := "is not Ready"
	if !f.Node.Exists {
		state = "is no longer there"
	}
	return fmt.Sprintf("its last pod ran on node %s, which %s, and vanished without its end being reported: it may still use the volume. "+
		"A new pod is made when the node is Ready again, was started anew, or carries the taint %s. "+
		"If the machine is certainly off, say so: kubectl annotate pvc %s %s-",
		f.Last.Node, state, corev1.TaintNodeOutOfService, f.Claim.Name, v1alpha1.AnnotationLastPod)
}

func planPresent(f podFacts) podPlan {
	pod := f.Pod
	next := f.Last
	if next.UID != pod.UID {
		next = lastPod{UID: pod.UID}
	}
	if next.Node != pod.Spec.NodeName {
		next.Node, next.BootID = pod.Spec.NodeName, ""
	}
	// A pod goes on through a restart of its node: the newest boot under which it was
	// seen running is the one whose end proves anything.
	if next.Node != "" && f.Node.BootID != "" && podRuns(pod) {
		next.BootID = f.Node.BootID
	}
	final := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	if next.Ended == "" && next.Node != "" && (final || pod.DeletionTimestamp != nil) {
		next.Ended = endProof(next, f.Node, podEnded(pod))
	}
	var plan podPlan
	if next != f.Last && f.Claim != nil {
		plan.Record = &next
	}
	// An evicted pod stays as an object and is in the way.
	plan.Release = gated(pod) && (plan.Record != nil || f.Last.UID == pod.UID) && pod.DeletionTimestamp == nil
	plan.Remove = final && pod.DeletionTimestamp == nil && podEnded(pod) && !f.Hold
	return plan
}

func podRuns(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			return true
		}
	}
	return false
}
