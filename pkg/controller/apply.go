package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller/desired"
)

// errNameTaken: an object of that name is there and belongs to somebody else.
var errNameTaken = errors.New("the name is taken")

// apply makes the object as desired and says whether it had to write. An object at
// rest costs a look into the cache and no call. What somebody else changed in the
// fields that we set is set back; their other fields stay.
func (s *shared) apply(ctx context.Context, obj client.Object) (bool, error) {
	want, digest, err := desired.Applicable(obj)
	if err != nil {
		return false, err
	}
	what := fmt.Sprintf("%s %s", want.GetKind(), want.GetName())
	live, err := s.live(obj)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	err = s.Get(ctx, client.ObjectKeyFromObject(obj), live)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return false, fmt.Errorf("read %s: %w", what, err)
	default:
		if err := sameOwner(obj, live); err != nil {
			return false, fmt.Errorf("%s: %w", what, err)
		}
		if live.GetAnnotations()[v1alpha1.AnnotationApplied] == digest && covers(obj, live) {
			return false, nil
		}
	}
	err = s.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return false, fmt.Errorf("apply %s: %w", what, err)
	}
	return true, nil
}

func (s *shared) live(obj client.Object) (client.Object, error) {
	o, err := s.Scheme.New(obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil, err
	}
	live, ok := o.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", o)
	}
	return live, nil
}

// sameOwner refuses to take over an object that is not ours: a Service of the same
// name that a user made stays theirs. One that lost its owner but carries our
// labels (restored from a backup) is adopted.
func sameOwner(want, live client.Object) error {
	wanted := metav1.GetControllerOf(want)
	if wanted == nil {
		return nil
	}
	have := metav1.GetControllerOf(live)
	if have != nil && have.UID == wanted.UID {
		return nil
	}
	if have != nil {
		return fmt.Errorf("%w: it belongs to %s %s", errNameTaken, have.Kind, have.Name)
	}
	l := live.GetLabels()
	if l[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy && l[v1alpha1.LabelInstance] == want.GetLabels()[v1alpha1.LabelInstance] {
		return nil
	}
	return fmt.Errorf("%w: an object of that name was made by somebody else", errNameTaken)
}

// covers tells whether everything that want sets is so in live.
func covers(want, live client.Object) bool {
	w, ok := want.DeepCopyObject().(client.Object)
	if !ok {
		return false
	}
	// The cache does not fill in kind and version.
	w.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	l, ok := live.DeepCopyObject().(client.Object)
	if !ok {
		return false
	}
	l.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return equality.Semantic.DeepDerivative(w, l)
}
