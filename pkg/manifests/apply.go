package manifests

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// Object as the API server answered it.
	Object *unstructured.Unstructured
	// Before is the object as it was; nil when there was none.
	Before *unstructured.Unstructured
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
	before := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	err := c.Get(ctx, client.ObjectKeyFromObject(u), before)
	if apierrors.IsNotFound(err) {
		before = nil
	} else if err != nil {
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
	case before == nil:
		result = Created
	case same(before, sent, o.DryRun):
		result = Unchanged
	}
	return Applied{Object: sent, Before: before, Result: result}, nil
}

// same tells whether applying changed nothing. The version tells it, but for a dry
// run, which keeps the version whatever it would change.
func same(before, after *unstructured.Unstructured, dryRun bool) bool {
	if !dryRun {
		return after.GetResourceVersion() == before.GetResourceVersion()
	}
	return equality.Semantic.DeepEqual(Bare(before).Object, Bare(after).Object)
}

// Bare is a copy without what the API server keeps of its own: versions, owners of
// fields, status. Two of them compare by what people have written.
func Bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	c := u.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(c.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(c.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	unstructured.RemoveNestedField(c.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	if len(c.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(c.Object, "metadata", "annotations")
	}
	unstructured.RemoveNestedField(c.Object, "status")
	return c
}

// Conflict is one field that somebody else owns.
type Conflict struct {
	Manager, Field string
}

var managerName = regexp.MustCompile(`^conflict with "([^"]+)"`)

// Conflicts lists the owners named by a refused server-side apply, sorted.
func Conflicts(err error) []Conflict {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var out []Conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := cause.Message
		if m := managerName.FindStringSubmatch(cause.Message); m != nil {
			manager = m[1]
		}
		out = append(out, Conflict{Manager: manager, Field: strings.TrimPrefix(cause.Field, ".")})
	}
	slices.SortFunc(out, func(a, b Conflict) int {
		return strings.Compare(a.Manager+"\x00"+a.Field, b.Manager+"\x00"+b.Field)
	})
	return slices.Compact(out)
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
			return Established(&crd), nil
		})
		if err != nil {
			return fmt.Errorf("wait until the API server serves %s: %w", u.GetName(), err)
		}
	}
	return nil
}

// Established tells whether the API server serves the kind.
func Established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, cond := range crd.Status.Conditions {
		if cond.Type == apiextensionsv1.Established {
			return cond.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// NoSuchKind tells whether the cluster does not know our kinds.
func NoSuchKind(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }
