package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller/desired"
)

const (
	// unprovenAgain is how often a missing proof of death is looked for, beside the node's events.
	unprovenAgain = 5 * time.Second
	// soon is after a write whose effect the cache does not show yet.
	soon = time.Second
)

// phaseWorkload keeps one pod a replica.
func (s *shared) phaseWorkload(ctx context.Context, sc *scope) error {
	var errs []error
	for _, replica := range sc.server.Replicas {
		if err := s.replicaPod(ctx, sc, replica); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *shared) replicaPod(ctx context.Context, sc *scope, replica string) error {
	facts, err := s.podFacts(ctx, sc, replica)
	if err != nil {
		return err
	}
	pod := facts.Pod
	if pod != nil {
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != sc.server.UID {
			return s.foreignPod(sc, pod, owner)
		}
		sc.pods[replica] = pod
		if p := diagnosePod(pod); p != nil {
			sc.problem(*p)
		}
		due := sc.restartRefused == nil && restartDue(sc.restart, pod)
		if due {
			sc.restarts = append(sc.restarts, replica)
		}
		remount, again := needsRemount(sc.claims[replica], pod, s.Clock.Now())
		sc.requeue(again)
		if remount {
			sc.remount = append(sc.remount, replica)
		}
		if due || remount || pod.Annotations[v1alpha1.AnnotationDigest] != sc.server.Digest(replica, sc.configDigest) {
			sc.outdated = append(sc.outdated, replica)
		}
	}
	plan := planPod(facts)
	if plan.Record != nil && !sc.paused {
		switch err := s.record(ctx, facts.Claim, *plan.Record); {
		case apierrors.IsConflict(err):
			sc.requeue(soon)
			return nil
		case err != nil:
			return err
		}
	}
	if plan.Problem != nil {
		sc.problem(*plan.Problem)
		sc.requeue(unprovenAgain)
	}
	switch {
	case plan.Remove:
		return s.removePod(ctx, sc, pod, "it has ended for good ("+string(pod.Status.Phase)+")")
	case plan.Create:
		return s.createPod(ctx, sc, replica, plan)
	case plan.Release && !sc.paused:
		return s.release(ctx, pod)
	}
	return nil
}

func (s *shared) podFacts(ctx context.Context, sc *scope, replica string) (podFacts, error) {
	f := podFacts{Replica: replica, Claim: sc.claims[replica], Hold: sc.paused || sc.fatal}
	if f.Claim != nil {
		last, err := parseLastPod(f.Claim)
		if err != nil {
			return f, fmt.Errorf("%w: take it away if no pod uses the volume: kubectl annotate pvc %s %s-", err, f.Claim.Name, v1alpha1.AnnotationLastPod)
		}
		f.Last = last
	}
	pod := &corev1.Pod{}
	err := s.Get(ctx, client.ObjectKey{Namespace: sc.server.Namespace, Name: replica}, pod)
	switch {
	case err == nil:
		f.Pod = pod
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("read pod %s: %w", replica, err)
	}
	name := f.Last.Node
	if f.Pod != nil {
		name = f.Pod.Spec.NodeName
	}
	if f.Node, err = s.node(ctx, name); err != nil {
		return f, err
	}
	f.SeenEnd = f.Last.UID != "" && s.Ends.proven(f.Last.UID)
	return f, nil
}

func (s *shared) node(ctx context.Context, name string) (nodeView, error) {
	if name == "" {
		return nodeView{}, nil
	}
	node := &corev1.Node{}
	err := s.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nodeView{}, nil
	}
	if err != nil {
		return nodeView{}, fmt.Errorf("read node %s: %w", name, err)
	}
	return viewNode(node), nil
}

// foreignPod: a pod of the replica's name that is not this resource's. One of an
// earlier resource of the same name goes by itself, through garbage collection.
func (s *shared) foreignPod(sc *scope, pod *corev1.Pod, owner *metav1.OwnerReference) error {
	if owner != nil && owner.Kind == sc.server.Kind && owner.Name == sc.server.Name {
		sc.requeue(unprovenAgain)
		return nil
	}
	sc.problem(Problem{Reason: v1alpha1.ReasonNameTaken, Replica: pod.Name,
		Message: "a pod of that name is there and belongs to somebody else. Delete it, or rename the resource"})
	sc.requeue(inputAgain)
	return nil
}

// record writes down on the claim what is known of the pod that uses it.
func (s *shared) record(ctx context.Context, claim *corev1.PersistentVolumeClaim, l lastPod) error {
	before := claim.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[v1alpha1.AnnotationLastPod] = l.String()
	// With the version that was read: an old view must never overwrite a newer record.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.Patch(ctx, claim, patch, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("record the pod of claim %s: %w", claim.Name, err)
	}
	return nil
}

// createPod makes the pod, after the decision was made again on what the API server
// itself says of the claim: a cache may be behind, and two servers on one volume
// would destroy it. Create fails when a pod of that name is there.
func (s *shared) createPod(ctx context.Context, sc *scope, replica string, planned podPlan) error {
	claim, err := s.claimOf(ctx, sc.server.Namespace, replica)
	if err != nil {
		return err
	}
	facts := podFacts{Replica: replica, Claim: claim}
	if claim != nil {
		if facts.Last, err = parseLastPod(claim); err != nil {
			return err
		}
	}
	if facts.Node, err = s.node(ctx, facts.Last.Node); err != nil {
		return err
	}
	facts.SeenEnd = facts.Last.UID != "" && s.Ends.proven(facts.Last.UID)
	again := planPod(facts)
	if !again.Create || again.Node != planned.Node {
		sc.requeue(soon)
		return nil
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	pod := sc.server.Pod(replica, desired.PodOptions{
		OperatorImage: s.Settings.OperatorImage, OperatorPullPolicy: s.Settings.OperatorPullPolicy,
		ConfigKey: configKey, ConfigDigest: sc.configDigest, Node: again.Node, Restart: restartID(sc.restart),
	})
	pod.Annotations[v1alpha1.AnnotationVolumeSize] = size.String()
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
	err = s.Create(ctx, pod, client.FieldOwner(fieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		sc.requeue(soon)
		return nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		// Refused by admission: the namespace's policy, a quota, a wrong field.
		sc.problem(Problem{Reason: v1alpha1.ReasonInvalidSpec, Replica: replica, Message: "the API server refuses its pod: " + err.Error()})
		sc.requeue(inputAgain)
		return nil
	case err != nil:
		return fmt.Errorf("create pod %s: %w", replica, err)
	}
	sc.pods[replica] = pod
	// When one of these writes is lost, the next pass makes it up from the pod that is there.
	switch err := s.record(ctx, claim, lastPod{UID: pod.UID}); {
	case apierrors.IsConflict(err):
		sc.requeue(soon)
	case err != nil:
		return err
	default:
		if err := s.release(ctx, pod); err != nil {
			return err
		}
	}
	where := ""
	if again.Node != "" {
		where = fmt.Sprintf(" on node %s, where the previous one ran and may not have ended", again.Node)
	}
	s.event(sc.obj, corev1.EventTypeNormal, v1alpha1.EventPodCreated, "Create", "pod %s was created%s", replica, where)
	return nil
}

// gate holds a pod back from the scheduler until the claim remembers it. Otherwise the
// record would be written while the scheduler binds the claim: it starts over then, with a
// choice of node that it made when the group's other pods had none yet.
const gate = v1alpha1.Group + "/recorded"

func gated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gate })
}

// release lets the scheduler have the pod.
func (s *shared) release(ctx context.Context, pod *corev1.Pod) error {
	before := pod.DeepCopy()
	pod.Spec.SchedulingGates = slices.DeleteFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == gate })
	err := s.Patch(ctx, pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldManager))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("let pod %s be scheduled: %w", pod.Name, err)
	}
	return nil
}

// removePod deletes exactly this pod.
func (s *shared) removePod(ctx context.Context, sc *scope, pod *corev1.Pod, why string) error {
	uid := pod.UID
	err := s.Delete(ctx, pod, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	s.event(sc.obj, corev1.EventTypeNormal, v1alpha1.EventPodReplaced, "Delete", "pod %s is replaced: %s", pod.Name, why)
	sc.requeue(soon)
	return nil
}
