package state

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Cluster shows pods and nodes as the API server does. The reader may be a cache:
// proofs that rest on pods are facts that do not change back.
type Cluster struct {
	Reader client.Reader
}

// Pods implements observe.Cluster.
func (a Cluster) Pods(ctx context.Context, key ag.Key, replicas []string) ([]ag.Pod, []ag.Node, error) {
	pods := make([]ag.Pod, len(replicas))
	for i, name := range replicas {
		var pod corev1.Pod
		err := a.Reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, &pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, nil, fmt.Errorf("read pod %s/%s: %w", key.Namespace, name, err)
		case pod.Labels[v1alpha1.LabelAG] != key.Name:
			// A pod of that name that is not ours is no replica of this group.
		default:
			pods[i] = podOf(&pod)
		}
		var claim corev1.PersistentVolumeClaim
		err = a.Reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: v1alpha1.VolumeData + "-" + name}, &claim)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, nil, fmt.Errorf("read claim of %s/%s: %w", key.Namespace, name, err)
		default:
			pods[i].PVCUID = string(claim.UID)
		}
	}
	nodes, err := a.nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range pods {
		for _, n := range nodes {
			if n.Name == pods[i].Node && n.Name != "" {
				pods[i].NodeReady, pods[i].BootID, pods[i].OutOfService = n.Ready, n.BootID, n.OutOfService
			}
		}
	}
	return pods, nodes, nil
}

// nodes reads all nodes: those of recorded holders outlive their pods. A namespaced
// installation may not read nodes: then nothing is known of them.
func (a Cluster) nodes(ctx context.Context) ([]ag.Node, error) {
	var list corev1.NodeList
	err := a.Reader.List(ctx, &list)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	nodes := make([]ag.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, nodeOf(&list.Items[i]))
	}
	slices.SortFunc(nodes, func(a, b ag.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, nil
}

func nodeOf(n *corev1.Node) ag.Node {
	out := ag.Node{Name: n.Name, BootID: n.Status.NodeInfo.BootID}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			out.OutOfService = true
		}
	}
	return out
}

// portNameTDS names the container port of the TDS listener.
const portNameTDS = "tds"

func podOf(p *corev1.Pod) ag.Pod {
	out := ag.Pod{
		Exists: true, UID: string(p.UID), IP: p.Status.PodIP, Node: p.Spec.NodeName,
		Phase: string(p.Status.Phase), Terminating: p.DeletionTimestamp != nil,
	}
	switch p.Labels[v1alpha1.LabelRole] {
	case v1alpha1.RolePrimary:
		out.RoleLabel = ag.RolePrimary
	case v1alpha1.RoleSecondary:
		out.RoleLabel = ag.RoleSecondary
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			if out.Ready = c.Status == corev1.ConditionTrue; out.Ready {
				out.ReadySince = c.LastTransitionTime.UTC()
			}
		}
	}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if c.Name == v1alpha1.ContainerName && port.Name == portNameTDS {
				out.Port = port.ContainerPort
			}
		}
	}
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == v1alpha1.ContainerName {
			out.Container = containerOf(s)
		}
	}
	return out
}

func containerOf(s *corev1.ContainerStatus) ag.Container {
	c := ag.Container{ID: s.ContainerID, Restarts: s.RestartCount}
	if s.State.Running != nil {
		c.Running, c.StartedAt = true, s.State.Running.StartedAt.UTC()
	}
	if s.State.Waiting != nil {
		c.WaitingReason, c.WaitingMessage = s.State.Waiting.Reason, s.State.Waiting.Message
	}
	ended := s.State.Terminated
	if ended == nil {
		ended = s.LastTerminationState.Terminated
	}
	if ended != nil {
		c.TerminatedID, c.TerminatedReason, c.ExitCode = ended.ContainerID, ended.Reason, ended.ExitCode
	}
	return c
}
