// Package renewal tells for how long a Lease was not renewed. Both moments are the API
// server's own: when it took the newest change in, which stands in the object's managed
// fields, and now, which stands in its answers. The clocks of the user's machine, of the
// operator's and of the nodes do not matter.
package renewal

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// lockMargin is added to the lock's own duration: another controller takes over within it.
const lockMargin = 5 * time.Second

// defaultLock is for a lock that names no duration.
const defaultLock = 15 * time.Second

// Clock is the API server's, as its newest answer told it; not ok before one came.
type Clock interface {
	ServerTime() (now time.Time, ok bool)
}

// Written is when the API server took the object's newest change in, by its own clock and
// in whole seconds; not ok where that is not recorded.
func Written(fields []metav1.ManagedFieldsEntry) (at time.Time, ok bool) {
	for _, f := range fields {
		if f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at, !at.IsZero()
}

// Age is for how long the Lease was not written, to a second; not known when either moment
// is not. It is never negative.
func Age(l *coordinationv1.Lease, clock Clock) (age time.Duration, known bool) {
	written, ok := Written(l.ManagedFields)
	if !ok {
		return 0, false
	}
	now, ok := clock.ServerTime()
	if !ok {
		return 0, false
	}
	return max(0, now.Sub(written)), true
}

// Lock is the Lease that the acting controller renews every second.
type Lock struct {
	// Age of the newest renewal; a Lock whose Known is false says nothing.
	Age   time.Duration
	Known bool
	// Limit after which another controller would have taken over.
	Limit time.Duration
}

// Silent tells that no controller acts: the lock is older than any that is in use.
func (l Lock) Silent() bool { return l.Known && l.Age > l.Limit }

// ReadLock looks at the lock in the operator's namespace. An error leaves a Lock that says
// nothing.
func ReadLock(ctx context.Context, c client.Reader, namespace string, clock Clock) (Lock, error) {
	var l coordinationv1.Lease
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: manifests.Name}, &l); err != nil {
		return Lock{}, fmt.Errorf("read the operator's lock: %w", err)
	}
	out := Lock{Limit: defaultLock + lockMargin}
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		out.Limit = time.Duration(*s)*time.Second + lockMargin
	}
	out.Age, out.Known = Age(&l, clock)
	return out, nil
}
