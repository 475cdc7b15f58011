package e2e

import (
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// bad is a group of one that would work; the cases spoil it.
func (e *env) bad(name string) *api.SQLServerAvailabilityGroup {
	g := &api.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	g.Spec.AcceptEula, g.Spec.Image, g.Spec.ImagePullPolicy = "Y", e.image, corev1.PullIfNotPresent
	g.Spec.Replicas = []api.AGReplicaSpec{{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic}}
	g.Spec.Storage.DataVolumeSize = resource.MustParse("1Gi")
	return g
}

func memory(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(q)}
}

func secretKey(name string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "SA_PASSWORD"}
}

func cacheDir() string {
	if d := os.Getenv("KUBECTL_MSSQL_CACHE"); d != "" {
		return d
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".cache", "kubectl-mssql")
}
