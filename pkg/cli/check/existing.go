package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// existing: what is installed already, and by whom?
func (ch *Checker) existing(ctx context.Context) []Row {
	s := &section{group: "Existing installation"}
	found, err := installation.Find(ctx, ch.Client)
	if err != nil {
		s.unseen("operators", err)
	}
	here := false
	for _, i := range found {
		switch {
		case i.Namespace == ch.Render.Namespace:
			here = true
			if i.Owner != nil {
				s.fail(CodeForeignOwner, "owner", fmt.Sprintf("the operator in namespace %s is managed by %s", i.Namespace, i.Owner), i.Owner.Upgrade)
			} else {
				s.ok("operator", fmt.Sprintf("version %s in namespace %s; install brings it up to date", orUnknown(i.Version), i.Namespace))
			}
		case i.Overlaps(ch.Render.WatchNamespaces) != "":
			s.fail(CodeOtherOperator, "other operator", fmt.Sprintf("the one in namespace %s watches %s too", i.Namespace, i.Overlaps(ch.Render.WatchNamespaces)),
				"uninstall it, or give both different --watch-namespaces")
		default:
			s.ok("other operator", fmt.Sprintf("the one in namespace %s watches other namespaces", i.Namespace))
		}
	}
	if err == nil && !here {
		s.ok("operator", "none in namespace "+ch.Render.Namespace)
	}
	crds, err := manifests.CRDs()
	if err != nil {
		s.unseen("resource definitions", err)
		return s.rows
	}
	for _, u := range crds {
		ch.existingDefinition(ctx, s, u.GetName(), servedVersions(u.Object), here)
	}
	return s.rows
}

func orUnknown(v string) string {
	if v == "" {
		return "unknown"
	}
	return v
}

// servedVersions of a rendered definition.
func servedVersions(o map[string]any) []string {
	spec, _ := o["spec"].(map[string]any)
	list, _ := spec["versions"].([]any)
	var out []string
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			if name, ok := m["name"].(string); ok {
				out = append(out, name)
			}
		}
	}
	return out
}

func (ch *Checker) existingDefinition(ctx context.Context, s *section, name string, served []string, here bool) {
	var crd apiextensionsv1.CustomResourceDefinition
	err := ch.Client.Get(ctx, client.ObjectKey{Name: name}, &crd)
	plural, _, _ := strings.Cut(name, ".")
	switch {
	case apierrors.IsNotFound(err):
		s.ok(plural, "not defined yet")
		return
	case err != nil:
		s.unseen(plural, err)
		return
	}
	if lost := Lost(crd.Status.StoredVersions, served); len(lost) > 0 {
		s.fail(CodeCRDConflict, plural, fmt.Sprintf("objects are stored as %s, which this plugin does not define", strings.Join(lost, ", ")),
			"use a plugin of the version that made them, or newer")
		return
	}
	if owner := installation.OwnerOf(&crd); owner != nil && !here {
		s.fail(CodeCRDConflict, plural, fmt.Sprintf("the definition is managed by %s", owner), owner.Upgrade)
		return
	}
	s.ok(plural, "defined, stored as "+strings.Join(crd.Status.StoredVersions, ", "))
}

// Lost lists the stored versions that are not defined any more.
func Lost(stored, defined []string) []string {
	var out []string
	for _, v := range stored {
		if !slices.Contains(defined, v) {
			out = append(out, v)
		}
	}
	return out
}
