package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func TestTheServicesOfAGroupWithoutAClusterManagerFollowItsServers(t *testing.T) {
	t.Parallel()
	replica := func(name string, says, label ag.Role) ag.Replica {
		r := ag.Replica{Name: name, Readable: true, Pod: ag.Pod{Exists: true, UID: "u", RoleLabel: label}}
		if says != "silent" {
			r.Local = ag.Local{Reach: ag.ReachOK, Role: says}
		}
		return r
	}
	const p, s, none, silent = ag.RolePrimary, ag.RoleSecondary, ag.RoleUnknown, ag.Role("silent")
	for name, c := range map[string]struct {
		replicas []ag.Replica
		want     []string
	}{
		"as it is":                          {[]ag.Replica{replica("a", p, p), replica("b", s, s)}, nil},
		"new":                               {[]ag.Replica{replica("a", p, none), replica("b", s, none)}, []string{"b SECONDARY true", "a PRIMARY false"}},
		"moved: the old one off first":      {[]ag.Replica{replica("a", s, p), replica("b", p, s)}, []string{"a  false", "a SECONDARY true", "b PRIMARY false"}},
		"two primaries: none is published":  {[]ag.Replica{replica("a", p, p), replica("b", p, s)}, []string{"a  false", "b  false"}},
		"a silent primary keeps its label":  {[]ag.Replica{replica("a", silent, p), replica("b", s, s)}, nil},
		"a silent one loses it to another":  {[]ag.Replica{replica("a", silent, p), replica("b", p, s)}, []string{"a  false", "b PRIMARY false"}},
		"resolving is not published":        {[]ag.Replica{replica("a", ag.RoleResolving, p), replica("b", s, s)}, []string{"a  false"}},
		"a pod that is gone has no label":   {[]ag.Replica{{Name: "a"}, replica("b", s, s)}, nil},
		"a server that has left the group":  {[]ag.Replica{replica("a", p, p), replica("b", ag.RoleNone, s)}, []string{"b  false"}},
		"secondaries come before a primary": {[]ag.Replica{replica("a", p, none), replica("b", s, none), replica("c", s, none)}, []string{"b SECONDARY true", "c SECONDARY true", "a PRIMARY false"}},
	} {
		var got []string
		for _, l := range readScaleLabels(ag.Snapshot{Replicas: c.replicas}) {
			got = append(got, fmt.Sprintf("%s %s %v", l.replica, l.role, l.readable))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAMoveOfAGroupWithoutAClusterManagerIsRefusedOnce(t *testing.T) {
	t.Parallel()
	f := threeInStep()
	f.Group.Spec.ClusterType = v1alpha1.ClusterTypeNone
	f.Group.Annotations = map[string]string{v1alpha1.AnnotationRequest: v1alpha1.Request{ID: "r1", Kind: v1alpha1.RequestFailover, Target: "shop-1"}.String()}
	s := statusOf(f)
	if s.LastRequest == nil || s.LastRequest.Result != v1alpha1.RequestRefused || s.Memory.HandledRequest != "r1" {
		t.Fatalf("%+v", s.LastRequest)
	}
	f.Group.Status = s
	f.Now = f.Now.Add(1e9)
	if again := statusOf(f); !again.LastRequest.CompletedAt.Equal(s.LastRequest.CompletedAt) {
		t.Error("answered twice")
	}
	external := threeInStep()
	external.Group.Annotations = f.Group.Annotations
	if s := statusOf(external); s.LastRequest != nil {
		t.Error("an order of the engine was answered for it")
	}
}
