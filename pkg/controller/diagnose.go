package controller

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// diagnosePod explains why a pod does not come up, with a remedy; nil when there is
// nothing to say. The kubelet's and the scheduler's own words are quoted.
func diagnosePod(pod *corev1.Pod) *Problem {
	if p := diagnoseScheduling(pod); p != nil {
		return p
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if p := diagnoseContainer(pod, c, true); p != nil {
			return p
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != v1alpha1.ContainerName {
			continue
		}
		if p := diagnoseContainer(pod, c, false); p != nil {
			return p
		}
	}
	return nil
}

func diagnoseScheduling(pod *corev1.Pod) *Problem {
	if pod.Spec.NodeName != "" {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			remedy := "Add nodes, or change resources, nodeSelector, tolerations or affinity"
			if node := pinnedTo(pod); node != "" {
				remedy = fmt.Sprintf("It must run on node %s, where its previous pod ran and was not seen to end. Make that node schedulable; "+
					"if the previous pod has certainly ended, delete this one and it may go anywhere: kubectl delete pod %s", node, pod.Name)
			}
			return &Problem{Reason: v1alpha1.ReasonUnschedulable, Replica: pod.Name, Message: fmt.Sprintf(
				"no node fits: %s. %s", strings.TrimSuffix(c.Message, "."), remedy)}
		}
	}
	return nil
}

// pinnedTo is the one node on which the pod may run; empty when it may run on others.
func pinnedTo(pod *corev1.Pod) string {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range t.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

func diagnoseContainer(pod *corev1.Pod, c corev1.ContainerStatus, init bool) *Problem {
	w := c.State.Waiting
	if w == nil {
		return nil
	}
	problem := func(reason, format string, args ...any) *Problem {
		return &Problem{Reason: reason, Replica: pod.Name, Message: fmt.Sprintf(format, args...)}
	}
	field := "spec.image"
	if init {
		field = "the operator's image (flag --operator-image of the controller)"
	}
	switch w.Reason {
	case "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable", "ImageInspectError":
		return problem(v1alpha1.ReasonImagePullFailed, "image %s cannot be pulled: %s. Check %s and imagePullSecrets",
			image(pod, c.Name), orReason(w), field)
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return problem(v1alpha1.ReasonContainerConfigError, "the container cannot be made: %s", orReason(w))
	case "CrashLoopBackOff":
		last := c.LastTerminationState.Terminated
		if last == nil {
			return problem(v1alpha1.ReasonServerDoesNotStart, "the container ends again and again: %s", orReason(w))
		}
		return problem(v1alpha1.ReasonServerDoesNotStart, "the container has ended %d times, last with %s: %s",
			c.RestartCount, exitText(last), lastWords(last.Message))
	}
	return nil
}

func orReason(w *corev1.ContainerStateWaiting) string {
	if w.Message == "" {
		return w.Reason
	}
	return w.Message
}

func image(pod *corev1.Pod, container string) string {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			if c.Name == container {
				return c.Image
			}
		}
	}
	return ""
}

func exitText(t *corev1.ContainerStateTerminated) string {
	if t.Reason == "OOMKilled" {
		return "OOMKilled (raise resources.limits.memory)"
	}
	if t.Signal != 0 {
		return fmt.Sprintf("signal %d", t.Signal)
	}
	return fmt.Sprintf("exit code %d", t.ExitCode)
}

// lastWords are the last lines that the container wrote: SQL Server's own reason stands there.
func lastWords(message string) string {
	const mostLines, mostBytes = 4, 400
	lines := strings.Split(strings.TrimSpace(message), "\n")
	if len(lines) > mostLines {
		lines = lines[len(lines)-mostLines:]
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	s := strings.Join(lines, " | ")
	if len(s) > mostBytes {
		s = "… " + strings.ToValidUTF8(s[len(s)-mostBytes:], "")
	}
	if s == "" {
		return "it left no message; see its log"
	}
	return s
}
