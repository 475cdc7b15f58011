package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Leases reads and swaps the authority of availability groups.
type Leases struct {
	// Reader must not be a cache: a GET with resourceVersion unset is a quorum read
	// (R1). In a manager it is the APIReader.
	Reader client.Reader
	Writer client.Writer
	// Records keeps what was parsed; nil parses every time.
	Records *Records
}

// Owner is whose Lease it is.
type Owner struct {
	Key ag.Key
	UID string
	// Lease is L, for people.
	Lease time.Duration
}

// ErrSwapLost says that the record has changed since it was read: observe again (R1).
var ErrSwapLost = errors.New("the record has changed since it was read")

// Read reads the authority from the API server, never from a cache. Why it is no
// proof, if it is none, comes with it.
func (s Leases) Read(ctx context.Context, o Owner) (ag.Authority, string, error) {
	l, err := s.get(ctx, o)
	if err != nil {
		return ag.Authority{}, "", err
	}
	a, why := s.Records.decode(o.Key, l, o.UID)
	return a, why, nil
}

func (s Leases) get(ctx context.Context, o Owner) (*coordinationv1.Lease, error) {
	var l coordinationv1.Lease
	err := s.Reader.Get(ctx, types.NamespacedName{Namespace: o.Key.Namespace, Name: v1alpha1.LeaseName(o.Key.Name)}, &l)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Lease %s/%s: %w", o.Key.Namespace, v1alpha1.LeaseName(o.Key.Name), err)
	}
	return &l, nil
}

// swapAttempts bounds the repetitions of a swap that loses to renewals alone: a
// holder renews every two seconds, so two in a row are already rare.
const swapAttempts = 5

// Swap replaces the record by next, if the record is still before (R1). Where there
// is no object, it is created, bound to the owner; the error of kind ErrSwapLost says
// that somebody else was faster. A swap that loses to renewals alone is repeated at
// once, unless renewalsMatter. An unclear end (time-out) is an error that is not
// ErrSwapLost: it may or may not have been made; read again.
//
// The authority that is returned is the new record with its version. Its count of swaps is
// above those of before and next: whoever has seen a higher one puts that into next (R4).
func (s Leases) Swap(ctx context.Context, o Owner, before, next ag.Authority, renewalsMatter bool) (ag.Authority, error) {
	next = next.Clone()
	next.AGUID = o.UID
	op := fmt.Sprintf("swap Lease %s/%s", o.Key.Namespace, v1alpha1.LeaseName(o.Key.Name))
	for range swapAttempts {
		l, err := s.get(ctx, o)
		if err != nil {
			return ag.Authority{}, err
		}
		if l == nil {
			if before.Exists || before.Version != "" {
				return ag.Authority{}, fmt.Errorf("%s: %w: the Lease is gone", op, ErrSwapLost)
			}
			l = newLease(o)
		} else {
			now, _ := Decode(l, o.UID)
			switch {
			case now.Version == before.Version:
			case before.Exists && now.Exists && SameButRenewed(before, now) && !renewalsMatter:
			default:
				return ag.Authority{}, fmt.Errorf("%s: %w", op, ErrSwapLost)
			}
			if !now.Exists {
				bind(l, o)
			}
			next.Swaps = max(next.Swaps, now.Swaps)
		}
		// Each swap is another text, so that it is written even where it changes nothing else:
		// R18 wants the answer to a write of this step.
		made := next
		made.Swaps = max(next.Swaps, before.Swaps) + 1
		if err := Encode(l, made, o.Lease); err != nil {
			return ag.Authority{}, err
		}
		if l.ResourceVersion == "" {
			err = s.Writer.Create(ctx, l)
		} else {
			err = s.Writer.Update(ctx, l)
		}
		switch {
		case err == nil:
			a, why := Decode(l, o.UID)
			if !a.Exists {
				return ag.Authority{}, fmt.Errorf("%s: the answer is no record: %s", op, why)
			}
			return a, nil
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			continue // who was faster? the next read tells
		default:
			return ag.Authority{}, fmt.Errorf("%s: %w", op, err)
		}
	}
	return ag.Authority{}, fmt.Errorf("%s: %w: lost %d times to renewals", op, ErrSwapLost, swapAttempts)
}

func newLease(o Owner) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Key.Namespace,
		Name:      v1alpha1.LeaseName(o.Key.Name),
	}}
	bind(l, o)
	return l
}

// bind makes the Lease the owner's: a re-created resource takes over the old one's
// Lease, which would otherwise be collected with its dead owner.
func bind(l *coordinationv1.Lease, o Owner) {
	yes := true
	l.Labels = map[string]string{
		v1alpha1.LabelName: v1alpha1.AppName, v1alpha1.LabelInstance: o.Key.Name,
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelAG: o.Key.Name,
	}
	l.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "SQLServerAvailabilityGroup",
		Name: o.Key.Name, UID: types.UID(o.UID), Controller: &yes, BlockOwnerDeletion: &yes,
	}}
}
