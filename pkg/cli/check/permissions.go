package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// permissions asks the API server whether this user may apply each kind of the installation.
func (ch *Checker) permissions(ctx context.Context) []Row {
	s := &section{group: "Permissions"}
	objects, err := manifests.Render(ch.Render)
	if err != nil {
		s.unseen("installation", err)
		return s.rows
	}
	wanted := needed(ch, objects)
	var denied []string
	for _, a := range wanted {
		allowed, err := ch.may(ctx, a)
		if err != nil {
			s.unseen("review of your rights", err)
			return s.rows
		}
		if !allowed {
			denied = append(denied, describeAccess(a))
		}
	}
	if len(denied) > 0 {
		s.fail(CodePermission, "to install", "you may not "+strings.Join(denied, "; "), "let a cluster administrator install, or grant these verbs")
		return s.rows
	}
	s.ok("to install", fmt.Sprintf("you may apply all %d kinds", len(kinds(objects))))
	grant := authorizationv1.ResourceAttributes{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Verb: "escalate"}
	all := authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"}
	if ok, err := ch.may(ctx, grant); err == nil && !ok {
		if ok, err := ch.may(ctx, all); err == nil && !ok {
			s.warn(CodePermission, "to grant", "you may not grant rights that you do not have yourself", "the API server refuses the operator's roles unless you hold all their rules; use a cluster administrator's account")
			return s.rows
		}
	}
	s.ok("to grant", "you may give the operator its rights")
	return s.rows
}

func kinds(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, u := range objects {
		if !slices.Contains(out, u.GetKind()) {
			out = append(out, u.GetKind())
		}
	}
	return out
}

// needed is one question for each kind, namespace and verb. Server-side apply is a
// patch, and a create as well while the object is not there.
func needed(ch *Checker, objects []*unstructured.Unstructured) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, u := range objects {
		gvk := u.GroupVersionKind()
		plural := strings.ToLower(gvk.Kind) + "s"
		switch {
		case strings.HasSuffix(gvk.Kind, "Policy"):
			plural = strings.ToLower(strings.TrimSuffix(gvk.Kind, "y")) + "ies"
		case gvk.Group == apiextensionsv1.GroupName:
			plural = "customresourcedefinitions"
		}
		for _, verb := range []string{"create", "patch"} {
			a := authorizationv1.ResourceAttributes{Group: gvk.Group, Resource: plural, Verb: verb, Namespace: u.GetNamespace()}
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

func (ch *Checker) may(ctx context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
	if err := ch.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask whether you may %s: %w", describeAccess(a), err)
	}
	return review.Status.Allowed, nil
}

func describeAccess(a authorizationv1.ResourceAttributes) string {
	what := a.Verb + " " + a.Resource
	if a.Group != "" {
		what += "." + a.Group
	}
	if a.Namespace != "" {
		what += " in namespace " + a.Namespace
	}
	return what
}
