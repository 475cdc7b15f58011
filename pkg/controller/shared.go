package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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
//
// It listens in every controller, the one that only waits for the leadership too: a
// pod that ends while the leadership changes hands has ended all the same.
type podEnds struct {
	mu    sync.Mutex
	seen  map[types.UID]bool
	order []types.UID
}

// mostEnds bounds what is remembered; the oldest goes first.
const mostEnds = 4096

func newPodEnds() *podEnds { return &podEnds{seen: map[types.UID]bool{}} }

// vanished takes down what a deletion event showed.
func (e *podEnds) vanished(pod *corev1.Pod) {
	if pod == nil || !podEnded(pod) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[pod.UID] {
		return
	}
	e.seen[pod.UID] = true
	e.order = append(e.order, pod.UID)
	if len(e.order) > mostEnds {
		delete(e.seen, e.order[0])
		e.order = e.order[1:]
	}
}

func (e *podEnds) proven(uid types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[uid]
}

// Start listens until ctx ends. It implements manager.Runnable.
func (w endsWatcher) Start(ctx context.Context) error {
	informer, err := w.cache.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("listen to pods: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if pod, ok := o.(*corev1.Pod); ok {
			w.ends.vanished(pod)
		}
	}})
	if err != nil {
		return fmt.Errorf("listen to pods: %w", err)
	}
	<-ctx.Done()
	return informer.RemoveEventHandler(registration)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (endsWatcher) NeedLeaderElection() bool { return false }

// endsWatcher feeds podEnds whether or not this process leads.
type endsWatcher struct {
	cache cache.Cache
	ends  *podEnds
}

// ignoreCanceled turns the end of the process into no error.
func ignoreCanceled(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return nil
	}
	return err
}
