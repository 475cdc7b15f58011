package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// A group with clusterType NONE has no cluster manager: people move its primary, and
// the Services follow.

// roleLabel is a label to be set; the ones that are taken away come first, so that at
// no instant two replicas are published as primary.
type roleLabel struct {
	replica, podUID string
	role            ag.Role
	readable        bool
}

// readScaleLabels are the labels that differ from what the replicas say of themselves.
// A replica that does not answer keeps its label, unless another one is primary; with
// two primaries none is published.
func readScaleLabels(s ag.Snapshot) []roleLabel {
	primaries := s.Primaries()
	var off, on []roleLabel
	for _, r := range s.Replicas {
		if !r.Pod.Exists {
			continue
		}
		l := roleLabel{replica: r.Name, podUID: r.Pod.UID, role: r.Pod.RoleLabel}
		switch {
		case r.Local.Reach != ag.ReachOK:
			if l.role == ag.RolePrimary && len(primaries) > 0 {
				l.role = ag.RoleUnknown
			}
		case r.Local.Role == ag.RolePrimary && len(primaries) == 1:
			l.role = ag.RolePrimary
		case r.Local.Role == ag.RoleSecondary:
			l.role, l.readable = ag.RoleSecondary, r.Readable
		default:
			l.role = ag.RoleUnknown
		}
		if l.role == r.Pod.RoleLabel {
			continue
		}
		if r.Pod.RoleLabel == ag.RolePrimary {
			off = append(off, roleLabel{replica: l.replica, podUID: l.podUID})
		}
		if l.role != ag.RoleUnknown || r.Pod.RoleLabel != ag.RolePrimary {
			on = append(on, l)
		}
	}
	slices.SortStableFunc(on, func(a, b roleLabel) int {
		return boolInt(a.role == ag.RolePrimary) - boolInt(b.role == ag.RolePrimary)
	})
	return append(off, on...)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// publish sets the labels of a group that has no cluster manager, and stops at the
// first that cannot be set.
func (r *GroupReconciler) publish(ctx context.Context, sc *scope, report *Report) error {
	if sc.server.External() || sc.paused {
		return nil
	}
	kube := state.Kube{Client: r.Client}
	key := ag.Key{Namespace: sc.server.Namespace, Name: sc.server.Name}
	for _, l := range readScaleLabels(report.Snapshot) {
		if err := kube.SetRole(ctx, key, l.replica, l.podUID, l.role, l.readable); err != nil {
			return errors.Join(errors.New("publish the roles"), err)
		}
		sc.requeue(soon)
	}
	return nil
}

// refuseMove answers an order to move the primary of a group that has no cluster manager.
func refuseMove(f groupFacts, now time.Time, s *v1alpha1.SQLServerAvailabilityGroupStatus) {
	order, err := v1alpha1.ParseRequest(f.Group.Annotations[v1alpha1.AnnotationRequest])
	if err != nil || order == nil || order.Kind != v1alpha1.RequestFailover || f.Scope.server.External() || answered(f.Group, order.ID) {
		return
	}
	at := metav1.NewTime(now)
	s.LastRequest = &v1alpha1.LastRequestStatus{
		ID: order.ID, Kind: string(order.Kind), Target: order.Target, Result: v1alpha1.RequestRefused, Reason: "ClusterTypeNone", CompletedAt: &at,
		Message: "the group has clusterType NONE and no cluster manager: move its primary with T-SQL; the Services follow",
	}
	if s.Memory == nil {
		s.Memory = &v1alpha1.MemoryStatus{}
	}
	s.Memory.HandledRequest = order.ID
}
