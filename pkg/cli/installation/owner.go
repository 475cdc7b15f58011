package installation

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner is a tool that manages an object and would undo what we change.
type Owner struct {
	// Tool's name: Helm, OLM, Argo CD, Flux.
	Tool string
	// Object of the tool, when the labels name it.
	Object string
	// Upgrade says how that tool brings in another version.
	Upgrade string
}

// OwnerOf reads the marks that Helm, OLM, Argo CD and Flux leave; nil when there are
// none. A tool that uses another one comes first: Flux and Argo CD install Helm charts.
func OwnerOf(o client.Object) *Owner {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	switch {
	case labels["helm.toolkit.fluxcd.io/name"] != "":
		name := labels["helm.toolkit.fluxcd.io/namespace"] + "/" + labels["helm.toolkit.fluxcd.io/name"]
		return &Owner{"Flux", "HelmRelease " + name, "change spec.chart.spec.version of HelmRelease " + name}
	case labels["kustomize.toolkit.fluxcd.io/name"] != "":
		name := labels["kustomize.toolkit.fluxcd.io/namespace"] + "/" + labels["kustomize.toolkit.fluxcd.io/name"]
		return &Owner{"Flux", "Kustomization " + name, "change the manifests in the repository of Kustomization " + name}
	case annotations["argocd.argoproj.io/tracking-id"] != "":
		app, _, _ := strings.Cut(annotations["argocd.argoproj.io/tracking-id"], ":")
		return &Owner{"Argo CD", "Application " + app, "change the version in the source of Application " + app}
	case labels["argocd.argoproj.io/instance"] != "":
		app := labels["argocd.argoproj.io/instance"]
		return &Owner{"Argo CD", "Application " + app, "change the version in the source of Application " + app}
	case labels["olm.owner"] != "":
		return &Owner{"OLM", labels["olm.owner.kind"] + " " + labels["olm.owner"], "approve the install plan of its Subscription, or change the channel"}
	case labels["app.kubernetes.io/managed-by"] == "Helm" || annotations["meta.helm.sh/release-name"] != "":
		release, ns := annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"]
		if release == "" {
			return &Owner{"Helm", "", "use helm upgrade"}
		}
		return &Owner{"Helm", "release " + ns + "/" + release, "helm upgrade " + release + " -n " + ns}
	}
	for k := range labels {
		if strings.HasPrefix(k, "operators.coreos.com/") {
			return &Owner{"OLM", "", "approve the install plan of its Subscription, or change the channel"}
		}
	}
	return nil
}

// String names the tool and its object.
func (o *Owner) String() string {
	if strings.TrimSpace(o.Object) == "" {
		return o.Tool
	}
	return o.Tool + " (" + strings.TrimSpace(o.Object) + ")"
}
