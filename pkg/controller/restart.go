package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// restartOrder is the order to restart in the resource's annotation, while it is not
// answered. An unreadable one is shown by phaseInputs.
func restartOrder(g *v1alpha1.SQLServerAvailabilityGroup) *v1alpha1.Request {
	r, err := v1alpha1.ParseRequest(g.Annotations[v1alpha1.AnnotationRequest])
	if err != nil || r == nil || r.Kind != v1alpha1.RequestRestart || answered(g, r.ID) {
		return nil
	}
	return r
}

func answered(g *v1alpha1.SQLServerAvailabilityGroup, id string) bool {
	if m := g.Status.Memory; m != nil && m.HandledRequest == id {
		return true
	}
	last := g.Status.LastRequest
	return last != nil && last.ID == id && last.Result != v1alpha1.RequestRunning
}

// refuseRestart is why the order is not carried out, or nil. What its author saw counts
// until it has begun: a primary that moved meanwhile would make it another order.
func refuseRestart(order *v1alpha1.Request, g *v1alpha1.SQLServerAvailabilityGroup) *Problem {
	if order == nil {
		return nil
	}
	if order.Target != "" && !slices.Contains(g.ReplicaNames(), order.Target) {
		return &Problem{Reason: ag.ReasonUnknownReplica, Message: fmt.Sprintf("there is no replica %s", order.Target)}
	}
	fenced, err := v1alpha1.ParseFenced(g.Annotations[v1alpha1.AnnotationFenced])
	if err != nil {
		return &Problem{Reason: v1alpha1.ReasonInvalidAnnotation, Message: err.Error()}
	}
	for _, f := range fenced {
		if order.Target == f.Replica {
			return &Problem{Reason: v1alpha1.ReasonReplicaFenced, Message: f.Replica + " is fenced: its server is kept stopped"}
		}
		if order.Target == "" && slices.Contains(g.ReplicaNames(), f.Replica) {
			return &Problem{Reason: v1alpha1.ReasonReplicaFenced, Message: f.Replica + " is fenced: the others cannot be restarted in turn without it"}
		}
	}
	if last := g.Status.LastRequest; last != nil && last.ID == order.ID {
		return nil
	}
	if p := g.Status.PrimaryReplica; order.ExpectedPrimary != "" && p != "" && p != order.ExpectedPrimary {
		return &Problem{Reason: ag.ReasonStaleView, Message: fmt.Sprintf("the primary is %s, not %s", p, order.ExpectedPrimary)}
	}
	return nil
}

// restartDue tells whether the order still waits for this pod to be made anew.
func restartDue(order *v1alpha1.Request, pod *corev1.Pod) bool {
	if order == nil || order.Target != "" && order.Target != pod.Name {
		return false
	}
	return pod.Annotations[v1alpha1.AnnotationRestart] != order.ID
}

func restartID(order *v1alpha1.Request) string {
	if order == nil {
		return ""
	}
	return order.ID
}

// cancelRestart ends the answer to a restart whose order is not in the annotation any more:
// its author took it back, or gave another one.
func cancelRestart(annotation string, now time.Time, last *v1alpha1.LastRequestStatus) {
	if last == nil || last.Kind != string(v1alpha1.RequestRestart) || last.Result != v1alpha1.RequestRunning {
		return
	}
	if q, err := v1alpha1.ParseRequest(annotation); err != nil || q != nil && q.ID == last.ID {
		return // an order that cannot be read may be this one
	}
	at := metav1.NewTime(now)
	last.Result, last.CompletedAt = v1alpha1.RequestCancelled, &at
	last.Message = "taken back; " + last.Message
}

// answerRestart writes how the order stands into the status. It is done when every
// pod that it names was made for it and is ready.
func answerRestart(sc *scope, now time.Time, s *v1alpha1.SQLServerAvailabilityGroupStatus) {
	order := sc.restart
	if order == nil {
		return
	}
	answer := v1alpha1.LastRequestStatus{ID: order.ID, Kind: string(order.Kind), Target: order.Target}
	waits := slices.Clone(sc.restarts)
	for _, name := range sc.server.Replicas {
		pod := sc.pods[name]
		if (order.Target == "" || order.Target == name) && !slices.Contains(waits, name) && !podReady(pod) {
			waits = append(waits, name)
		}
	}
	switch {
	case sc.restartRefused != nil:
		answer.Result, answer.Reason, answer.Message = v1alpha1.RequestRefused, sc.restartRefused.Reason, sc.restartRefused.Message
	case len(waits) > 0:
		answer.Result = v1alpha1.RequestRunning
		answer.Message = "still to restart: " + strings.Join(waits, ", ")
	default:
		answer.Result, answer.Message = v1alpha1.RequestDone, "restarted"
	}
	if answer.Result != v1alpha1.RequestRunning {
		at := metav1.NewTime(now)
		answer.CompletedAt = &at
		if s.Memory == nil {
			s.Memory = &v1alpha1.MemoryStatus{}
		}
		s.Memory.HandledRequest = order.ID
	}
	s.LastRequest = &answer
}
