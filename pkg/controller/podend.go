package controller

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// reasonStatusUnknown is what the kubelet reports of a container about which it
// knows nothing: no proof of anything (safety.md R8).
const reasonStatusUnknown = "ContainerStatusUnknown"

// lastPod is what the claim of a data volume remembers of the newest pod that used
// it, in the annotation v1alpha1.AnnotationLastPod. Without the annotation nothing
// is known to have used the volume; taking it away by hand means: I vouch for it.
type lastPod struct {
	UID    types.UID `json:"uid,omitempty"`
	Node   string    `json:"node,omitempty"`
	BootID string    `json:"bootID,omitempty"`
	// Ended is how the end of the pod was proven; empty while it is not.
	Ended string `json:"ended,omitempty"`
}

func parseLastPod(claim *corev1.PersistentVolumeClaim) (lastPod, error) {
	text := claim.Annotations[v1alpha1.AnnotationLastPod]
	if text == "" {
		return lastPod{}, nil
	}
	var l lastPod
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return lastPod{}, fmt.Errorf("claim %s: annotation %s is unreadable: %w", claim.Name, v1alpha1.AnnotationLastPod, err)
	}
	return l, nil
}

func (l lastPod) String() string {
	b, err := json.Marshal(l)
	if err != nil { // a struct of strings always marshals
		return ""
	}
	return string(b)
}

// podEnded tells whether the kubelet has reported the end of every container that
// ever started. A pod that was never given to a node has ended when it is gone.
func podEnded(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return true
	}
	statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	if len(pod.Status.ContainerStatuses) == 0 {
		// Given to a node that has not yet reported anything: only its final phase tells.
		return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	}
	final := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	for _, c := range statuses {
		switch {
		case c.State.Running != nil:
			return false
		case c.State.Terminated != nil:
			if c.State.Terminated.Reason == reasonStatusUnknown {
				return false
			}
		default:
			// Waiting: it runs nothing now, but the kubelet may start it unless the pod's phase is final.
			if !final {
				return false
			}
		}
	}
	// Terminated containers of a pod that goes on are started again.
	return final || pod.DeletionTimestamp != nil
}

// nodeView is what counts about the node of a pod.
type nodeView struct {
	Exists, Ready, OutOfService bool
	BootID                      string
}

func viewNode(n *corev1.Node) nodeView {
	if n == nil {
		return nodeView{}
	}
	v := nodeView{Exists: true, BootID: n.Status.NodeInfo.BootID}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			v.Ready = c.Status == corev1.ConditionTrue
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			v.OutOfService = true
		}
	}
	return v
}

// endProof says how the end of the recorded pod is proven, or "" (safety.md R8).
func endProof(l lastPod, node nodeView, seenEnd bool) string {
	switch {
	case l.UID == "":
		return "no pod has used the volume"
	case l.Ended != "":
		return l.Ended
	case l.Node == "":
		return "it was never given to a node"
	case seenEnd:
		return "its node reported the end of its containers"
	case node.OutOfService:
		return "its node is marked out of service"
	case node.Exists && node.BootID != "" && l.BootID != "" && node.BootID != l.BootID:
		return "its node has been started anew since"
	}
	return ""
}
