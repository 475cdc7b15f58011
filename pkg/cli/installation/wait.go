package installation

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// asking is how long the last questions after a time-out may take.
const asking = 5 * time.Second

// Wait until all controllers of the Deployment's present generation are up. On
// time-out the error says what the pods wait for and what was told about them last;
// nothing is rolled back, so that the cause can be seen.
func Wait(ctx context.Context, c client.Client, clk clock.WithTicker, namespace string, timeout time.Duration, report *progress.Reporter) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := clk.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	last := "the Deployment was not seen"
	for {
		var d appsv1.Deployment
		err := c.Get(waiting, client.ObjectKey{Namespace: namespace, Name: manifests.Name}, &d)
		switch {
		case err == nil:
			wanted := int32(1)
			if d.Spec.Replicas != nil {
				wanted = *d.Spec.Replicas
			}
			st := d.Status
			if st.ObservedGeneration >= d.Generation && st.UpdatedReplicas == wanted && st.AvailableReplicas == wanted && st.Replicas == wanted {
				return nil
			}
			last = fmt.Sprintf("%d of %d controllers are up, %d of them of this version", st.AvailableReplicas, wanted, st.UpdatedReplicas)
			report.Step("waiting for the controllers: %s%s", last, brackets(waitingReason(waiting, c, namespace)))
		case waiting.Err() == nil && !apierrors.IsNotFound(err):
			report.Step("waiting for the controllers: %v", err)
		}
		select {
		case <-waiting.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return exit.Errorf(exit.Interrupted, "run the same command again to go on", "interrupted; what was applied stays")
			}
			return timedOut(ctx, c, namespace, timeout, last)
		case <-ticker.C():
		}
	}
}

func timedOut(ctx context.Context, c client.Client, namespace string, timeout time.Duration, last string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), asking)
	defer cancel()
	text := last
	if why := waitingReason(ctx, c, namespace); why != "" {
		text += "; " + why
	}
	if event := lastEvent(ctx, c, namespace); event != "" {
		text += "; last event: " + event
	}
	return exit.Errorf(exit.Timeout,
		fmt.Sprintf("kubectl -n %s describe pods; nothing was rolled back, so that the cause can be seen", namespace),
		"the controllers were not up after %s: %s", timeout, text)
}

func brackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// waitingReason is why the first pod that does not run does not.
func waitingReason(ctx context.Context, c client.Client, namespace string) string {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}); err != nil {
		return ""
	}
	for _, p := range pods.Items {
		if why := PodWaits(&p); why != "" {
			return p.Name + ": " + why
		}
	}
	return ""
}

// PodWaits is why a pod does not run yet, in the kubelet's or the scheduler's words; empty when it only takes its time.
func PodWaits(p *corev1.Pod) string {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, cs := range list {
			if w := cs.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" && w.Reason != "" {
				text := w.Reason
				if w.Message != "" {
					text += ": " + w.Message
				}
				if t := cs.LastTerminationState.Terminated; t != nil {
					text += fmt.Sprintf(" (it ended with exit code %d, %s)", t.ExitCode, t.Reason)
				}
				return text
			}
		}
	}
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			return cond.Message
		}
	}
	return ""
}

// lastEvent is the newest warning about the operator's pods, replica sets or Deployment.
func lastEvent(ctx context.Context, c client.Client, namespace string) string {
	var events corev1.EventList
	if err := c.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return ""
	}
	var newest *corev1.Event
	for i := range events.Items {
		e := &events.Items[i]
		if e.Type != corev1.EventTypeWarning {
			continue
		}
		if newest == nil || eventTime(e).After(eventTime(newest)) {
			newest = e
		}
	}
	if newest == nil {
		return ""
	}
	return fmt.Sprintf("%s on %s %s: %s", newest.Reason, newest.InvolvedObject.Kind, newest.InvolvedObject.Name, newest.Message)
}

func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
