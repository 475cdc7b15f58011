package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// prunable kinds, in the order in which they are removed. Namespaces and resource
// definitions are never among them: data hangs on those.
func prunable() []schema.GroupVersionKind {
	const rbac = "rbac.authorization.k8s.io"
	return append(manifests.MonitoringKinds(), []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: rbac, Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: rbac, Version: "v1", Kind: "RoleBinding"},
		{Group: rbac, Version: "v1", Kind: "ClusterRole"},
		{Group: rbac, Version: "v1", Kind: "Role"},
		{Version: "v1", Kind: "ServiceAccount"},
		{Version: "v1", Kind: "ConfigMap"},
	}...)
}

// Leftovers lists what an earlier installation in this namespace has made and the
// rendered objects do not contain any more. It goes by the label of the installation;
// objects of versions that did not set it yet are known by their namespace, or by a
// binding to this operator's account. Kinds that may not be listed are told in skipped.
func Leftovers(ctx context.Context, c client.Client, namespace string, rendered []*unstructured.Unstructured) (left []*unstructured.Unstructured, skipped []string, err error) {
	wanted := map[string]bool{}
	for _, u := range rendered {
		wanted[identity(u)] = true
	}
	bound := map[string]bool{}
	for _, gvk := range prunable() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := c.List(ctx, list, client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue})
		switch {
		case manifests.NoSuchKind(err) && slices.Contains(manifests.MonitoringKinds(), gvk):
			continue // most clusters do not know them
		case apierrors.IsForbidden(err) || manifests.NoSuchKind(err):
			skipped = append(skipped, fmt.Sprintf("%s: %v", gvk.Kind, err))
			continue
		case err != nil:
			return left, skipped, fmt.Errorf("list leftovers of kind %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			u.SetGroupVersionKind(gvk)
			if ours(u, namespace, bound) && !wanted[identity(u)] && OwnerOf(u) == nil {
				left = append(left, u)
			}
		}
	}
	return left, skipped, nil
}

// ours tells whether an object belongs to the installation in this namespace. bound
// collects the roles that bindings to its account name.
func ours(u *unstructured.Unstructured, namespace string, bound map[string]bool) bool {
	label, labelled := u.GetLabels()[manifests.LabelInstallation]
	mine := label == namespace
	if !labelled {
		mine = u.GetNamespace() == namespace
	}
	switch u.GetKind() {
	case "ClusterRoleBinding", "RoleBinding":
		if !labelled && !mine {
			mine = bindsAccount(u, namespace)
		}
		if mine {
			kind, _, _ := unstructured.NestedString(u.Object, "roleRef", "kind")
			name, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
			in := u.GetNamespace()
			if kind == "ClusterRole" {
				in = ""
			}
			bound[kind+"/"+in+"/"+name] = true
		}
	case "ClusterRole", "Role":
		if !labelled && !mine {
			mine = bound[u.GetKind()+"/"+u.GetNamespace()+"/"+u.GetName()]
		}
	}
	return mine
}

func bindsAccount(u *unstructured.Unstructured, namespace string) bool {
	subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
	return slices.ContainsFunc(subjects, func(s any) bool {
		m, ok := s.(map[string]any)
		return ok && m["kind"] == rbacv1.ServiceAccountKind && m["name"] == manifests.Name && m["namespace"] == namespace
	})
}

func identity(u *unstructured.Unstructured) string {
	gvk := u.GroupVersionKind()
	return strings.Join([]string{gvk.Group, gvk.Kind, u.GetNamespace(), u.GetName()}, "/")
}

// Remove deletes objects in order. One that is gone is fine; every failure is in the error.
func Remove(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, report func(u *unstructured.Unstructured, result string)) error {
	var errs []error
	for _, u := range objects {
		result := "deleted"
		if err := c.Delete(ctx, u, client.PropagationPolicy("Foreground")); err != nil {
			if !manifests.NoSuchKind(err) { // its definition may be gone before it
				errs = append(errs, fmt.Errorf("delete %s: %w", manifests.Describe(u), err))
				continue
			}
			result = "not found"
		}
		report(u, result)
	}
	return errors.Join(errs...)
}
