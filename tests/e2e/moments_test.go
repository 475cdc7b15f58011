package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// pass lets time pass: that of a fault, not of an expectation.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// watchFor fails when something ceases to hold within that time.
func (s *scene) watchFor(t *testing.T, d time.Duration, otherwise string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 250*time.Millisecond, true, func(context.Context) (bool, error) { return !holds(), nil })
	if err == nil {
		t.Fatal(otherwise)
	}
}

// waitGranted waits for a later grant than that of this epoch.
func (s *scene) waitGranted(t *testing.T, epoch int64) {
	t.Helper()
	s.waitAuthority(t, "later grant", 3*time.Minute, func(a ag.Authority) bool { return a.Epoch > epoch })
}

// waitPublished waits until a role change is over, and names the primary.
func (s *scene) waitPublished(t *testing.T) string {
	t.Helper()
	s.waitAuthority(t, "end of the operation", 3*time.Minute, func(a ag.Authority) bool { return a.Operation == nil && !a.Holder.Zero() })
	return s.authority(t).Holder.Replica
}

// waitMovedOrBlocked waits for a failover, or for the word that there will be none.
func (s *scene) waitMovedOrBlocked(t *testing.T) {
	t.Helper()
	s.e.waitGroup(t, s.group, "failed over or blocked", 2*time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
		if s.moved(g) {
			return true
		}
		for _, c := range g.Status.Conditions {
			if c.Type == api.ConditionFailoverBlocked && c.Status == "True" {
				s.timeline.note("blocked: %s", c.Message)
				return true
			}
		}
		return false
	})
}

// waitRestarted waits until the kubelet has started the container of a replica anew.
func (s *scene) waitRestarted(t *testing.T, replica string) {
	t.Helper()
	again := func() bool {
		var p corev1.Pod
		err := s.e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: replica}, &p)
		return err == nil && restarts(&p) > s.restarts[replica] && p.Status.ContainerStatuses[0].State.Running != nil
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		return again(), nil
	})
	if err != nil {
		t.Fatalf("the container of %s was not started anew", replica)
	}
}

// catch watches the record for a moment from now on and does something in that instant.
// It is a watch and not a poll: each change of the record is an event, so that a phase of
// a third of a second is not missed. The function that it returns waits until it was done.
func (s *scene) catch(t *testing.T, moment moment, then func(context.Context) error) func() {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	w, err := s.e.quick.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": api.LeaseName(s.group)})
	if err != nil {
		t.Fatalf("watch the record: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		defer w.Stop()
		for e := range w.ResultChan() {
			l, ok := e.Object.(*coordinationv1.Lease)
			if !ok {
				continue
			}
			if a, _ := state.Decode(l, ""); a.Exists && moment.is(s, a) {
				s.timeline.note("the moment %q", moment.name)
				done <- then(ctx)
				return
			}
		}
		done <- fmt.Errorf("it was not seen in two minutes, or the watch ended")
	}()
	return func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Fatalf("the moment %q: %v", moment.name, err)
		}
	}
}

// moment of a role change, as the record shows it.
type moment struct {
	name string
	is   func(*scene, ag.Authority) bool
}

// inPhase is while the role change is in that phase.
func inPhase(p ag.OperationPhase) moment {
	return moment{"phase " + string(p), func(_ *scene, a ag.Authority) bool { return a.Operation != nil && a.Operation.Phase == p }}
}

// arrived is when the new primary is PRIMARY, and clients are not led to it yet.
func arrived() moment {
	return moment{"arrived", func(s *scene, a ag.Authority) bool {
		return a.Epoch > s.epoch && (a.Operation == nil || a.Operation.Phase == ag.PhasePublishing)
	}}
}

// says checks what the status screen says, and its exit code.
func (s *scene) says(t *testing.T, verdict string, code int) {
	t.Helper()
	r := s.e.plugin(t, 30*time.Second, "status", s.group, "-n", namespace, "--exit-code")
	if r.code != code || !strings.Contains(strings.ToLower(r.stdout), verdict) {
		t.Errorf("status ends with %d, want %d and the word %s", r.code, code, verdict)
	}
}

// refuses checks that a dry run of a failover names the rule that refuses the replica.
func (s *scene) refuses(t *testing.T, replica, rule string) {
	t.Helper()
	r := s.e.plugin(t, 30*time.Second, "failover", s.group, "-n", namespace, "--dry-run", "-o", "json")
	var out struct {
		To       string
		Replicas []struct {
			Name    string
			Ready   bool
			Refusal string
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		t.Fatalf("the dry run's answer is no JSON: %v", err)
	}
	if out.To == replica {
		t.Errorf("the dry run would promote %s", replica)
	}
	for _, x := range out.Replicas {
		if x.Name == replica && (x.Ready || !strings.HasPrefix(x.Refusal, rule)) {
			t.Errorf("%s: the dry run says %q, want a refusal by %s", replica, x.Refusal, rule)
		}
	}
}

// serverProcess is the instance manager of a replica, the container's first process: its
// end is the end of sqlservr.
func (s *scene) serverProcess(t *testing.T, replica string) int {
	t.Helper()
	return processesOf(t, s.e.containerID(t, replica))[0]
}

func (s *scene) killProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.timeline.note("process %d is killed", pid)
}
