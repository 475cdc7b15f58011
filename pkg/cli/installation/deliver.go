package installation

import (
	"fmt"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Line is how one object is reported: "deployment/kubectl-mssql-controller configured".
func Line(u *unstructured.Unstructured, result string) string {
	name := strings.ToLower(u.GetKind()) + "/" + u.GetName()
	if u.GetNamespace() != "" {
		name += " -n " + u.GetNamespace()
	}
	return name + " " + result + "\n"
}

// Explain turns the API server's usual refusals into what to do next. A conflict names
// every other owner with the fields that it holds.
func Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		owners := Others(err)
		if owners == "" {
			return exit.With(exit.Conflict, "another tool owns these fields; --force-conflicts takes them over", err)
		}
		what, _, _ := strings.Cut(err.Error(), ": ")
		return exit.Errorf(exit.Conflict, "change it with that tool, or take the fields over with --force-conflicts", "%s: other owners hold fields: %s", what, owners)
	case apierrors.IsForbidden(err):
		return exit.With(exit.Forbidden, "this needs the rights of a cluster administrator", err)
	}
	return err
}

// Others lists the other owners of a conflict: "helm (spec.replicas), alice (data.x)".
func Others(err error) string {
	var managers []string
	fields := map[string][]string{}
	for _, c := range manifests.Conflicts(err) {
		if fields[c.Manager] == nil {
			managers = append(managers, c.Manager)
		}
		fields[c.Manager] = append(fields[c.Manager], c.Field)
	}
	texts := make([]string, 0, len(managers))
	for _, m := range managers {
		list := fields[m]
		if len(list) > 5 {
			list = append(list[:5:5], fmt.Sprintf("and %d more", len(list)-5))
		}
		texts = append(texts, m+" ("+strings.Join(list, ", ")+")")
	}
	return strings.Join(texts, ", ")
}

// RefuseForeign refuses to fight with the tool that manages an installation.
func RefuseForeign(i *Installation) error {
	if i == nil || i.Owner == nil {
		return nil
	}
	return exit.Errorf(exit.Refused, i.Owner.Upgrade+"; or take it over with --force-conflicts",
		"the operator in namespace %s is managed by %s", i.Namespace, i.Owner)
}

// Record writes the manifests that are applied to a file that only the user can read.
func Record(path string, objects []*unstructured.Unstructured) error {
	if path == "" {
		return nil
	}
	text, err := manifests.YAML(objects)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("record the manifests: %w", err)
	}
	return nil
}

// NeedMonitoring refuses options for the Prometheus operator in a cluster that does not
// know its kinds, before anything is applied.
func NeedMonitoring(c client.Client, o manifests.Options) error {
	if !o.Monitoring {
		return nil
	}
	for _, gvk := range manifests.MonitoringKinds() {
		_, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		switch {
		case meta.IsNoMatchError(err):
			return exit.Errorf(exit.Refused, "install the Prometheus operator first, or say --monitoring=false",
				"the cluster does not know the kind %s of %s", gvk.Kind, gvk.Group)
		case err != nil:
			return fmt.Errorf("look for the kind %s: %w", gvk.Kind, err)
		}
	}
	return nil
}
