package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// witness keeps what is seen of the groups' Leases: *agops.Engine.
type witness interface {
	// Sighted takes in a record that an event has brought.
	Sighted(a ag.Authority)
	// Look reads the record of one group.
	Look(ctx context.Context, key ag.Key) error
	Forget(uid string)
}

const (
	// lookEvery is how often a Lease that is not renewed is read.
	lookEvery = 2 * time.Second
	// unrenewed is the silence after which a Lease is read: a holder renews it every two
	// seconds unless it was told otherwise, and then it is read for nothing.
	unrenewed = 3 * time.Second
	// lookLimit is the deadline of one reading, looks how many are under way at a time.
	lookLimit = 3 * time.Second
	looks     = 16
)

// leaseWatcher lets the engine see every renewal in the moment in which it happens,
// in every controller, the one that only waits for the leadership too. So the wait
// after a holder's last renewal and the suspicion against it have been running when
// the leadership changes hands with that holder's end, which is what the loss of a node
// with both of them on it means.
//
// While this process does not lead, it reads those Leases that are not renewed, as the
// passes do while it leads: an event that does not come proves nothing.
type leaseWatcher struct {
	cache   cache.Cache
	witness witness
	clock   clock.Clock
	// elected is closed when this process begins to lead.
	elected <-chan struct{}

	mu     sync.Mutex
	leases map[ag.Key]time.Time // when each was last seen to change
}

func newLeaseWatcher(c cache.Cache, w witness, clk clock.Clock, elected <-chan struct{}) *leaseWatcher {
	return &leaseWatcher{cache: c, witness: w, clock: clk, elected: elected, leases: map[ag.Key]time.Time{}}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*leaseWatcher) NeedLeaderElection() bool { return false }

// Start watches until ctx ends. It implements manager.Runnable.
func (w *leaseWatcher) Start(ctx context.Context) error {
	informer, err := w.cache.GetInformer(ctx, &coordinationv1.Lease{})
	if err != nil {
		return fmt.Errorf("listen to Leases: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { w.saw(o) },
		UpdateFunc: func(before, o any) {
			if !resync(before, o) {
				w.saw(o)
			}
		},
		DeleteFunc: func(o any) { w.gone(o) },
	})
	if err != nil {
		return fmt.Errorf("listen to Leases: %w", err)
	}
	w.lookUntilElected(ctx)
	<-ctx.Done()
	return informer.RemoveEventHandler(registration)
}

// resync tells that the cache repeats what it holds, which is no news from the API server.
func resync(before, after any) bool {
	a, ok1 := before.(*coordinationv1.Lease)
	b, ok2 := after.(*coordinationv1.Lease)
	return ok1 && ok2 && a.ResourceVersion == b.ResourceVersion
}

// groupOf is the group whose Lease this is.
func groupOf(l *coordinationv1.Lease) (ag.Key, bool) {
	name := l.Labels[v1alpha1.LabelInstance]
	return ag.Key{Namespace: l.Namespace, Name: name}, name != "" && l.Name == v1alpha1.LeaseName(name)
}

func (w *leaseWatcher) saw(o any) {
	l, ok := o.(*coordinationv1.Lease)
	if !ok {
		return
	}
	key, ours := groupOf(l)
	if !ours {
		return
	}
	a, why := state.Decode(l, "")
	if why != "" {
		return // no proof for anyone
	}
	w.witness.Sighted(a)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leases[key] = w.clock.Now()
}

func (w *leaseWatcher) gone(o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	l, ok := o.(*coordinationv1.Lease)
	if !ok {
		return
	}
	key, ours := groupOf(l)
	if !ours {
		return
	}
	w.mu.Lock()
	delete(w.leases, key)
	w.mu.Unlock()
	// Time is lost at most, if the group itself is still there.
	if a, why := state.Decode(l, ""); why == "" {
		w.witness.Forget(a.AGUID)
	}
}

// silent are the groups whose Lease has not changed for a while.
func (w *leaseWatcher) silent() []ag.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []ag.Key
	for key, at := range w.leases {
		if w.clock.Since(at) >= unrenewed {
			out = append(out, key)
		}
	}
	return out
}

func (w *leaseWatcher) lookUntilElected(ctx context.Context) {
	log := ctrl.LoggerFrom(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.elected:
			return
		case <-w.clock.After(lookEvery):
		}
		slots := make(chan struct{}, looks)
		var wait sync.WaitGroup
		for _, key := range w.silent() {
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(ctx, lookLimit)
				defer cancel()
				if err := w.witness.Look(ctx, key); err != nil {
					log.V(1).Info("A Lease could not be read", "group", types.NamespacedName(key), "error", err.Error())
				}
			})
		}
		wait.Wait()
	}
}
