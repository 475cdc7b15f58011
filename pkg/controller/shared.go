package controller

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldManager owns the fields that the controller applies.
const fieldManager = "kubectl-mssql-controller"

// Settings of the controller that pods depend on.
type Settings struct {
	OperatorImage      string
	OperatorPullPolicy corev1.PullPolicy
}

// shared is what both reconcilers have.
type shared struct {
	client.Client
	// Live reads past the cache: for what is not cached (Secrets of users, volumes,
	// storage classes) and where a stale answer would do harm.
	Live     client.Reader
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	Settings Settings
	// Ends are pods whose end was seen in the moment in which they vanished.
	Ends *podEnds
	// reclaimed remembers the volumes whose reclaim policy is as it should be.
	reclaimed sync.Map
}

// event tells people, once: the caller has just written what makes it true.
func (s *shared) event(obj client.Object, kind, reason, action, format string, args ...any) {
	s.Recorder.Eventf(obj, nil, kind, reason, action, "%s", fmt.Sprintf(format, args...))
}

// podEnds remembers, for pods that vanished, whether the last thing that the API
// server knew of them was that all their containers had ended. Only a pod that the
// kubelet removed gracefully looks so; one deleted by force does not.
type podEnds struct {
	mu   sync.Mutex
	seen map[types.UID]bool
}

func newPodEnds() *podEnds { return &podEnds{seen: map[types.UID]bool{}} }

// vanished takes down what a deletion event showed.
func (e *podEnds) vanished(pod *corev1.Pod) {
	if pod == nil || !podEnded(pod) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[pod.UID] = true
}

func (e *podEnds) proven(uid types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[uid]
}

func (e *podEnds) forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.seen, uid)
}

// ignoreCanceled turns the end of the process into no error.
func ignoreCanceled(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && context.Cause(ctx) == context.Canceled {
		return nil
	}
	return err
}
