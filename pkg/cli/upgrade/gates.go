package upgrade

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/check"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
)

// step refuses to go back and to leave a minor version out: resource definitions and
// the record in the Lease are made to be read by the next minor version, no further.
// Versions that cannot be read (a tag of one's own) are let pass.
func step(from, to string) error {
	f, err := installation.Parse(from)
	if err != nil {
		return nil //nolint:nilerr // nothing to compare with
	}
	t, err := installation.Parse(to)
	if err != nil {
		return nil //nolint:nilerr // nothing to compare with
	}
	switch {
	case t.LessThan(f):
		return exit.Errorf(exit.Refused, "use the plugin of version "+from+" or newer", "the operator is of version %s; %s would be a step back", from, to)
	case t.Major() == f.Major() && t.Minor() > f.Minor()+1:
		return exit.Errorf(exit.Refused, fmt.Sprintf("upgrade to %d.%d first, with the plugin of that version", f.Major(), f.Minor()+1),
			"from %s to %s leaves a minor version out", from, to)
	case t.Major() == f.Major()+1 && t.Minor() > 0, t.Major() > f.Major()+1:
		return exit.Errorf(exit.Refused, fmt.Sprintf("upgrade to %d.0 first, with the plugin of that version", f.Major()+1),
			"from %s to %s leaves a version out", from, to)
	}
	return nil
}

// stored refuses when objects are stored in a version that the new definitions lack.
func stored(ctx context.Context, c client.Reader, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		var live, next apiextensionsv1.CustomResourceDefinition
		err := c.Get(ctx, client.ObjectKey{Name: u.GetName()}, &live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the definition %s: %w", u.GetName(), err)
		}
		if err := decode(u, &next); err != nil {
			return err
		}
		var defined []string
		for _, v := range next.Spec.Versions {
			defined = append(defined, v.Name)
		}
		if lost := check.Lost(live.Status.StoredVersions, defined); len(lost) > 0 {
			return exit.Errorf(exit.Refused, "rewrite all objects in a version that stays, then take the old one out of status.storedVersions",
				"objects of %s are stored as %s, which this version does not define", u.GetName(), strings.Join(lost, ", "))
		}
	}
	return nil
}
