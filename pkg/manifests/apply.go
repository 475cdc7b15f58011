package manifests

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Result tells what applying one object did.
type Result string

const (
	Created    Result = "created"
	Configured Result = "configured"
	Unchanged  Result = "unchanged"
)

// Applied is one object with its result.
type Applied struct {
	Object *unstructured.Unstructured
	Result Result
}

// ApplyOptions of Apply.
type ApplyOptions struct {
	// ForceConflicts takes over fields that another manager owns.
	ForceConflicts bool
	// DryRun asks the server and changes nothing.
	DryRun bool
	// Report is told about each object as it is applied; may be nil.
	Report func(Applied)
}

// Apply sends the objects by server-side apply in the given order, and waits after
// the CRDs until the API server serves them.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, o ApplyOptions) ([]Applied, error) {
	var done []Applied
	crdsPending := false
	for _, u := range objects {
		isCRD := u.GetKind() == "CustomResourceDefinition"
		if crdsPending && !isCRD && !o.DryRun {
			if err := waitEstablished(ctx, c, objects); err != nil {
				return done, err
			}
			crdsPending = false
		}
		crdsPending = crdsPending || isCRD
		a, err := applyOne(ctx, c, u, o)
		if err != nil {
			return done, err
		}
		done = append(done, a)
		if o.Report != nil {
			o.Report(a)
		}
	}
	if crdsPending && !o.DryRun {
		return done, waitEstablished(ctx, c, objects)
	}
	return done, nil
}

func applyOne(ctx context.Context, c client.Client, u *unstructured.Unstructured, o ApplyOptions) (Applied, error) {
	what := Describe(u)
	before := u.DeepCopy()
	before.Object = map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}
	err := c.Get(ctx, client.ObjectKeyFromObject(u), before)
	existed := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return Applied{}, fmt.Errorf("read %s: %w", what, err)
	}
	opts := []client.ApplyOption{client.FieldOwner(FieldManager)}
	if o.ForceConflicts {
		opts = append(opts, client.ForceOwnership)
	}
	if o.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	sent := u.DeepCopy()
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), opts...); err != nil {
		if o.DryRun && apierrors.IsNotFound(err) { // its namespace is not there yet
			return Applied{Object: u, Result: Created}, nil
		}
		return Applied{}, fmt.Errorf("apply %s: %w", what, err)
	}
	result := Configured
	switch {
	case !existed:
		result = Created
	case sent.GetResourceVersion() == before.GetResourceVersion():
		result = Unchanged
	}
	return Applied{Object: sent, Result: result}, nil
}

// Describe names an object for people: "Deployment mssql-system/kubectl-mssql-controller".
func Describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() != "" {
		return fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName())
	}
	return fmt.Sprintf("%s %s", u.GetKind(), u.GetName())
}

func waitEstablished(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := c.Get(ctx, client.ObjectKey{Name: u.GetName()}, &crd); err != nil {
				return false, client.IgnoreNotFound(err)
			}
			for _, cond := range crd.Status.Conditions {
				if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
		if err != nil {
			return fmt.Errorf("wait until the API server serves %s: %w", u.GetName(), err)
		}
	}
	return nil
}

// NoSuchKind tells whether the cluster does not know our kinds.
func NoSuchKind(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }
