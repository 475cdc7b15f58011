// Package installation finds the operators in a cluster and tells about each of them:
// where it is, which version, who manages it, what it watches. The verbs install,
// upgrade, uninstall, check, version and report share it.
package installation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Installation is one operator.
type Installation struct {
	Namespace  string
	Deployment appsv1.Deployment
	// Settings of the last install; nil when there are none, with the reason in SettingsError.
	Settings      *manifests.Settings
	SettingsError string
	Image         string
	// Version from the image's tag, else from the settings when they name this image;
	// empty when neither tells one.
	Version string
	Owner   *Owner
}

// Find lists the operators of the cluster by namespace. Where deployments may not be
// listed in all namespaces, the usual namespace alone is looked at.
func Find(ctx context.Context, c client.Reader) ([]Installation, error) {
	var list appsv1.DeploymentList
	err := c.List(ctx, &list, client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue})
	if apierrors.IsForbidden(err) {
		var d appsv1.Deployment
		if one := c.Get(ctx, client.ObjectKey{Namespace: manifests.DefaultNamespace, Name: manifests.Name}, &d); one == nil {
			list.Items, err = []appsv1.Deployment{d}, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("look for operators: %w", err)
	}
	out := make([]Installation, 0, len(list.Items))
	for _, d := range list.Items {
		if d.Name == manifests.Name {
			out = append(out, describe(ctx, c, d))
		}
	}
	slices.SortFunc(out, func(a, b Installation) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out, nil
}

// Get looks at one namespace; nil when no operator is there.
func Get(ctx context.Context, c client.Reader, namespace string) (*Installation, error) {
	var d appsv1.Deployment
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: manifests.Name}, &d)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for an operator in namespace %s: %w", namespace, err)
	}
	i := describe(ctx, c, d)
	return &i, nil
}

func describe(ctx context.Context, c client.Reader, d appsv1.Deployment) Installation {
	i := Installation{Namespace: d.Namespace, Deployment: d, Owner: OwnerOf(&d)}
	if cs := d.Spec.Template.Spec.Containers; len(cs) > 0 {
		i.Image = cs[0].Image
	}
	var cm corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: manifests.SettingsName}, &cm)
	if err == nil {
		var s manifests.Settings
		if s, err = manifests.ReadSettings(&cm); err == nil {
			i.Settings = &s
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		i.SettingsError = "it was installed by a version that kept no settings, or not by install"
	case err != nil:
		i.SettingsError = err.Error()
	}
	i.Version = manifests.ImageVersion(i.Image)
	if _, err := Parse(i.Version); err != nil {
		i.Version = ""
		if i.Settings != nil && i.Settings.Options.Image == i.Image {
			i.Version = i.Settings.Version
		}
	}
	return i
}

// Parse reads a version like 1.4.0 or 1.4.0-rc.1.
func Parse(v string) (*version.Version, error) {
	p, err := version.ParseSemantic(strings.TrimPrefix(v, "v"))
	if err != nil {
		return nil, fmt.Errorf("version %q: %w", v, err)
	}
	return p, nil
}

// WatchNamespaces that the operator looks at; empty means all. What runs counts, not the settings.
func (i Installation) WatchNamespaces() []string {
	for _, c := range i.Deployment.Spec.Template.Spec.Containers {
		for _, a := range c.Args {
			if v, ok := strings.CutPrefix(a, "--watch-namespaces="); ok && v != "" {
				return strings.Split(v, ",")
			}
		}
	}
	return nil
}

// Watches tells whether the operator looks at a namespace.
func (i Installation) Watches(namespace string) bool {
	w := i.WatchNamespaces()
	return len(w) == 0 || slices.Contains(w, namespace)
}

// Overlaps names a namespace that both would look at; "every namespace" when one of
// them looks at all; empty when they do not meet.
func (i Installation) Overlaps(watch []string) string {
	mine := i.WatchNamespaces()
	if len(mine) == 0 || len(watch) == 0 {
		if len(mine) == 0 && len(watch) == 0 {
			return "every namespace"
		}
		return strings.Join(append(slices.Clone(mine), watch...), ", ")
	}
	var both []string
	for _, ns := range watch {
		if slices.Contains(mine, ns) {
			both = append(both, ns)
		}
	}
	return strings.Join(both, ", ")
}

// Replicas wanted and ready.
func (i Installation) Replicas() (ready, wanted int32) {
	wanted = 1
	if r := i.Deployment.Spec.Replicas; r != nil {
		wanted = *r
	}
	return i.Deployment.Status.ReadyReplicas, wanted
}
