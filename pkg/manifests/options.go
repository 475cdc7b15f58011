package manifests

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

const (
	// DefaultNamespace is where the operator runs.
	DefaultNamespace = "mssql-system"
	// Name of the operator's Deployment, ServiceAccount and roles.
	Name = "kubectl-mssql-controller"
	// FieldManager owns what install applies.
	FieldManager = "kubectl-mssql"
	// Repository of the operator's image.
	Repository = "ghcr.io/kubectl-mssql/kubectl-mssql"

	// LabelPart marks everything that install applies.
	LabelPart      = "app.kubernetes.io/part-of"
	LabelPartValue = "kubectl-mssql"
	// LabelInstallation names the operator's namespace on everything that one
	// installation consists of, CRDs excepted: several installations share those. What
	// carries it and is not rendered any more is a leftover.
	LabelInstallation = "kubectl-mssql.io/installation"
)

// Options of Render. The zero value is not useful; start from Default. The JSON form
// is kept in the cluster by the settings (see Settings), and upgrade reads it.
type Options struct {
	Namespace        string            `json:"namespace"`
	Image            string            `json:"image"`
	ImagePullPolicy  corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets []string          `json:"imagePullSecrets,omitempty"`
	Replicas         int32             `json:"replicas"`
	// WatchNamespaces limits the operator to these namespaces, with Roles only; empty means the whole cluster.
	WatchNamespaces []string            `json:"watchNamespaces,omitempty"`
	LogLevel        string              `json:"logLevel,omitempty"`
	NodeSelector    map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations     []corev1.Toleration `json:"tolerations,omitempty"`
	// NetworkPolicy lets nothing but health checks and metrics reach the controllers.
	NetworkPolicy bool `json:"networkPolicy,omitempty"`
	// Monitoring makes PodMonitors and alerts for the Prometheus operator.
	Monitoring bool `json:"monitoring,omitempty"`
	// Patches are strategic merge patches, each with apiVersion, kind and metadata.name
	// of a rendered object, applied last and in order.
	Patches []string `json:"patches,omitempty"`
}

// Default is what deploy/install.yaml holds.
func Default() Options {
	return Options{
		Namespace:       DefaultNamespace,
		Image:           Repository + ":" + version.Get().Version,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Replicas:        2,
		LogLevel:        "info",
	}
}

// SetRegistry moves the image to another registry (with or without a path), keeping
// its last path element, tag and digest: "registry.example.com/mirror".
func (o *Options) SetRegistry(registry string) {
	last := o.Image[strings.LastIndex(o.Image, "/")+1:]
	o.Image = strings.TrimSuffix(registry, "/") + "/" + last
}

// ImageVersion is the image's tag without a leading v; empty for a digest or no tag.
func ImageVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	i := strings.LastIndex(image, ":")
	if i <= strings.LastIndex(image, "/") {
		return ""
	}
	return strings.TrimPrefix(image[i+1:], "v")
}

// watched are the namespaces in order, each once.
func (o *Options) watched() []string {
	ns := slices.Clone(o.WatchNamespaces)
	slices.Sort(ns)
	return slices.Compact(ns)
}

// clusterName is the name of a cluster-wide object. Installations in other namespaces
// than the usual one carry theirs, so that several of them do not overwrite each other.
func (o *Options) clusterName(base string) string {
	if o.Namespace == DefaultNamespace {
		return base
	}
	return base + "-" + cmp.Or(o.Namespace, DefaultNamespace)
}
