package manifests

import (
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
)

// Options of Render. The zero value is not useful; start from Default.
type Options struct {
	Namespace        string
	Image            string
	ImagePullPolicy  corev1.PullPolicy
	ImagePullSecrets []string
	Replicas         int32
	// WatchNamespaces limits the operator to these namespaces, with Roles only; empty means the whole cluster.
	WatchNamespaces []string
	LogLevel        string
	NodeSelector    map[string]string
	Tolerations     []corev1.Toleration
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
