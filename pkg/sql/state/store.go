package state

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
)

// Store is agops.Store on the API server: policy and memory in the resource, the
// record in its Lease.
type Store struct {
	// Reader must not be a cache: a memory that is older than the last pass would
	// count an attempt twice, and a record that is old is none (R1).
	Reader client.Reader
	Client client.Client
	// Records keeps what was parsed; nil parses every time.
	Records *Records
}

var _ agops.Store = Store{}

// ErrGone says that the resource is not there any more.
var ErrGone = errors.New("the availability group resource does not exist")

func (s Store) leases() Leases { return Leases{Reader: s.Reader, Writer: s.Client, Records: s.Records} }

func (s Store) get(ctx context.Context, key ag.Key) (*v1alpha1.SQLServerAvailabilityGroup, error) {
	var g v1alpha1.SQLServerAvailabilityGroup
	err := s.Reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, &g)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s/%s: %w", key.Namespace, key.Name, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("read availability group %s/%s: %w", key.Namespace, key.Name, err)
	}
	return &g, nil
}

// Load implements agops.Store. An unreadable request is no request: the controller
// tells of it; an unreadable list of fenced replicas is an error.
func (s Store) Load(ctx context.Context, key ag.Key) (agops.Loaded, error) {
	g, err := s.get(ctx, key)
	if err != nil {
		return agops.Loaded{}, err
	}
	p, err := Policy(g)
	if err != nil {
		return agops.Loaded{}, fmt.Errorf("%s/%s: %w", key.Namespace, key.Name, err)
	}
	l := agops.Loaded{Policy: p, Memory: Memory(&g.Status)}
	if r, err := Request(g); err == nil {
		l.Request = r
	}
	l.Authority, l.NoProof, err = s.leases().Read(ctx, owner(key, p))
	return l, err
}

func owner(key ag.Key, p ag.Policy) Owner {
	return Owner{Key: key, UID: p.UID, Lease: p.Timing.L}
}

// Save implements agops.Store: a patch of the status with the version that was just
// compared, so that no other writer's memory is lost.
func (s Store) Save(ctx context.Context, key ag.Key, before, after ag.Memory) error {
	g, err := s.get(ctx, key)
	if err != nil {
		return err
	}
	var expected, present v1alpha1.SQLServerAvailabilityGroupStatus
	SetMemory(&expected, before)
	SetMemory(&present, Memory(&g.Status))
	if !equality.Semantic.DeepEqual(expected, present) {
		return fmt.Errorf("save the memory: %w", agops.ErrChanged)
	}
	base := g.DeepCopy()
	SetMemory(&g.Status, after)
	err = s.Client.Status().Patch(ctx, g, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("save the memory: %w", agops.ErrChanged)
	}
	if err != nil {
		return fmt.Errorf("save the memory: %w", err)
	}
	return nil
}

// Swap implements agops.Store.
func (s Store) Swap(ctx context.Context, key ag.Key, before ag.Authority, swap ag.Swap) (ag.Authority, error) {
	g, err := s.get(ctx, key)
	if err != nil {
		return ag.Authority{}, err
	}
	p, err := Policy(g)
	if err != nil {
		return ag.Authority{}, err
	}
	a, err := s.leases().Swap(ctx, owner(key, p), before, swap.Next, swap.RenewalsMatter)
	if errors.Is(err, ErrSwapLost) {
		return a, fmt.Errorf("%w (%w)", agops.ErrChanged, err)
	}
	return a, err
}

// Kube is agops.Kube on the API server.
type Kube struct {
	Client client.Client
	// Reader reads the API server itself; nil reads as Client does. A cache may be a minute
	// old after an outage of the API server, and a label that rests on it is refused.
	Reader client.Reader
}

var _ agops.Kube = Kube{}

// SetRole implements agops.Kube. A pod that is gone, or another one by now, has no
// label to take away, and is no pod to publish.
func (k Kube) SetRole(ctx context.Context, key ag.Key, replica, podUID string, role ag.Role, readable bool) error {
	var pod corev1.Pod
	reader := k.Reader
	if reader == nil {
		reader = k.Client
	}
	err := reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: replica}, &pod)
	if apierrors.IsNotFound(err) || (err == nil && podUID != "" && string(pod.UID) != podUID) {
		if role == ag.RoleUnknown {
			return nil
		}
		return fmt.Errorf("label pod %s/%s: it is gone", key.Namespace, replica)
	}
	if err != nil {
		return fmt.Errorf("label pod %s/%s: %w", key.Namespace, replica, err)
	}
	base := pod.DeepCopy()
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	set := func(label, value string) {
		if value == "" {
			delete(pod.Labels, label)
			return
		}
		pod.Labels[label] = value
	}
	set(v1alpha1.LabelRole, roleLabel(role))
	set(v1alpha1.LabelReadable, map[bool]string{true: "true"}[readable])
	// The version in the patch makes the API server refuse it for a pod that took the name meanwhile.
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := k.Client.Patch(ctx, &pod, patch); err != nil && !(role == ag.RoleUnknown && apierrors.IsNotFound(err)) {
		return fmt.Errorf("label pod %s/%s: %w", key.Namespace, replica, err)
	}
	return nil
}

func roleLabel(r ag.Role) string {
	switch r {
	case ag.RolePrimary:
		return v1alpha1.RolePrimary
	case ag.RoleSecondary:
		return v1alpha1.RoleSecondary
	case ag.RoleUnknown, ag.RoleResolving, ag.RoleNone:
	}
	return ""
}
