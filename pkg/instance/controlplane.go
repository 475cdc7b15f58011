//go:build linux

package instance

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// controlPlane is the API server as one manager needs it: its own Lease, and one
// annotation of its own resource. The pod's account may do no more than get and update
// the one, and get the other, both by name.
type controlPlane interface {
	// readLease is a quorum read; nil without an error when there is no Lease.
	readLease(ctx context.Context) (*coordinationv1.Lease, error)
	// updateLease writes with the resourceVersion of l; a conflict is an API error.
	updateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
	// swap replaces the record (R1, R18).
	swap(ctx context.Context, before, next ag.Authority) (ag.Authority, error)
	fencedAnnotation(ctx context.Context) (string, error)
}

type kubeControlPlane struct {
	client client.Client
	cfg    Config
}

// newControlPlane connects lazily: no request is made before the first call, so that a
// manager starts without an API server.
func newControlPlane(kubeconfig string, cfg Config) (*kubeControlPlane, error) {
	var rc *rest.Config
	var err error
	if kubeconfig != "" {
		rc, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	} else {
		rc, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	rc.UserAgent = "kubectl-mssql-instance"
	rc.QPS, rc.Burst = -1, 0                 // a renewal must never wait for a client-side budget
	rc.ContentType = runtime.ContentTypeJSON // small objects, readable on the wire
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	// The kinds are known: no discovery, which could fail at the wrong moment.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind(KindAvailabilityGroup), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind(KindInstance), meta.RESTScopeNamespace)
	c, err := client.New(rc, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return &kubeControlPlane{client: c, cfg: cfg}, nil
}

func (k *kubeControlPlane) readLease(ctx context.Context) (*coordinationv1.Lease, error) {
	var l coordinationv1.Lease
	err := k.client.Get(ctx, types.NamespacedName{Namespace: k.cfg.Namespace, Name: k.cfg.Lease}, &l)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Lease %s: %w", k.cfg.Lease, err)
	}
	return &l, nil
}

func (k *kubeControlPlane) updateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	out := l.DeepCopy()
	if err := k.client.Update(ctx, out); err != nil {
		return nil, fmt.Errorf("renew Lease %s: %w", k.cfg.Lease, err)
	}
	return out, nil
}

func (k *kubeControlPlane) swap(ctx context.Context, before, next ag.Authority) (ag.Authority, error) {
	leases := state.Leases{Reader: k.client, Writer: k.client}
	owner := state.Owner{
		Key: ag.Key{Namespace: k.cfg.Namespace, Name: k.cfg.Name}, UID: k.cfg.UID, Lease: k.cfg.Timing.L.Duration,
	}
	return leases.Swap(ctx, owner, before, next, false)
}

func (k *kubeControlPlane) fencedAnnotation(ctx context.Context) (string, error) {
	var o metav1.PartialObjectMetadata
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.cfg.Kind))
	err := k.client.Get(ctx, types.NamespacedName{Namespace: k.cfg.Namespace, Name: k.cfg.Name}, &o)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("the resource %s is gone", k.cfg.Name)
	case err != nil:
		return "", fmt.Errorf("read the annotations of %s: %w", k.cfg.Name, err)
	case string(o.UID) != k.cfg.UID:
		return "", fmt.Errorf("%s was made anew: this pod belongs to the old one", k.cfg.Name)
	}
	return o.Annotations[v1alpha1.AnnotationFenced], nil
}
