package desired

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// Applicable is the object as it is sent in a server-side apply: without status
// and empty fields, with the annotation v1alpha1.AnnotationApplied that names
// its content.
func Applicable(obj runtime.Object) (*unstructured.Unstructured, string, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, "", fmt.Errorf("convert %T: %w", obj, err)
	}
	u := &unstructured.Unstructured{Object: m}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	d := DigestOf(u.Object)
	a := u.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[v1alpha1.AnnotationApplied] = d
	u.SetAnnotations(a)
	return u, d, nil
}
