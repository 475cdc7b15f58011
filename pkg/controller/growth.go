package controller

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// remountAfter is how long a node may take to grow the file system of a mounted volume.
// After it the driver is taken for one that grows a volume only while it is mounted
// anew. Kubelets look at their volumes about once a minute.
const remountAfter = 3 * time.Minute

// growth says for what a claim whose capacity is below its request waits.
func growth(claim *corev1.PersistentVolumeClaim) string {
	capacity, requested := claim.Status.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	text := fmt.Sprintf("from %s to %s", capacity.String(), requested.String())
	switch {
	case resizeError(claim) != "":
		return text + ": the last try failed"
	case claimCondition(claim, corev1.PersistentVolumeClaimFileSystemResizePending) != nil:
		return text + ": the volume has grown, its node grows the file system"
	case claimCondition(claim, corev1.PersistentVolumeClaimResizing) != nil:
		return text + ": the storage driver is at it"
	}
	return text + ": waits for the storage driver"
}

// resizeError is what driver or kubelet say of the last try, or nothing.
func resizeError(claim *corev1.PersistentVolumeClaim) string {
	for _, t := range []corev1.PersistentVolumeClaimConditionType{
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
	} {
		if c := claimCondition(claim, t); c != nil {
			return c.Message
		}
	}
	return ""
}

func claimCondition(claim *corev1.PersistentVolumeClaim, t corev1.PersistentVolumeClaimConditionType) *corev1.PersistentVolumeClaimCondition {
	for i := range claim.Status.Conditions {
		if c := &claim.Status.Conditions[i]; c.Type == t && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// needsRemount: the volume has grown and its file system has not, although its node had
// the time: the driver does it only when the volume is mounted. The pod is then made
// anew in the rolling order, once for each size. When the wait is not over, it is said
// for how long it lasts.
func needsRemount(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, now time.Time) (remount bool, again time.Duration) {
	if claim == nil || pod == nil {
		return false, 0
	}
	pending := claimCondition(claim, corev1.PersistentVolumeClaimFileSystemResizePending)
	requested, capacity := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if pending == nil || capacity.Cmp(requested) >= 0 || pod.Annotations[v1alpha1.AnnotationVolumeSize] == requested.String() {
		return false, 0
	}
	if left := remountAfter - now.Sub(pending.LastTransitionTime.Time); left > 0 {
		return false, left
	}
	return true, 0
}

// volumeStatus is a replica's data volume for people; nil while it has no claim.
func volumeStatus(sc *scope, replica string) *v1alpha1.VolumeStatus {
	claim := sc.claims[replica]
	if claim == nil {
		return nil
	}
	s := &v1alpha1.VolumeStatus{Message: sc.volumeNotes[replica]}
	if q, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
		s.Requested = q.String()
	}
	if q, ok := claim.Status.Capacity[corev1.ResourceStorage]; ok {
		s.Capacity = q.String()
	}
	if why := resizeError(claim); why != "" && s.Message != "" {
		s.Message += ": " + shorten(why)
	}
	return s
}
